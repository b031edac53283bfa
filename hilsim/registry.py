"""Where the parts of sensor families are found: hilsim's own below ``hilsim.families``, others' by the entry points of plug-ins.

A family is a folder, and its parts are modules of the same names in each. A part is imported when it is first asked for, so a rig with one family's sensors
imports nothing of another's. This is the one place that knows the folder: the engine imports no family.
"""

import importlib
from collections.abc import Mapping
from functools import cache
from importlib import metadata, util
from types import MappingProxyType, ModuleType
from typing import NamedTuple

OWN = ("velodyne", "cepton", "ouster", "livox", "hesai")
"""Families that hilsim has itself, in the order in which a packet is tried; the first is the default of profiles."""

ELSEWHERE = "hilsim.families"
"""Entry point group of lidar families: classes by the ``family`` of a sensor profile."""


class OwnPart(NamedTuple):
    """One of hilsim's own kinds of parts.

    Attributes:
        folder: Folder below ``hilsim.parts``, whose module ``kind`` has its ``KIND`` (``config.part_tables``).
        is_listed: Whether lists of what a rig sends have it where a rig has none of it.
        commands: Commands of ``hilsim`` that it has, each in a module of the folder.
        state: Entries of the answer to ``state`` where a rig has none of it.
        link_examiner: Module of the folder whose ``examined`` examines what is at a port (``hilsim doctor --link``); empty: it has none.
    """

    folder: str
    is_listed: bool = False
    commands: tuple[str, ...] = ()
    state: Mapping[str, object] = MappingProxyType({})
    link_examiner: str = ""


OWN_PARTS = {
    "vehicle": OwnPart("vehicle", state={"vehicle": None}, link_examiner="diagnosis.examination"),
    "rangefinder": OwnPart("rangefinders"),
    "gps_receiver": OwnPart("gps_receivers"),
    "gazebo": OwnPart("gazebo"),
    "external": OwnPart("external", commands=("poses",)),
    "rover": OwnPart("rovers", is_listed=True),
    "replay": OwnPart("replays", is_listed=True, state={"replays": []}),
}
"""hilsim's own kinds of parts by their tables."""


@cache
def family_names() -> tuple[str, ...]:
    """All families: hilsim's own, then those of other distributions."""
    return *OWN, *sorted({point.name for point in metadata.entry_points(group=ELSEWHERE)} - {*OWN})


@cache
def family_part(family: str, name: str) -> ModuleType | None:
    """Module ``name`` of a family's folder; None where the folder has none.

    The folder of a plug-in's family is the one of the module ``family`` that its entry point names; another module brings no parts.
    """
    home = f"{__package__}.families.{family}" if family in OWN else _home_elsewhere(family)
    module = f"{home}.{name}"
    return importlib.import_module(module) if home and util.find_spec(module) else None


def _home_elsewhere(family: str) -> str:
    modules = {point.module for point in metadata.entry_points(group=ELSEWHERE, name=family)}
    home, _, last = modules.pop().rpartition(".") if len(modules) == 1 else ("", "", "")
    return home if last == "family" else ""


@cache
def family_parts(name: str) -> Mapping[str, ModuleType]:
    """Module ``name`` of each family that has one, in the order of ``family_names``."""
    found = ((family, family_part(family, name)) for family in family_names())
    return MappingProxyType({family: module for family, module in found if module is not None})


def part_of(family: type, name: str) -> ModuleType | None:
    """Module ``name`` of a family by its class, or of the nearest family that the class extends; None where none has one."""
    found = (family_part(base.__dict__["name"], name) for base in family.__mro__ if "name" in base.__dict__)
    return next((module for module in found if module is not None), None)
