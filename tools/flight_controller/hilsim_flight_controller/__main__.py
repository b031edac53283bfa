"""The scripted controller as a program.

``python -m hilsim_flight_controller --pty LINK | --port DEVICE | --tcp HOST:PORT | --udp [HOST:]PORT --report FILE.json``

It ends when its script is done, after ``--for`` seconds, at SIGTERM or SIGINT, or when a TCP simulator closes the connection; the report is written in each case.
Its exit status is 0 if no rule was violated and the script is done, 2 if the line cannot be opened, else 1.
"""

import os
import signal
import sys
from contextlib import suppress

from hilsim.errors import HilsimError
from hilsim_flight_controller.follower import Follower
from hilsim_flight_controller.options import arguments
from hilsim_flight_controller.program import Program

_NICE = -15
"""Nice value: a real flight controller has its own processor, so where permitted this one takes precedence over the host's other processes."""


def _be_a_computer_of_its_own() -> None:
    """Raise the priority where permitted, above all but hilsim's own real-time threads: a real controller does not share its processor."""
    with suppress(PermissionError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))


def main() -> int:
    """Fly; returns the exit status."""
    try:
        options = arguments()
        _be_a_computer_of_its_own()
        program = Program(options, Follower() if options.follow else None)
        signal.signal(signal.SIGTERM, program.stop)
        signal.signal(signal.SIGINT, program.stop)
        fine, report = program.run()
    except HilsimError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    if not options.follow:
        for fault in report.faults:
            sys.stderr.write(f"{fault.rule}: {fault}\n")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
