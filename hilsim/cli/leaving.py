"""How a command that ran the daemon ends its process."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from hilsim.daemon.service import Ending

LEFT_OUT_EXIT_CODE = 3
"""A replay ended, and packets of it were left out because they could not be in time."""


def leave(ending: "Ending", code: int = 0) -> NoReturn:
    """End the process now: the interpreter would take half a second to take apart what the kernels loaded, or wait for a thread that was left behind.

    Threads, sockets and files of the daemon are closed by then.

    Args:
        ending: Of the run.
        code: Exit code of a run that has streamed to its end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ending.exit_code or code)
