"""Kinds of parts: how they are found, and that a rig without one pays nothing for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from hilsim.config.part_kind import parts_of
from hilsim.config.part_tables import own_kinds, part_kind
from hilsim.config.rig import rig_of_table
from hilsim.daemon.part_list import listed_parts
from hilsim.errors import ConfigError
from hilsim.registry import OWN_PARTS

PARTS = Path(__file__).resolve().parents[3] / "hilsim" / "parts"
WITHOUT = """
import sys
import hilsim.daemon.service
from pathlib import Path
from hilsim.config.rig import rig_of_table
from hilsim.assembly.build import asset_files, build_scenery
from hilsim.daemon.parts import RigContext
from hilsim.daemon.precompile import about, kernel_needs
from hilsim.daemon.streaming.flow_specs import lead_bounds
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.streaming.flow_specs import lead_bounds
from hilsim.telemetry.collector import build_registry
from hilsim.telemetry.faults import Fault
rig = rig_of_table({"name": "bench", "scene": {"generator": "street"}, "sensor": [{"name": "roof"}]}, Path("rig.toml"))
running = RunningRig(rig=rig)
RigContext(rig=rig).scenery(rig), kernel_needs(rig), about(rig), lead_bounds(rig), asset_files(rig), Fault(key="loop_ended", text="x"), build_registry(lambda: None)
print([name for name in sys.modules if name.startswith("hilsim.parts")])
"""


def test_a_rig_without_parts_imports_none():
    assert subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_every_folder_has_a_kind_with_its_table():
    assert {path.parent.name for path in PARTS.glob("*/kind.py")} == {own.folder for own in OWN_PARTS.values()}
    assert [kind.table for kind in own_kinds()] == [*OWN_PARTS]
    assert part_kind("nothing") is None


def test_the_core_names_no_part():
    """Neither by its folder nor by its table."""
    sources = [path for path in PARTS.parent.rglob("*.py") if PARTS not in path.parents and path.name != "registry.py"]
    words = {word for table, own in OWN_PARTS.items() for word in (f"parts.{own.folder}", f'part("{table}")', f"spec.{table}")} | {"rover"}
    assert [str(path) for path in sources if any(word in path.read_text(encoding="utf-8").lower() for word in words)] == []


def test_an_unknown_table_is_a_fault_that_names_those_of_parts_too():
    with pytest.raises(ConfigError, match=r'rovr: unknown key \(did you mean "rover"\?\)'):
        rig_of_table({"name": "bench", "rovr": []}, Path("rig.toml"))
    with pytest.raises(ConfigError, match="parts: unknown key"):
        rig_of_table({"name": "bench", "parts": {}}, Path("rig.toml"))


def test_parts_that_send_nothing_are_left_out_of_a_recording():
    tables = {"rangefinder": [{"kind": "tfmini", "port": "/dev/a"}], "gps_receiver": [{"port": "/dev/b", "latitude_deg": 1.0, "longitude_deg": 1.0}]}
    rig = rig_of_table({"name": "bench", **tables}, Path("rig.toml"))
    assert [kind.sources(None, 1) for kind, _ in parts_of(rig.spec)] == [(), ()]
    assert listed_parts(rig.spec) == {"rovers": [], "replays": []}
