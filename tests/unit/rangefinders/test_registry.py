"""The kinds of ranger: from a rig's table to a sensor."""

import json
import tomllib

import pytest
from pydantic import TypeAdapter, ValidationError

from hilsim.rangefinders.ld06 import Ld06
from hilsim.rangefinders.registry import RANGER_SPECS, build_ranger, ranger_names
from hilsim.rangefinders.sf45 import Sf45
from hilsim.rangefinders.specs import TfminiSpec
from hilsim.rangefinders.tfmini import Tfmini

TABLE = """
[[ranger]]
kind = "tfmini"
port = "/dev/ttyUSB1"
mount_position_m = [0.1, 0, -0.05]
mount_rotation_deg = [0, 90, 0]

[[ranger]]
kind = "sf45"
port = "/dev/ttyUSB2"
update_rates = "eight"

[[ranger]]
kind = "ld06"
port = "/dev/ttyUSB3"
range_noise_m = 0.01
"""


def parsed(table):
    return TypeAdapter(RANGER_SPECS[table["kind"]]).validate_json(json.dumps(table), strict=True, extra="forbid")


def test_a_table_becomes_the_sensor_of_its_kind():
    specs = [parsed(table) for table in tomllib.loads(TABLE)["ranger"]]
    assert [(spec.kind, spec.baud) for spec in specs] == [("tfmini", 115200), ("sf45", 921600), ("ld06", 230400)]
    assert [type(build_ranger(spec, seed=1, stream=number)) for number, spec in enumerate(specs)] == [Tfmini, Sf45, Ld06]


def test_an_unknown_key_is_refused_by_name():
    with pytest.raises(ValidationError, match=r"rotation_hz\s+Unexpected keyword argument"):
        parsed({"kind": "ld06", "port": "/dev/ttyUSB3", "rotation_hz": 10})


def test_the_kind_of_another_sensor_is_refused():
    with pytest.raises(ValidationError, match="Input should be 'sf45'"):
        TypeAdapter(RANGER_SPECS["sf45"]).validate_json('{"kind": "ld06", "port": "/dev/ttyUSB3"}', strict=True)


def test_a_specification_of_no_kind_makes_no_sensor():
    with pytest.raises(TypeError, match=r"^spec must be a TfminiSpec, Sf45Spec or Ld06Spec, got object$"):
        build_ranger(object(), seed=1, stream=0)


def test_rangers_are_called_by_their_kind_and_numbered_where_there_are_several():
    specs = [parsed({"kind": kind, "port": f"/dev/ttyS{place}"}) for place, kind in enumerate(("tfmini", "ld06", "tfmini"))]
    assert ranger_names(specs) == ("tfmini-1", "ld06", "tfmini-2")


def test_a_tfmini_faster_than_its_line_is_refused():
    with pytest.raises(ValueError, match=r"^baud must be at least 90000 for rate_hz 1000 \(frames of 9 bytes\), got 57600$"):
        TfminiSpec(port="/dev/ttyS1", model="tfmini_plus", rate_hz=1000, baud=57600)
