"""What the judge says of frames that are missing."""

from types import SimpleNamespace

import pytest

from hilsim.testing.flight_controller.rules.order import Order
from hilsim.testing.flight_controller.rules.situation import Situation


class Report:
    def __init__(self):
        self.verdicts = []

    def judge(self, rule, holds, *_):
        self.verdicts.append((rule, bool(holds)))


@pytest.mark.parametrize(
    ("pause_us", "held_up", "holds"), [(4_000, False, False), (190_000, False, False), (200_000, False, True), (4_000, True, True)]
)
def test_missing_numbers_are_a_fault_but_behind_a_silence_or_a_late_reader(pause_us, held_up, holds):
    report, situation = Report(), Situation(serial=True)
    order = Order(report, situation)
    for now_us, sequence in ((0, 44), (pause_us, 95)):
        situation.held_up = held_up and now_us > 0
        order.frame(now_us, SimpleNamespace(source=(1, 200), sequence=sequence, identity=-1), None)
    assert report.verdicts == [("sequence", True), ("sequence", holds)]


def test_the_first_frame_behind_a_late_turn_may_have_another_number_and_no_further_one():
    """A socket that was full while the reader was late holds what came first; what it dropped is missing behind that."""
    report, situation = Report(), Situation(serial=False)
    order = Order(report, situation)
    for now_us, sequence, held_up in ((0, 1, False), (4_000, 2, True), (8_000, 90, False), (12_000, 91, False), (16_000, 95, False)):
        situation.held_up = held_up
        order.frame(now_us, SimpleNamespace(source=(1, 200), sequence=sequence, identity=-1), None)
    assert [holds for _, holds in report.verdicts] == [True, True, True, True, False]


def test_within_a_second_after_a_silence_numbers_may_be_missing_and_no_longer():
    """The simulator may run that much later than the controller, and discards what waits for it only then."""
    report = Report()
    order = Order(report, Situation(serial=True))
    frames = [(0, 1), (200_000, 2), *((200_000 + 100_000 * step, 2 + step) for step in range(1, 8)), (999_000, 90), (1_190_000, 91), (1_201_000, 99)]
    for now_us, sequence in frames:
        order.frame(now_us, SimpleNamespace(source=(1, 200), sequence=sequence, identity=-1), None)
    assert [holds for _, holds in report.verdicts] == [*[True] * (len(frames) - 1), False]
