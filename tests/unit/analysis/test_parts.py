"""What each family gives has the type that the engine describes."""

import pytest

from hilsim.emulator.insertion.part import InsertionPart
from hilsim.emulator.replaying import ReplayingPart, has_points
from hilsim.protocols.recognise import PacketKind
from hilsim.read.analysis.calibration import CalibrationPart
from hilsim.read.analysis.comparison.part import ComparisonPart
from hilsim.read.analysis.conformance.part import ConformancePart
from hilsim.read.analysis.inspection.part import InspectionPart
from hilsim.read.analysis.picture.part import PicturePart
from hilsim.registry import OWN, family_parts

PARTS = {
    "calibration": CalibrationPart,
    "comparison": ComparisonPart,
    "conformance": ConformancePart,
    "insertion": InsertionPart,
    "inspection": InspectionPart,
    "picture": PicturePart,
    "replaying": ReplayingPart,
}


@pytest.mark.parametrize("name", PARTS)
def test_a_familys_part_is_what_the_engine_describes(name):
    assert [module.PART for module in family_parts(name).values() if not isinstance(module.PART, PARTS[name])] == []


@pytest.mark.parametrize("name", ["conformance", "inspection", "picture", "replaying"])
def test_streams_of_every_family_of_hilsims_own_can_be_read(name):
    assert tuple(family_parts(name))[: len(OWN)] == OWN


def test_stamps_of_all_points_of_hilsims_own_families_are_understood():
    kinds = [kind for family in PacketKind.__subclasses__() for kind in family if kind.facts.family in OWN]
    assert {kind for kind in kinds if has_points(kind)} == {kind for kind in kinds if kind.facts.is_decoded} != set()


def test_no_two_families_inspect_packets_of_one_kind():
    kinds = [kind for module in family_parts("inspection").values() for kind in module.PART.kinds]
    assert len(set(kinds)) == len(kinds)
