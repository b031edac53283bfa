"""What pages of the documentation take for granted when they show a command: files, streams, controllers. And the places that commands have in a test."""

import os
import shutil
import subprocess
import sys
import time
import tomllib
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import hilsim
from hilsim.testing.reservations import reserved_port
from hilsim_flight_controller import FlightController
from tests import commands
from tests.edited import edited_copy
from tests.pages import ROOT, blocks_of
from tests.plugins import EXAMPLE, install_example
from tests.support import ROOM, write_rig
from tests.system.conftest import START_TIMEOUT_S

PORTS = ("data", "position", "metrics", "control", "simulation")


@dataclass
class Shell:
    """Where a page's commands run: a folder, ports of its own, and an environment.

    Attributes:
        page: The page.
        here: The folder.
        ports: By what they are for.
        environment: Of every process.
        held: What ends with the page.
    """

    page: Path
    here: Path
    ports: dict
    environment: dict
    held: ExitStack = field(default_factory=ExitStack)

    def network(self, source="127.0.1.201"):
        """Keys of a sensor that sends to the page's ports."""
        data, position = self.ports["data"], self.ports["position"]
        return f'\n[sensor.network]\nsource = "{source}"\nsource_ports = "any"\ndata_port = {data}\nposition_port = {position}\n'

    def captures(self, *names, duration_s=0.4, **changed):
        """Captures of one sensor in a room, all the same."""
        first = self.here / names[0]
        hilsim.record(write_rig(self.here, ROOM + self.network(), "of-captures.toml", **changed), first, duration_s=duration_s)
        for name in names[1:]:
            shutil.copy(first, self.here / name)

    def write(self, more="", **changed):
        """A rig of one sensor in a room."""
        return write_rig(self.here, ROOM + self.network() + more, **changed)

    def stream(self, rig, *arguments):
        """A daemon until the page ends, with its first packets sent."""
        ready = self.here / "stream.json"
        words = ["run", rig, *arguments, "--set", "metrics.port=0", "--quiet", "--ready-file", ready]
        with (self.here / "stream.log").open("w") as log:
            process = commands.start(*words, cwd=self.here, stdout=log, stderr=log)
        self.held.callback(process.wait)
        self.held.callback(process.terminate)
        deadline_s = time.monotonic() + START_TIMEOUT_S
        while not ready.exists():
            assert process.poll() is None, (self.here / "stream.log").read_text()
            assert time.monotonic() < deadline_s, "the stream took too long to start"
            time.sleep(0.02)


def _drive(shell):
    """A capture of a sensor, and the poses of what carried it."""
    shell.captures("drive.pcap")
    (shell.here / "drive.csv").write_text("time_s,x,y,z,qw,qx,qy,qz\n0,0,0,0,1,0,0,0\n1,5,0,0,1,0,0,0\n")


