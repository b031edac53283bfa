"""hilsim's commands as processes, forked from one process a run that has imported what they need.

Importing is more than half of what a command's process costs, and the tests start hundreds. A fork has its own descriptors, folder, signals and exit status;
it differs from ``python -m hilsim`` in what is imported before it begins. Where the environment or the network namespace is another one than that of the run,
or a test has the mark ``cold``, the command is a new process. Examples, the README and the wheel start every command that way.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import select
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

from hilsim.testing.forks import ONE_THREAD, ForkServer, serve

ROOT = Path(__file__).resolve().parent.parent
_NOT_IMPORTED = ("hilsim.__main__", "hilsim.testing", "hilsim.read.background.cluster", "hilsim.world.render.cuda", "hilsim.compilation.plain")
_OF_THE_TEST = "PYTEST_CURRENT_TEST"
_OF_A_SHELL = frozenset({"PATH", "EDITOR", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that differ in a shell, and that nothing reads at import."""
_OF_IMPORTS = frozenset({"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "MAVLINK_DIALECT", "NUMBA_OPT"})
"""Variables that sklearn, joblib, pymavlink and hilsim set when they are imported; commands are forked even if a test has imported one of them."""
_MESSAGE_BYTES = 1 << 17
_servers = []


def run(*arguments, cwd=None, timeout_s=300.0, environment=None):
    """Run ``hilsim`` with the arguments to its end: as ``subprocess.run`` with its output as text.

    Raises:
        subprocess.TimeoutExpired: it was still running, and has been killed.
    """
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = start(*arguments, cwd=cwd, stdout=out, stderr=err, environment=environment)
        try:
            code = process.wait(timeout_s)
        except BaseException:
            process.kill()
            process.wait()
            raise
        out.seek(0)
        err.seek(0)
        return subprocess.CompletedProcess(["hilsim", *arguments], code, *(file.read().decode().replace("\r\n", "\n") for file in (out, err)))


def start(*arguments, stdout, stderr, cwd=None, environment=None, is_cold=False):
    """Start ``hilsim`` with the arguments; what has the methods of ``subprocess.Popen`` that tests use.

    Args:
        arguments: Of the command.
        stdout: A file.
        stderr: A file.
        cwd: The process's folder.
        environment: Variables beside those of this process.
        is_cold: A new process imports everything itself.
    """
    arguments = [str(argument) for argument in arguments]
    environment = os.environ | (environment or {})
    server = None if is_cold else _server(environment)
    if server is None:
        command = [sys.executable, "-m", "hilsim", *arguments]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, cwd=cwd, env=environment)
    return server.start(arguments, cwd, stdout, stderr, {_OF_THE_TEST: environment.get(_OF_THE_TEST, "")})


@contextlib.contextmanager
def door(place):
    """A socket at which ``tests/system/hilsim_of_pages.py`` asks for commands: yields when it is there."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
        listening.bind(str(place))
        listening.listen(64)
        asked = threading.Thread(target=_answer_all, args=(listening,))
        asked.start()
        try:
            yield
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            asked.join()


def _answer_all(listening):
    """Be each command that is asked for, until the socket is shut down."""
    answering = []
    with contextlib.suppress(OSError):
        while True:
            asking, _ = listening.accept()
            answering.append(threading.Thread(target=_answer, args=(asking,)))
            answering[-1].start()
    for each in answering:
        each.join()


def _answer(asking):
    """Start a command for who asks, tell its process and how it ends; a command whose asker is gone is killed."""
    with asking:
        message, descriptors, _, _ = socket.recv_fds(asking, _MESSAGE_BYTES, 2)
        if not message:
            return
        request = json.loads(message)
        server = _server(os.environ | {name: value for name, value in request["environment"].items() if name not in _OF_A_SHELL})
        if server is None:
            for descriptor in descriptors:
                os.close(descriptor)
            return
        with os.fdopen(descriptors[0], "wb") as out, os.fdopen(descriptors[1], "wb") as err:
            changed = {name: value for name, value in (os.environ | request["environment"]).items() if name in {_OF_THE_TEST, *_OF_A_SHELL}}
            fork = server.start(request["arguments"], request["cwd"], out, err, changed)
        asking.send(str(fork.pid).encode())
        while fork.poll() is None:
            if asking in select.select([asking, fork.news], [], [])[0]:
                fork.kill()
                fork.wait()
        with contextlib.suppress(OSError):
            asking.send(str(fork.returncode).encode())


def used_s():
    """Processor time of the forks that have ended: they are no children of this process."""
    return sum(server.used_s for server in _servers)


def close():
    """End the process that forks, and what it forked."""
    while _servers:
        _servers.pop().close()


atexit.register(close)


def _server(environment):
    """The process that forks, where it has this environment."""
    if _servers and (not _servers[0].is_ours or _servers[0].has_ended):
        _servers.clear()
    if not _servers:
        _servers.append(_Server())
    return _servers[0] if _servers[0].has(environment) else None


class _Server(ForkServer):
    """The process that forks, as the tests see it."""

    def __init__(self):
        self._surroundings = _surroundings(os.environ)
        super().__init__("tests.commands", os.environ, ROOT)

    def has(self, environment):
        return _surroundings(environment) == self._surroundings

    def start(self, arguments, cwd, stdout, stderr, environment):
        """Fork a command with these variables changed."""
        request = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "environment": environment}
        return super().start(["hilsim", *arguments], request, stdout, stderr)


def _surroundings(environment):
    """What a process has of the one that starts it: variables, and the network namespace, which a thread of the tests may have of its own."""
    return {name: value for name, value in environment.items() if name not in {_OF_THE_TEST, *_OF_IMPORTS}} | {
        "/ns/net": str(Path("/proc/thread-self/ns/net").readlink())
    }


# -- the process that forks -----------------------------------------------------------------------------------------------------------------


def main(descriptor, parent):
    """Fork a command for each request."""
    _import_all()
    _load_kernels()
    serve(descriptor, parent, lambda request: lambda: _be(request))
    os._exit(0)


def _import_all():
    """All modules, but for those that start threads or need what may not be installed."""
    import hilsim  # noqa: PLC0415

    for found in pkgutil.walk_packages(hilsim.__path__, "hilsim.", onerror=lambda _: None):
        if not found.name.startswith(_NOT_IMPORTED):
            _import(found.name)
    _import("matplotlib.backends.backend_agg")
    assert threading.active_count() == 1, threading.enumerate()


def _load_kernels():
    """Load the kernels of a rig with a sensor: a fork need not load them from the cache, and takes 0.2 s of a core in place of 0.45."""
    from hilsim.config.rig import load_rig  # noqa: PLC0415
    from hilsim.daemon.running_rig import RunningRig  # noqa: PLC0415
    from tests.support import ROOM, write_rig  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder:
        RunningRig(rig=load_rig(write_rig(Path(folder), ROOM))).rehearse()
    assert threading.active_count() == 1, threading.enumerate()


def _import(name):
    with contextlib.suppress(ImportError):  # of what may not be installed
        importlib.import_module(name)


def _be(request):
    """Be the command; its exit status."""
    os.environ.update(request["environment"])
    os.chdir(request["cwd"])
    sys.path[0] = request["cwd"]
    for name in ONE_THREAD:
        os.environ.pop(name, None)
    package = sys.modules["hilsim"]
    sys.argv = [str(Path(package.__file__).with_name("__main__.py")), *request["arguments"]]
    sys.modules["__main__"].__package__ = "hilsim"
    gc.enable()
    return _call()


def _call():
    """What ``python -m hilsim`` does; its exit status."""
    from hilsim.cli import main  # noqa: PLC0415

    code = 0
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if isinstance(end.code, str):
            sys.stderr.write(f"{end.code}\n")
    except BaseException:  # noqa: BLE001 - as the interpreter does
        traceback.print_exc()
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    return code
