"""hilsim@demo under a real systemd: what an operator relies on."""

import re
import signal
import time
from datetime import UTC, datetime

import pytest

from tests.service.machine import RECEIVER

pytestmark = [pytest.mark.service, pytest.mark.timeout(1800)]

PACKETS_A_SECOND = 753.5  # a VLP-16: one packet each 1327.104 us
CAP_SYS_NICE, CAP_NET_RAW, CAP_IPC_LOCK = 23, 13, 14
SCHED_FIFO = 1


def test_it_is_ready_once_packets_flow_and_not_before(machine, demo):
    with machine.python(RECEIVER, 2368, 300) as receiver:
        assert receiver.stdout.readline() == "bound\n"
        demo.start()
        ready_us = int(demo.show("ActiveEnterTimestampMonotonic"))
        first_us, _, _ = demo.received(receiver)
    assert 0 < first_us <= ready_us
    assert machine.run("systemctl", "is-active", demo.unit).strip() == "active"


def test_packets_come_at_the_rate_of_the_real_sensor(demo):
    demo.start()
    assert demo.count_packets() == pytest.approx(PACKETS_A_SECOND, rel=0.01)


def test_its_status_says_that_sensors_stream(demo):
    demo.start()
    assert demo.show("StatusText") == "1 sensor(s) streaming"


def test_it_runs_as_a_user_made_for_it_with_three_capabilities(demo):
    demo.start()
    status = demo.status()
    assert 61184 <= int(status["Uid"].split()[0]) <= 65519  # the range of DynamicUser=
    expected = 1 << CAP_SYS_NICE | 1 << CAP_NET_RAW | 1 << CAP_IPC_LOCK
    assert {int(status[name], 16) for name in ("CapEff", "CapBnd", "CapAmb")} == {expected}
    assert (status["NoNewPrivs"], status["Seccomp"]) == ("1", "2")


def test_the_sending_loop_is_real_time_as_metrics_say_and_the_kernel_confirms(demo):
    demo.start()
    assert demo.metrics()['hilsim_scheduling_mode{mode="fifo",thread="transmit"}'] == 1
    policies = [policy for policy, _ in demo.scheduling_policies().values()]
    assert policies.count(SCHED_FIFO) >= 1
    assert demo.scheduling_policies()[str(demo.pid)][0] != SCHED_FIFO  # the loop, not the whole process


def test_the_packet_path_is_locked_in_memory(demo):
    demo.start()
    assert demo.metrics()["hilsim_memory_locked"] == 1
    assert int(demo.status()["VmLck"].split()[0]) > 0


def test_a_frozen_process_is_found_by_the_watchdog_and_started_again(demo):
    demo.start()
    frozen = demo.pid
    demo.signal(signal.SIGSTOP)
    took_s = demo.await_restart(frozen, 60)
    assert took_s > 2  # the watchdog's doing, after at most WatchdogSec
    assert demo.show("NRestarts") == "1"
    assert "Failed with result 'watchdog'" in demo.journal_text()
    assert demo.count_packets() == pytest.approx(PACKETS_A_SECOND, rel=0.01)


def test_a_killed_process_is_started_again(demo):
    demo.start()
    killed = demo.pid
    demo.signal(signal.SIGKILL)
    demo.await_restart(killed, 60)
    assert demo.show("NRestarts") == "1"
    assert demo.count_packets() == pytest.approx(PACKETS_A_SECOND, rel=0.01)


def test_it_stops_cleanly_within_a_second(demo):
    demo.start()
    began = datetime.now(UTC)
    demo.stop()
    assert (demo.show("ActiveState"), demo.show("Result"), demo.show("ExecMainStatus")) == ("inactive", "success", "0")
    stopped = await_event(demo, "daemon.stopped")
    assert (datetime.fromisoformat(stopped["timestamp"]) - began).total_seconds() < 1
    assert demo.journal()[-1] == stopped