@contextmanager
def shell_of(page, here, programs):
    """A shell for a page, with all that the page speaks of."""
    with ExitStack() as held:
        ports = {name: held.enter_context(reserved_port()) for name in PORTS}
        (here / ".venv").symlink_to(programs.parent)
        environment = os.environ | {"PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "EDITOR": "true"}
        shell = Shell(page=page, here=here, ports=ports, environment=environment, held=held)
        PREPARED.get(page.name, lambda _: None)(shell)
        yield shell


def programs_in(directory, door=None):
    """The ``bin`` of a virtual environment with this one's ``hilsim`` and ``python``, and with a ``pip`` that fetches nothing and a checker of contents alone.

    With a ``tests.commands.door``, ``hilsim`` asks there.
    """
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
    programs = directory / "bin"
    for name in ("python", "python3"):
        (programs / name).unlink()
    stand_ins = {name: Path(__file__).with_name(f"{file}.py") for name, file in (("pip", "pip_of_pages"), ("verify-contents", "verify_contents"))}
    hilsim_command = "-m hilsim" if door is None else f"-I -S {Path(__file__).with_name('hilsim_of_pages.py')} {door}"
    for name, what in {"hilsim": hilsim_command, "python": "", "python3": "", **stand_ins}.items():
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {what} "$@"\n')
        (programs / name).chmod(0o755)
    return programs


# What each page needs


def _readme(shell):
    ports = (f"sensor.roof.network.{name}_port={shell.ports[name]}" for name in ("data", "position"))
    shell.stream("demo", "--set", "sensor.roof.sub_rays=1", *(word for port in ports for word in ("--set", port)))


def _cepton(shell):
    shell.stream("cepton", "--set", f"sensor.roof.network.data_port={shell.ports['data']}")


def _verify(shell):
    shell.captures("drive.pcap")
    shell.stream(shell.write())


def _compare(shell):
    shell.write()
    shell.captures("real.pcap", duration_s=1.0, **{"seed = 5": "seed = 6"})


def _judge(shell):
    pytest.importorskip("sklearn")
    shell.captures("real-1.pcap", "real-2.pcap", "emulated-1.pcap", "emulated-2.pcap", duration_s=0.2)


def _report(shell):
    (shell.here / "profiles").symlink_to(ROOT / "profiles")
    shell.captures("sample_velodyne_vlp16_gps.pcap")


def _backgrounds(shell):
    """A room at several times, two Cepton-style sensors beside each other, and an HDL-32E."""
    (shell.here / "data").mkdir()
    shell.captures("morning.pcap", "noon.pcap", "evening.pcap", "later.pcap", "data/1.pcap", "data/2.pcap")
    shutil.copy(ROOT / "pyproject.toml", shell.here)
    two = "".join(
        f'\n[[sensor]]\nname = "{name}"\nprofile = "hr80t-like"\nmount_position_m = [0.0, 0.0, 1.0]\n[sensor.network]\nsource = "{source}"\n'
        for name, source in (("left", "192.168.32.87"), ("right", "192.168.48.101"))
    )
    room = ROOM.split("[[sensor]]")[0]
    hilsim.record(write_rig(shell.here, room + two, "two.toml"), shell.here / "cepton_hr80_two_sensors.pcap", duration_s=0.4)
    hdl = room + '\n[[sensor]]\nname = "top"\nprofile = "hdl32e"\n'
    hilsim.record(write_rig(shell.here, hdl, "hdl.toml"), shell.here / "hdl32e_strongest.pcap", duration_s=0.5)


def _driven(shell):
    """The page's first program and the rig that replays its poses."""
    (shell.here / "drive.py").write_text(blocks_of(shell.page, "python")[0].text)
    (shell.here / "again.toml").write_text(blocks_of(shell.page, "toml")[0].text)


def _insert(shell):
    shell.captures("drive.pcap", duration_s=1.0)
    (rig,) = (block for block in blocks_of(shell.page, "toml"))
    (shell.here / "inserted.toml").write_text(rig.text)


def _overlay(shell):
    shell.captures("hall.pcap")


def _truth(shell):
    pytest.importorskip("pyarrow", reason="the extra truth is not installed")
    shutil.copy(ROOT / "pyproject.toml", shell.here)
    shell.write()


def _record(shell):
    shell.write()


def _replay(shell):
    """Captures, and the daemon of the page's own rig with its control socket and port."""
    text = ROOM + shell.network("192.168.1.201")
    hilsim.record(write_rig(shell.here, text, "long.toml"), shell.here / "front.pcap", duration_s=13.0)
    shell.captures("drive.pcap", "rear.pcap")
    (rig,) = blocks_of(shell.page, "toml")
    where = {"control.socket": shell.here / "control", "control.listen": f"127.0.0.1:{shell.ports['control']}"}
    where |= {f"sensor.side.network.{name}_port": shell.ports[name] for name in ("data", "position")} | {"sensor.side.network.source_ports": "any"}
    where |= {"sensor.side.sub_rays": 1}
    path = write_rig(shell.here, rig.text + "[[scene.box]]\nposition_m = [5.0, 0.0, 0.0]\nsize_m = [1.0, 4.0, 2.0]\n", "bench.toml")
    shell.stream(path, *(word for key, value in where.items() for word in ("--set", f"{key}={value}")))


def _gazebo(shell):
    """The examples."""
    shutil.copytree(ROOT / "examples", shell.here / "examples", ignore=shutil.ignore_patterns("__pycache__"))


def _plugin(shell):
    """The example's folder, and the example installed."""
    shutil.copytree(EXAMPLE, shell.here, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    _prefix(shell, install_example(shell.here / "site"))
    sink = next(block.text for block in blocks_of(shell.page, "toml") if "[[sink]]" in block.text)
    shell.write(sink, **{'name = "lidar"': 'name = "lidar"\nprofile = "spinner16"'})


def _edited(shell):
    """What the page makes of hilsim, and the rig that the page shows."""
    (shell.here / "checkout").mkdir()
    shell.environment |= edited_copy(shell.page.name, shell.here / "checkout")
    (rig,) = [block.text for block in blocks_of(shell.page, "toml") if "<name>" not in block.text]
    if "name" in tomllib.loads(rig):
        write_rig(shell.here, rig.replace('port = "/tmp/', f'port = "{shell.here}/'), "beat.toml")
    else:
        shell.write(rig)


def _controllers(shell):
    """A scripted flight controller at a serial port, and one that connects as PX4's simulation does."""
    for link in (f"pty:{shell.here / 'board'}", f"tcp:127.0.0.1:{shell.ports['simulation']}"):
        shell.held.enter_context(FlightController(link=link, script="idle"))


def _prefix(shell, directory):
    shell.environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(directory), shell.environment.get("PYTHONPATH"))))


PREPARED = {
    "README.md": _readme,
    "add-a-serial-device.md": _edited,
    "add-an-output.md": _edited,
    "be-the-lidar-of-a-simulator.md": _driven,
    "capture-a-background.md": _backgrounds,
    "cepton.md": _cepton,
    "compare-two-streams.md": _compare,
    "flight-controller-diagnosis.md": _controllers,
    "gazebo.md": _gazebo,
    "ground-truth.md": _truth,
    "insert-into-recordings.md": _insert,
    "judge-fidelity.md": _judge,
    "map-returns.md": _drive,
    "overlay.md": _overlay,
    "record-what-was-sent.md": _record,
    "replay-captures.md": _replay,
    "verify-a-sensor.md": _verify,
    "vlp16-against-real-units.md": _report,
    "write-a-plugin.md": _plugin,
}
"""Files in a page's folder, and programs beside it; a page that is not here needs nothing."""
