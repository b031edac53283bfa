"""Emulated Ouster packets in the vendor's SDK: every pixel of ten frames lies on a surface of the room by its own table of directions."""

import json

import numpy as np
import pytest

from hilsim.protocols.ouster.metadata import metadata_document
from tests.interop.ouster_judge import judge
from tests.unit.emulator.test_ouster_lidar import ROOM, of_model, ouster, outside_m

FRAMES, PACKETS = 10, 64


@pytest.mark.parametrize(("name", "profile", "most_m"), [("os0-128", "RNG19_RFL8_SIG16_NIR16_DUAL", 0.0006), ("os1-32", "RNG15_RFL8_NIR8", 0.0042)])
def test_every_pixel_of_ten_frames_is_where_the_sdks_table_has_a_surface(name, profile, most_m):
    lidar = ouster(spec=of_model(name), udp_profile_lidar=profile)
    metadata = lidar.setting.family.metadata(0, destination="127.0.0.1", data_port=None, position_port=None)
    text = json.dumps(metadata_document(metadata))
    payloads = lidar.data_packets(0, FRAMES * PACKETS).payload
    (fields,) = judge([{"metadata": text, "lidar": payloads}])
    ranges = np.concatenate(list(fields["field.RANGE"]), axis=1).astype(np.uint32)
    columns = fields["column.MEASUREMENT_ID"].reshape(-1)
    assert columns.tolist() == list(range(1024)) * FRAMES
    frames = [np.ascontiguousarray(ranges[:, frame * 1024 : (frame + 1) * 1024]) for frame in range(FRAMES)]
    hits = 0
    for found, frame in zip(judge([{"metadata": text, "range": each} for each in frames]), frames, strict=True):
        points = found["points"].reshape(*frame.shape, 3)
        is_return = frame > 0
        hits += int(is_return.sum())
        assert outside_m(points[is_return], ROOM).max() < most_m  # half a step of the range, and rounding
    assert hits > 0.6 * ranges.size
