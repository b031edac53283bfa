"""``hilsim`` as pages call it: a process that has one forked which has imported everything (``tests.commands``), and is it for the shell.

Run with ``-I -S``, so it starts in a hundredth of the time. It has standard output, errors, folder, arguments and signals of the command, and its exit status.
Where the environment or the standard input is not that of the shell, a new process replaces it.

Usage: hilsim_of_pages.py SOCKET ARGUMENTS...
"""

import json
import os
import signal
import socket
import sys

place, *arguments = sys.argv[1:]
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
    door.connect(place)
    request = {"arguments": arguments, "cwd": os.getcwd(), "environment": dict(os.environ)}  # noqa: PTH109 - to import pathlib takes as long as the rest
    is_fed = not os.path.samestat(os.fstat(0), os.stat(os.devnull))  # noqa: PTH116
    answer = b""
    if not is_fed:
        socket.send_fds(door, [json.dumps(request).encode()], [1, 2])
        answer = door.recv(100)
    if not answer:
        os.execv(sys.executable, [sys.executable, "-m", "hilsim", *arguments])  # noqa: S606 - this is the command
    pid = int(answer)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _frame: os.kill(pid, number))
    code = int(door.recv(100))
if code < 0:
    signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
sys.exit(code)
