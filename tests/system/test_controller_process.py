"""The flight controller as users have it: ``hilsim_flight_controller`` at the real daemon and at a bridge that is wrong. Outcomes alone are asserted: no figure of time."""

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hilsim.errors import LinkError
from hilsim_flight_controller import TIMING_RULES, FlightController, FlightError
from tests.compiled import compiled_only
from tests.controllers.bridge import Bridge
from tests.controllers.desk import Desk, Serial
from tests.controllers.puppet import Puppet
from tests.controllers.wrongs import WRONGS
from tests.system.flying import WHOLE, figures, vehicle_rig

pytestmark = [pytest.mark.extended, pytest.mark.system]
_RIGS = {
    "pty": 'kind = "serial"\nport = "{port}"',
    "tcp": 'kind = "tcp"\naddress = "{port}"\nlockstep = true',
    "udp": 'kind = "udp"\naddress = "{port}"',
}


@contextlib.contextmanager
def bridged(port, *, wrong=None):
    """A bridge of the tests' own at a serial port, spoiled by one of ``WRONGS`` if one is named, until the block ends."""
    bridge, ended = Bridge(Puppet()), threading.Event()
    if wrong:
        WRONGS[wrong].change(bridge)
    thread = threading.Thread(target=Desk(bridge, Serial(port)).run, args=(ended.is_set,))
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def serious(faults):
    """Faults, but for those of time: a busy machine may be late."""
    return [str(fault) for fault in faults if fault.rule not in TIMING_RULES]


@compiled_only
@pytest.mark.parametrize("link", _RIGS)
def test_a_user_flies_the_daemons_vehicle_and_reads_a_report_without_faults(daemon, rig, link):
    with FlightController(link=link, script="hop", lockstep=link == "tcp") as controller:
        running = daemon(rig(scene=vehicle_rig(_RIGS[link].format(port=controller.port))))
        armed = controller.wait_armed()
        report = controller.wait_done()
        said = figures(running)
    assert serious(report.faults) == []
    assert [event.text for event in report.events if event.text in WHOLE][-len(WHOLE) :] == WHOLE
    assert report.time_of("armed") == armed.time_s
    assert report.judged["specific_force"] > 0
    assert report.figures["hover_level_m"] < 0.5
    assert said["hilsim_vehicle_crashed"] == 0
    assert controller.report() == report


def test_a_wrong_bridge_is_found_while_it_runs_and_its_fault_says_what_was_expected_what_came_and_when():
    with FlightController(script="idle") as controller, bridged(controller.port, wrong="pressure in Pa"):
        controller.wait_for("speaking")
        end_s = time.monotonic() + 30.0
        while not serious(controller.faults):
            assert time.monotonic() < end_s, controller.report()
            time.sleep(0.02)
        so_far = controller.report()
    report = controller.report()
    fault = next(fault for fault in report.faults if fault.rule == "pressure")
    assert (fault.field, fault.must) == ("abs_pressure", "300 to 1100 hPa")
    assert 90_000.0 < float(fault.value) < 100_000.0
    assert fault.time_s > report.time_of("speaking")
    assert set(report.broken) - TIMING_RULES == {"pressure"}
    assert f"pressure: {fault}" in str(report)
    assert 0 < so_far.judged["pressure"] <= report.judged["pressure"]


def test_a_right_bridge_bears_noise_a_reboot_and_a_pulled_cable_at_the_tests_word():
    with FlightController(script="idle") as controller, bridged(controller.port):
        controller.wait_for("speaking")
        controller.babble()
        controller.wait_for("babble")
        controller.pull_cable(0.3)
        controller.wait_for("plugged")
        controller.reboot(0.3)
        controller.wait_for("reboot")
    told = [event.text for event in controller.report().events if event.text != "speaking"]
    assert told[:4] == ["babble", "unplugged", "plugged", "reboot"]
    assert serious(controller.faults) == []


