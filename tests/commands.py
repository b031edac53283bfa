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
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
_FORKS = "import gc, sys; gc.disable(); from tests.commands import serve; serve(int(sys.argv[1]))"
ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""A process that forks must have no threads beside; and threads of BLAS that wait for each other in a loop take the cores of the other groups of tests."""
_NOT_IMPORTED = ("hilsim.__main__", "hilsim.testing", "hilsim.background.cluster", "hilsim.render.cuda", "hilsim.compilation.plain")
_OF_THE_TEST = "PYTEST_CURRENT_TEST"
_OF_A_SHELL = frozenset({"PATH", "EDITOR", "PWD", "OLDPWD", "SHLVL", "_"})
"""Variables that differ in a shell, and that nothing reads at import."""
_OF_IMPORTS = frozenset({"KMP_DUPLICATE_LIB_OK", "KMP_INIT_AT_FORK", "MAVLINK_DIALECT", "NUMBA_OPT"})
"""Variables that sklearn, joblib, pymavlink and hilsim set when they are imported; commands are forked even if a test has imported one of them."""
_MESSAGE_BYTES = 1 << 17
_servers = []
_used_s = [0.0]


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
    return server.start(arguments, cwd=cwd, stdout=stdout, stderr=stderr, environment=environment)


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
            fork = server.start(
                request["arguments"], cwd=request["cwd"], stdout=out, stderr=err, environment=os.environ | request["environment"], is_whole=True
            )
        asking.send(str(fork.pid).encode())
        while fork.poll() is None:
            if asking in select.select([asking, fork.news], [], [])[0]:
                fork.kill()
                fork.wait()
        with contextlib.suppress(OSError):
            asking.send(str(fork.returncode).encode())


def used_s():
    """Processor time of the forks that have ended: they are no children of this process."""
    return _used_s[0]


def close():
    """End the process that forks, and what it forked."""
    while _servers:
        _servers.pop().close()


atexit.register(close)


def _server(environment):
    """The process that forks, where it has this environment."""
    if _servers and not _servers[0].is_ours:
        _servers.clear()
    if not _servers:
        _servers.append(_Server())
    return _servers[0] if _servers[0].has(environment) else None


class _Server:
    """The process that forks, as the tests see it."""

    def __init__(self):
        self._owner, self._surroundings = os.getpid(), _surroundings(os.environ)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-c", _FORKS, str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=ROOT,
                env=ONE_THREAD | os.environ,
            )

    @property
    def is_ours(self):
        return self._owner == os.getpid() and self._process.poll() is None

    def has(self, environment):
        return _surroundings(environment) == self._surroundings

    def start(self, arguments, *, cwd, stdout, stderr, environment, is_whole=False):
        """Fork a command; with ``is_whole`` it takes the variables that a shell may change."""
        news, theirs = os.pipe()
        request = {"arguments": arguments, "cwd": str(cwd or Path.cwd()), "test": environment.get(_OF_THE_TEST, "")}
        request["environment"] = {name: environment[name] for name in _OF_A_SHELL & environment.keys()} if is_whole else {}
        try:
            socket.send_fds(self._socket, [json.dumps(request).encode()], [stdout.fileno(), stderr.fileno(), theirs])
        finally:
            os.close(theirs)
        return Fork(arguments, news)

    def close(self):
        self._socket.close()
        self._process.wait(20)


def _surroundings(environment):
    """What a process has of the one that starts it: variables, and the network namespace, which a thread of the tests may have of its own."""
    return {name: value for name, value in environment.items() if name not in {_OF_THE_TEST, *_OF_IMPORTS}} | {
        "/ns/net": str(Path("/proc/thread-self/ns/net").readlink())
    }


class Fork:
    """A command that was forked.

    Attributes:
        news: Descriptor at which its end can be awaited.
    """

    def __init__(self, arguments, news):
        self.args, self.returncode = ["hilsim", *arguments], None
        self.used_s = 0.0
        self.news, self._heard, self._lock = news, b"", threading.Lock()
        self.pid = self._listen(None)["pid"]

    def __del__(self):
        with contextlib.suppress(OSError):
            os.close(self.news)

    def poll(self):
        return self._result(0.0)

    def wait(self, timeout=None):
        if self._result(timeout) is None:
            raise subprocess.TimeoutExpired(self.args, timeout)
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def _result(self, timeout_s):
        with self._lock:
            if self.returncode is None and (end := self._listen(timeout_s)) is not None:
                self.returncode, self.used_s = end["code"], end["used_s"]
                _used_s[0] += self.used_s
            return self.returncode

    def _listen(self, timeout_s):
        """The next line of news, or None when there is none in time."""
        while b"\n" not in self._heard:
            if not select.select([self.news], [], [], timeout_s)[0]:
                return None
            chunk = os.read(self.news, 4096)
            if not chunk:
                return {"code": -signal.SIGKILL, "used_s": 0.0}  # with the process that forks
            self._heard += chunk
        line, _, self._heard = self._heard.partition(b"\n")
        return json.loads(line)


# -- the process that forks -----------------------------------------------------------------------------------------------------------------


def serve(descriptor):
    """Fork a command for each request, and report when it has ended, until the other side closes."""
    _import_all()
    _load_kernels()
    gc.freeze()  # else the first collection of a fork would copy every page
    requests, running = socket.socket(fileno=descriptor), {}
    poll = select.poll()
    poll.register(requests, select.POLLIN)
    while True:
        for ready, _ in poll.poll():
            if ready in running:
                poll.unregister(ready)
                _report_end(ready, *running.pop(ready))
                continue
            message, descriptors, _, _ = socket.recv_fds(requests, _MESSAGE_BYTES, 3)
            if not message:
                _end(running)
            stdout, stderr, news = descriptors
            pid = os.fork()
            if pid == 0:
                _become(json.loads(message), stdout, stderr, [descriptor, news, *running, *(each for _, each in running.values())])
            os.close(stdout)
            os.close(stderr)
            os.write(news, json.dumps({"pid": pid}).encode() + b"\n")
            ended = os.pidfd_open(pid)
            running[ended] = pid, news
            poll.register(ended, select.POLLIN)


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


def _report_end(ended, pid, news):
    _, status, used = os.wait4(pid, 0)
    end = {"code": os.waitstatus_to_exitcode(status), "used_s": used.ru_utime + used.ru_stime}
    with contextlib.suppress(BrokenPipeError):  # it is awaited no more
        os.write(news, json.dumps(end).encode() + b"\n")
    os.close(news)
    os.close(ended)


def _end(running):
    for pid, _ in running.values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    os._exit(0)


def _become(request, stdout, stderr, closed):
    """Be the command, and never return."""
    code = 1
    try:
        for kept, descriptor in ((1, stdout), (2, stderr)):
            os.dup2(descriptor, kept)
        for descriptor in {stdout, stderr, *closed}:
            os.close(descriptor)
        os.environ[_OF_THE_TEST] = request["test"]
        os.environ.update(request["environment"])
        os.chdir(request["cwd"])
        sys.path[0] = request["cwd"]
        for name in ONE_THREAD:
            os.environ.pop(name, None)
        package = sys.modules["hilsim"]
        sys.argv = [str(Path(package.__file__).with_name("__main__.py")), *request["arguments"]]
        sys.modules["__main__"].__package__ = "hilsim"
        gc.enable()
        code = _call()
    except BaseException:  # noqa: BLE001 - the top of this process: the fault must reach a reader
        traceback.print_exc()
    finally:
        os._exit(code)


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
