"""Builds a Debian root with hilsim in it, boots it by systemd-nspawn, and speaks with what runs there.

The root is cached in .test-service/ and never written while booted: changes go to an overlay in memory. The machine has a network of its own, with
nothing but loopback.
"""

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Self

PROJECT = Path(__file__).resolve().parents[2]
SCRATCH = Path(os.environ.get("HILSIM_TEST_SERVICE_DIR", PROJECT / ".test-service"))
PACKAGES = ("systemd", "systemd-sysv", "dbus", "python3", "python3-venv", "libcap2-bin")
"""No procps and so no /bin/kill: reloading must work on a minimal system."""
DEBIAN, DEBIAN_PYTHON = "bookworm", (3, 11)
CGROUPS = Path("/sys/fs/cgroup")

RECEIVER = """
import socket, struct, sys, time
SO_RCVBUFFORCE, SO_TIMESTAMPNS = 33, 35
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver:
    receiver.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
    receiver.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
    receiver.bind(("127.0.0.1", int(sys.argv[1])))
    print("bound", flush=True)
    receiver.settimeout(float(sys.argv[2]))
    first, sizes = None, []
    while True:
        try:
            payload, ancillary, _, _ = receiver.recvmsg(2048, 64)
        except TimeoutError:
            break
        seconds, nanoseconds = struct.unpack("qq", ancillary[0][2])
        stamp = seconds * 10**9 + nanoseconds
        first = stamp if first is None else first
        if stamp >= first + 10**9:
            break
        sizes.append(len(payload))
        receiver.settimeout(2)
    monotonic = (first or time.time_ns()) - time.time_ns() + time.monotonic_ns()
    print(monotonic // 1000, sizes.count(1206), len(sizes))
"""
"""Prints CLOCK_MONOTONIC of the first datagram in us, and how many data packets and datagrams came within a second of it, all by the kernel's stamps
(on loopback: of the sending), so that it does not matter how long a busy host keeps this reader waiting."""

SCRAPE = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=10).read().decode())"


def missing_requirement() -> str:
    """Why these tests cannot run here; empty when they can."""
    if os.geteuid() != 0:
        return "booting a container needs root"
    tools = {"systemd-nspawn": "systemd-container", "mmdebstrap": "mmdebstrap", "nsenter": "util-linux"}
    absent = [package for tool, package in tools.items() if shutil.which(tool) is None]
    if absent:
        return f"not installed (Debian packages): {', '.join(absent)}"
    if sys.version_info[:2] != DEBIAN_PYTHON:
        return f"wheels are made for the container's Python {DEBIAN_PYTHON}, this is {sys.version_info[:2]}"
    return ""


def prepared_root() -> Path:
    """A Debian root with hilsim in /opt/hilsim, the unit and the demo rig; Debian and the dependencies are kept from run to run."""
    key = hashlib.sha256(repr((DEBIAN, PACKAGES)).encode() + (PROJECT / ".ci" / "constraints.txt").read_bytes()).hexdigest()[:12]
    root = SCRATCH / f"root-{key}"
    if not root.is_dir():
        for former in SCRATCH.glob("root-*"):
            shutil.rmtree(former)
        building = SCRATCH / f"building-{os.getpid()}"
        building.parent.mkdir(parents=True, exist_ok=True)
        _call("mmdebstrap", "--variant=minbase", f"--include={','.join(PACKAGES)}", DEBIAN, building)
        _call("chroot", building, "python3", "-m", "venv", "/opt/hilsim")
        _wheels(building)
        _call("chroot", building, "/opt/hilsim/bin/pip", "install", "--no-index", "--find-links=/var/tmp/wheels", "hilsim-lidar")
        building.rename(root)
    _wheels(root, "--no-deps")
    wheel = max((root / "var/tmp/wheels").glob("hilsim_lidar-*.whl"), key=lambda path: path.stat().st_mtime)
    pip = ("chroot", root, "/opt/hilsim/bin/pip", "--disable-pip-version-check")
    _call(*pip, "install", "--no-index", "--no-deps", "--force-reinstall", f"/var/tmp/wheels/{wheel.name}")  # noqa: S108
    _configure(root)
    return root