def test_an_event_that_does_not_happen_is_reported_with_the_actual_ones():
    with FlightController(script="hop") as controller, bridged(controller.port, wrong="field in FLU"):
        controller.wait_for("speaking")
        with pytest.raises(
            FlightError, match=r"(?s)must report 'airborne', got no such event in 3 s; its last events:\n  0\.\d+ s: speaking.*field:"
        ):
            controller.wait_for("airborne", 3.0)


def test_a_controller_whose_time_is_up_says_that_it_has_ended():
    with FlightController(script="hop", limit_s=0.5) as controller, pytest.raises(FlightError, match=r"must report 'done', got its end"):
        controller.wait_done()
    assert not controller.report().done


def children():
    """Process ids of this process's children."""
    return {int(pid) for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_a_block_that_fails_leaves_neither_process_nor_file_behind():
    before = children()
    with pytest.raises(ZeroDivisionError), FlightController() as controller:  # noqa: PT012 - the block is what is tested
        path = Path(controller.port)
        assert path.is_symlink()
        assert children() - before
        raise ZeroDivisionError
    assert children() == before
    assert not path.parent.exists()
    assert controller.report().received == {}


def test_a_controller_ends_with_the_process_that_started_it_however_that_ends(tmp_path):
    program = (
        "import os, signal\nfrom hilsim_flight_controller import FlightController\n"
        "with FlightController() as controller:\n"
        "    print(controller._process.pid, controller.port, flush=True)\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    here = os.environ | {"TMPDIR": str(tmp_path)}  # a process that is killed leaves its files
    result = subprocess.run([sys.executable, "-c", program], env=here, capture_output=True, text=True, timeout=60, check=False)
    pid, port = result.stdout.split()
    assert result.returncode == -signal.SIGKILL
    end_s = time.monotonic() + 20.0
    while Path(f"/proc/{pid}/stat").exists():
        assert time.monotonic() < end_s, "the controller lives on"
        time.sleep(0.02)
    assert not Path(port).is_symlink()


def test_a_link_that_cannot_be_opened_is_an_error_that_names_it(tmp_path):
    (tmp_path / "px4").touch()
    with pytest.raises(LinkError, match=rf"{tmp_path}/px4: the link to the pty must be possible to make, got File exists"):
        FlightController(link=f"pty:{tmp_path / 'px4'}").__enter__()
    with (
        FlightController(link="udp") as first,
        pytest.raises(LinkError, match=rf"{first.port}: the UDP port must be free, got Address already in use"),
    ):
        FlightController(link=f"udp:{first.port}").__enter__()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"link": "can"}, r"link must be pty, pty:PATH, serial:DEVICE, tcp, tcp:HOST:PORT, udp or udp:HOST:PORT, got 'can'"),
        ({"link": "serial"}, r"link must be .*, got 'serial'"),
        ({"link": "tcp:4560"}, r"link must be .*, got 'tcp:4560'"),
        ({"script": "loop"}, r"script must be one of idle, hop, hover, tour, got 'loop'"),
        ({"lockstep": True}, r"lockstep must go with a tcp link, got 'pty'"),
        ({"limit_s": 0.0}, r"limit_s must be above 0, got 0"),
    ],
    ids=str,
)
def test_a_wrong_argument_is_refused_before_anything_starts(values, message):
    with pytest.raises(ValueError, match=message):
        FlightController(**values)


def test_a_script_without_an_end_is_not_waited_for():
    with FlightController(script="idle") as controller, pytest.raises(ValueError, match="script must have an end to be waited for, got 'idle'"):
        controller.wait_done()


def test_a_controller_that_was_never_started_has_no_report():
    with pytest.raises(FlightError, match="must have been started"):
        FlightController().report()


def test_a_process_that_was_killed_is_reported_to_have_ended_without_a_report():
    with FlightController() as controller:
        os.kill(controller._process.pid, signal.SIGKILL)
        with pytest.raises(FlightError, match="the flight controller's process must end with a report, got exit status -9"):
            controller.wait_done()
