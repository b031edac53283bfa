"""No test judges the machine by a pause, a short time-out or elapsed wall time without a listed reason."""

from tests.runs import waits

JUDGING = """
def test_a():
    time.sleep(0.3)

def test_b(sock):
    sock.settimeout(2)

def test_c():
    began = time.monotonic()
    assert time.monotonic() - began < 1.0
"""
WAITING = """
def test_a(sock):
    sock.settimeout(60)
    deadline = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.2)
    time.sleep(0.001)
"""


def test_every_wait_that_could_judge_the_machine_is_listed_with_its_reason():
    found = waits.all_waits()
    assert {name: kinds for name, kinds in found.items() if name not in waits.LISTED} == {}


def test_every_listed_wait_exists():
    assert set(waits.LISTED) - set(waits.all_waits()) == set()


def test_pauses_short_limits_and_elapsed_wall_time_are_found(tmp_path):
    path = tmp_path / "test_inner.py"
    path.write_text(JUDGING)
    assert waits.waits_of(path) == {"test_a": ["pause"], "test_b": ["limit"], "test_c": ["elapsed wall time"]}


def test_polling_and_long_limits_judge_nothing(tmp_path):
    path = tmp_path / "test_inner.py"
    path.write_text(WAITING)
    assert waits.waits_of(path) == {}