def _wheels(root: Path, *options: str) -> None:
    """Made outside, where pip knows its index; installed inside without one."""
    place = root / "var/tmp/wheels"
    _call(
        sys.executable, "-m", "pip", "wheel", "--quiet", *options, f"--constraint={PROJECT / '.ci/constraints.txt'}", f"--wheel-dir={place}", PROJECT
    )


def _configure(root: Path) -> None:
    """As the installation's page says: everything from the installed package."""
    (package,) = (root / "opt/hilsim/lib").glob("python3*/site-packages/hilsim")
    shutil.copy(package / "_systemd" / "hilsim@.service", root / "etc/systemd/system")
    rigs = root / "etc/hilsim/rigs"
    rigs.mkdir(parents=True, exist_ok=True)
    shutil.copy(package / "_profiles" / "rigs" / "demo.toml", rigs)


def _call(*command: object) -> None:
    """Run to the end; a fault shows the command's output."""
    ran = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=1800, check=False)
    if ran.returncode:
        message = f"{' '.join(map(str, command))} must succeed, got exit code {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}"
        raise RuntimeError(message)


class Machine:
    """A booted root; a context manager that leaves no process and no cgroup behind."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.log = SCRATCH / "console.log"

    def __enter__(self) -> Self:
        command = [
            "systemd-nspawn", f"--directory={self.root}", "--volatile=overlay", "--boot", "--private-network",
            "--register=no", "--keep-unit",  # the host need not run systemd
            "--console=pipe", f"--machine=hilsim-test-{os.getpid()}",
            "--capability=CAP_IPC_LOCK",  # which nspawn else takes away
        ]  # fmt: skip
        with self.log.open("wb") as log:
            self._nspawn = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            self._leader = self._await_leader()
            self.run("systemctl", "is-system-running", "--wait", check=False)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._nspawn.terminate()  # nspawn hands it on as a clean power-off
        try:
            self._nspawn.wait(20)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        for name in ("payload", "supervisor"):
            for place in sorted(CGROUPS.glob(f"**/{name}"), key=lambda path: -len(path.parts)):
                for folder, _, _ in os.walk(place, topdown=False):
                    with suppress(OSError):  # not empty: another process uses it
                        Path(folder).rmdir()

    def _await_leader(self) -> int:
        """Nspawn's only child, once its own systemd answers."""
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self._nspawn.poll() is None:
            for child in children.read_text().split():
                self._leader = int(child)
                if self.run("systemctl", "is-system-running", check=False).strip() in {"running", "degraded", "starting"}:
                    return self._leader
            time.sleep(0.05)
        message = f"the container must boot within 60 s, got:\n{self.log.read_text()[-3000:]}"
        raise RuntimeError(message)

    def _inside(self, *command: str) -> list[str]:
        return ["nsenter", f"--target={self._leader}", "--mount", "--uts", "--ipc", "--net", "--pid", "--", *command]

    def run(self, *command: str, check: bool = True, timeout_s: float = 300) -> str:
        """Standard output of a command run inside."""
        ran = subprocess.run(self._inside(*command), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False)
        if check and ran.returncode:
            message = f"{' '.join(command)} must succeed, got exit code {ran.returncode}:\n{ran.stdout}{ran.stderr}"
            raise RuntimeError(message)
        return ran.stdout

    def write(self, path: str, text: str) -> None:
        """A file inside, readable by all."""
        subprocess.run(self._inside("sh", "-c", f"cat > {path}"), input=text, text=True, check=True, timeout=30)

    def service(self, rig: str) -> "Service":
        """hilsim@rig."""
        return Service(self, rig)

    def python(self, code: str, *arguments: object) -> subprocess.Popen[str]:
        """This Python, in the machine's network."""
        command = ["nsenter", f"--target={self._leader}", "--net", "--", sys.executable, "-c", code, *map(str, arguments)]
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)


