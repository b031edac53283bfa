"""Loops that wake without time passing."""

import json
import os
import subprocess
import sys
import time

from hilsim.transmit.brake import BRAKE_WAKES, Brake, allocate_brake, brake_reason, doze_until, is_applied


def test_a_sending_loop_whose_sleep_fails_leaves_real_time_scheduling_and_goes_on():
    command = [sys.executable, "-m", "tests.unit.transmit.without_sleep"]
    said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=300).stdout)

    assert said["applied"] == 1
    assert said["policy"] == os.SCHED_OTHER
    assert said["still_turns"]
    assert said["reason"] == "sleeping fails (Operation not permitted)"


def test_sleeps_that_last_release_the_brake():
    brake = allocate_brake()
    brake[Brake.EARLY_WAKES] = BRAKE_WAKES - 1

    doze_until(time.monotonic_ns() + 100_000, brake)

    assert brake.tolist() == [0] * 8
    assert brake_reason(brake) == ""


def test_a_sleep_until_the_past_is_no_early_wake():
    brake = allocate_brake()

    for _ in range(2 * BRAKE_WAKES):
        doze_until(1, brake)

    assert not is_applied(brake)