def test_a_reload_applies_the_changed_rig_to_the_running_process(machine, demo):
    demo.start()
    before = demo.pid
    rig = machine.run("cat", demo.rig_path)
    machine.write(demo.rig_path, rig.replace("rotation_rate_rpm = 600", "rotation_rate_rpm = 1200"))
    demo.systemctl("reload")
    await_metric(demo, 'hilsim_rotation_rate_hertz{sensor="roof"}', 20)
    assert demo.pid == before
    assert "rig.reloaded" in [event["event"] for event in demo.journal()]
    assert demo.count_packets() == pytest.approx(PACKETS_A_SECOND, rel=0.01)


def test_a_reload_of_a_broken_rig_is_refused_and_packets_flow_on(machine, demo):
    demo.start()
    before = demo.pid
    machine.write(demo.rig_path, "seed = 'one'\n")
    demo.systemctl("reload")
    assert await_event(demo, "rig.reload_refused")["level"] == "error"
    assert (demo.pid, demo.show("ActiveState")) == (before, "active")
    assert demo.count_packets() == pytest.approx(PACKETS_A_SECOND, rel=0.01)


def test_a_missing_rig_is_reported_in_one_sentence(machine):
    service = machine.service("nowhere")
    service.reset()
    with pytest.raises(RuntimeError, match="must succeed, got exit code 1"):
        service.start()
    service.stop()
    text = service.journal_text()
    assert "/etc/hilsim/rigs/nowhere.toml" in text
    assert "Traceback" not in text


def test_a_rig_elsewhere_is_named_by_the_environment_file(machine, demo):
    machine.run("mkdir", "-p", "/srv/rigs")
    machine.write("/srv/rigs/other.toml", machine.run("cat", demo.rig_path).replace('name = "roof"', 'name = "mast"'))
    machine.write("/etc/hilsim/demo.env", "RIG=/srv/rigs/other.toml\n")
    try:
        demo.start()
        assert demo.metrics()['hilsim_rotation_rate_hertz{sensor="mast"}'] == 10
    finally:
        machine.run("rm", "/etc/hilsim/demo.env")


def test_two_rigs_run_side_by_side_and_share_the_compiled_kernels(machine, demo):
    rig = machine.run("cat", demo.rig_path)
    second = rig.replace('destination = "127.0.0.1"', 'destination = "127.0.0.1"\ndata_port = 2369\nposition_port = 8309')
    machine.write("/etc/hilsim/rigs/second.toml", f"{second}\n[metrics]\nport = 9465\n")
    other = machine.service("second")
    demo.start()
    try:
        other.start()
        assert demo.count_packets(2368) == pytest.approx(PACKETS_A_SECOND, rel=0.01)
        assert other.count_packets(2369) == pytest.approx(PACKETS_A_SECOND, rel=0.01)
        assert demo.status()["Uid"] == other.status()["Uid"]
    finally:
        other.stop()
    owners = set(machine.run("find", "/var/cache/private/hilsim", "-name", "*.nbc", "-printf", "%u\n").split())
    assert len(owners) == 1


def test_events_reach_the_journal_as_json_in_utc(demo):
    demo.start()
    started = await_event(demo, "daemon.started")
    assert started["sensors"] == 1
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", started["timestamp"])


def test_promised_limits_reach_the_unit(demo):
    demo.start()
    assert (demo.show("LimitRTPRIO"), demo.show("LimitMEMLOCK")) == ("90", "infinity")
    assert (demo.show("WatchdogUSec"), demo.show("TimeoutStopUSec")) == ("5s", "10s")


def await_event(service, name):
    """The newest event of that name, once it is in the journal."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        found = [event for event in service.journal() if event["event"] == name]
        if found:
            return found[-1]
        time.sleep(0.05)
    pytest.fail(f"no {name} in the journal within 10 s:\n{service.journal_text()}")


def await_metric(service, sample, value):
    deadline = time.monotonic() + 10
    while service.metrics().get(sample) != value:
        if time.monotonic() > deadline:
            pytest.fail(f"{sample} must become {value}, got {service.metrics().get(sample)}")
        time.sleep(0.05)
