"""Points that hilsim decodes of Ouster packets lie where the table of the vendor's SDK puts them."""

import json

import numpy as np
import pytest

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.families.ouster.points import OusterDecoder, stacked_payloads
from hilsim.families.ouster.protocol.metadata import metadata_document
from hilsim.families.ouster.protocol.profiles import PROFILES
from hilsim.families.ouster.recognition import OusterKind
from hilsim.protocols.recognise import recognise
from tests.interop.ouster_judge import judge
from tests.ouster_sensors import sensor
from tests.ouster_streams import lidar_payloads

ROUNDING_M = 2e-5
"""Of float32 at 300 m, the largest range of the captures."""


def sdk_points(text, payloads):
    """Points ``[return, channel, column, 3]`` of one frame by the SDK: its own fields, and its table; NaN without a return."""
    (fields,) = judge([{"metadata": text, "lidar": payloads}])
    names = [name for name in ("field.RANGE", "field.RANGE2") if name in fields]
    ranges = [np.concatenate(list(fields[name]), axis=1).astype(np.uint32) for name in names]
    tables = judge([{"metadata": text, "range": each} for each in ranges])
    places = [table["points"].reshape(*each.shape, 3) for table, each in zip(tables, ranges, strict=True)]
    return np.stack([np.where(each[..., None] > 0, place, np.nan) for place, each in zip(places, ranges, strict=True)]), fields


def assert_alike(decoder, payloads, text):
    """Each point is where the SDK has it, and there are as many."""
    expected, fields = sdk_points(text, payloads)
    points = decoder.points(payloads)
    assert points.size == np.isfinite(expected[..., 0]).sum()
    row = decoder.sensor.beams.channels - 1 - points["ring"]
    place = np.stack([points["y"], -points["x"], points["z"]], axis=1)
    np.testing.assert_allclose(place, expected[points["return_number"], row, points["column"]], atol=ROUNDING_M)
    for name, key in (("near_ir", "field.NEAR_IR"), ("signal", "field.SIGNAL")):
        if key in fields:
            first = points["return_number"] == 0
            values = np.concatenate(list(fields[key]), axis=1)
            np.testing.assert_array_equal(points[name][first], values[row[first], points["column"][first]])


@pytest.mark.parametrize("name", PROFILES)
def test_points_of_every_profile_are_where_the_sdk_has_them(name):
    metadata = sensor(name, 16, "3.1.0" if name != "LEGACY" else "2.3.0", mode="512x10")
    payloads = stacked_payloads([payload for _, payload in lidar_payloads(metadata)])
    assert_alike(OusterDecoder(metadata), payloads, json.dumps(metadata_document(metadata)))


@pytest.mark.parametrize("name", ["OS-2-128-U1_v2.3.0_1024x10", "OS-0-32-U1_v2.2.0_1024x10"])
def test_points_of_real_captures_are_where_the_sdk_has_them(capture, name):
    path = capture(f"ouster/{name}.pcap")
    (metadata,) = OusterMetadata(capture=path).sensors
    payloads = stacked_payloads([each.payload for each in CaptureFile(path) if recognise(each.payload) is OusterKind.LIDAR])
    assert_alike(OusterDecoder(metadata), payloads, path.with_suffix(".json").read_text())
    assert hilsim.decode(path).size == OusterDecoder(metadata).points(payloads).size
