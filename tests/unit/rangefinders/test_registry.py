"""The kinds of range sensor: from a rig's table to a sensor."""

import json
import tomllib

import pytest
from pydantic import TypeAdapter, ValidationError

from hilsim.parts.rangefinders.ld06 import Ld06
from hilsim.parts.rangefinders.registry import RANGEFINDERS, build_rangefinder, rangefinder_names
from hilsim.parts.rangefinders.sf45 import Sf45
from hilsim.parts.rangefinders.tfmini import Tfmini, TfminiSpec

TABLE = """
[[rangefinder]]
kind = "tfmini"
port = "/dev/ttyUSB1"
mount_position_m = [0.1, 0, -0.05]
mount_rotation_deg = [0, 90, 0]

[[rangefinder]]
kind = "sf45"
port = "/dev/ttyUSB2"
update_rates = "eight"

[[rangefinder]]
kind = "ld06"
port = "/dev/ttyUSB3"
range_noise_m = 0.01
"""


def parsed(table):
    return TypeAdapter(RANGEFINDERS[table["kind"]].spec).validate_json(json.dumps(table), strict=True, extra="forbid")


def test_a_table_becomes_the_sensor_of_its_kind():
    specs = [parsed(table) for table in tomllib.loads(TABLE)["rangefinder"]]
    assert [(spec.kind, spec.baud) for spec in specs] == [("tfmini", 115200), ("sf45", 921600), ("ld06", 230400)]
    assert [type(build_rangefinder(spec, seed=1, stream=number)) for number, spec in enumerate(specs)] == [Tfmini, Sf45, Ld06]


def test_an_unknown_key_is_refused_by_name():
    with pytest.raises(ValidationError, match=r"rotation_hz\s+Unexpected keyword argument"):
        parsed({"kind": "ld06", "port": "/dev/ttyUSB3", "rotation_hz": 10})


def test_the_kind_of_another_sensor_is_refused():
    with pytest.raises(ValidationError, match="Input should be 'sf45'"):
        TypeAdapter(RANGEFINDERS["sf45"].spec).validate_json('{"kind": "ld06", "port": "/dev/ttyUSB3"}', strict=True)


def test_a_specification_of_no_kind_makes_no_sensor():
    with pytest.raises(TypeError, match=r"^spec must be of one of the kinds tfmini, sf45, ld06, got object$"):
        build_rangefinder(object(), seed=1, stream=0)


def test_rangefinders_are_called_by_their_kind_and_numbered_where_there_are_several():
    specs = [parsed({"kind": kind, "port": f"/dev/ttyS{place}"}) for place, kind in enumerate(("tfmini", "ld06", "tfmini"))]
    assert rangefinder_names(specs) == ("tfmini-1", "ld06", "tfmini-2")


def test_a_tfmini_faster_than_its_line_is_refused():
    with pytest.raises(ValueError, match=r"^baud must be at least 90000 for rate_hz 1000 \(frames of 9 bytes\), got 57600$"):
        TfminiSpec(port="/dev/ttyS1", model="tfmini_plus", rate_hz=1000, baud=57600)
