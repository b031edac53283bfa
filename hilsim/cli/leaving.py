"""End the process of a command that ran the daemon."""

import os
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from hilsim.daemon.service import Ending

LEFT_OUT_EXIT_CODE = 3
"""Exit code of a replay that skipped packets because they would have been late."""


def leave(ending: "Ending", code: int = 0) -> NoReturn:
    """End the process at once: the interpreter would take half a second to unload the kernels, or would wait for an abandoned thread.

    Threads, sockets and files of the daemon are closed by then.

    Args:
        ending: End of the run.
        code: Exit code of a run that has streamed to its end.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(ending.exit_code or code)