class Service:
    """One hilsim@ instance."""

    def __init__(self, machine: Machine, rig: str) -> None:
        self.machine = machine
        self.unit = f"hilsim@{rig}.service"
        self.rig_path = f"/etc/hilsim/rigs/{rig}.toml"
        self.since = "@0"

    def reset(self) -> None:
        """Stopped, its rig as shipped, its counts at zero, its journal read from now on."""
        self.stop()
        self.systemctl("reset-failed", check=False)
        self.machine.write("/etc/hilsim/rigs/demo.toml", (PROJECT / "profiles/rigs/demo.toml").read_text())
        self.since = self.machine.run("date", "+@%s.%6N").strip()

    def systemctl(self, verb: str, *, check: bool = True) -> str:
        return self.machine.run("systemctl", verb, self.unit, check=check)

    def start(self) -> None:
        """Returns when systemd calls it active."""
        try:
            self.systemctl("start")
        except RuntimeError as error:
            message = f"{error}\n{self.journal_text()}"
            raise RuntimeError(message) from error

    def stop(self) -> None:
        self.systemctl("stop", check=False)

    def show(self, name: str) -> str:
        return self.machine.run("systemctl", "show", "--value", f"--property={name}", self.unit).strip()

    @property
    def pid(self) -> int:
        """Main process, by its number inside."""
        return int(self.show("MainPID"))

    def signal(self, number: signal.Signals) -> None:
        self.machine.run("python3", "-c", f"import os; os.kill({self.pid}, {number.value})")

    def status(self, task: str = "") -> dict[str, str]:
        """/proc/PID/status."""
        lines = self.machine.run("cat", f"/proc/{self.pid}{task}/status").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}

    def scheduling_policies(self) -> dict[str, tuple[int, int]]:
        """(policy, real-time priority) of each thread, by thread id: fields 41 and 40 of /proc/PID/task/TID/stat (proc(5))."""
        stats = self.machine.run("sh", "-c", f"cat /proc/{self.pid}/task/*/stat").splitlines()
        fields = {line.split()[0]: line.rpartition(")")[2].split() for line in stats}
        return {thread: (int(values[38]), int(values[37])) for thread, values in fields.items()}

    def journal(self) -> list[dict[str, object]]:
        """The service's own events since ``reset``, parsed."""
        return [json.loads(line) for line in self.journal_text("-o", "cat", "_SYSTEMD_UNIT=" + self.unit).splitlines() if line.startswith("{")]

    def journal_text(self, *options: str) -> str:
        """What the journal holds of the service since ``reset``, systemd's words among it."""
        self.machine.run("journalctl", "--sync")
        which = options or ("-u", self.unit)
        return self.machine.run("journalctl", "--no-pager", f"--since={self.since}", *which, check=False)

    def await_restart(self, former_pid: int, timeout_s: float) -> float:
        """Seconds until another main process is ready."""
        began = time.monotonic()
        while time.monotonic() - began < timeout_s:
            if self.pid not in (0, former_pid) and self.show("ActiveState") == "active":
                return time.monotonic() - began
            time.sleep(0.05)
        message = f"{self.unit} must be restarted within {timeout_s} s, got:\n{self.journal_text()[-3000:]}"
        raise RuntimeError(message)

    def count_packets(self, port: int = 2368) -> int:
        """Data packets that arrive within a second."""
        return int(self.receive(port)[1])

    def receive(self, port: int = 2368) -> tuple[int, ...]:
        with self.machine.python(RECEIVER, port, 5) as receiver:
            return self.received(receiver)

    @staticmethod
    def received(receiver: subprocess.Popen[str]) -> tuple[int, ...]:
        return tuple(int(word) for word in receiver.communicate(timeout=60)[0].removeprefix("bound\n").split())

    def metrics(self, port: int = 9464) -> dict[str, float]:
        """Every sample of /metrics, by its name and labels as written."""
        with self.machine.python(SCRAPE, f"http://127.0.0.1:{port}/metrics") as scrape:
            text = scrape.communicate(timeout=30)[0]
        samples = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
        return {name: float(value) for name, _, value in samples}
