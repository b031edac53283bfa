"""Emulated Ouster packets in the vendor's SDK: every pixel of ten frames lies on a surface of the room by its own table of directions."""

import json

import numpy as np
import pytest

import hilsim
from hilsim.families.ouster.protocol.metadata import metadata_document
from tests.interop.ouster_judge import judge
from tests.unit.families.ouster.test_lidar import ROOM, of_model, ouster, outside_m

FRAMES, PACKETS = 10, 64
OS1 = {"name": "top", "profile": "os1-32", "unit": "ideal", "sub_rays": 1, "network": {"destination": "127.0.0.1"}}


@pytest.mark.parametrize(
    ("name", "profile", "most_m"),
    [pytest.param("os0-128", "RNG19_RFL8_SIG16_NIR16_DUAL", 0.0006, marks=pytest.mark.extended), ("os1-32", "RNG15_RFL8_NIR8", 0.0042)],
)
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


def test_the_sdk_reads_a_recording_with_the_metadata_that_are_written_beside_it(tmp_path):
    rig = hilsim.load_rig({"name": "bench", "scene": {"box": [{"name": "wall", "size_m": [30.0, 30.0, 8.0]}]}, "sensor": [OS1]})
    hilsim.record(rig, tmp_path / "drive.pcap", duration_s=0.25)
    payloads = [packet.payload for packet in hilsim.read_capture(tmp_path / "drive.pcap") if packet.stream == "lidar"]
    metadata = (tmp_path / "drive.json").read_text()
    (fields,) = judge([{"metadata": metadata, "lidar": np.frombuffer(b"".join(payloads), np.uint8).reshape(len(payloads), -1)}])
    own = hilsim.decode(tmp_path / "drive.pcap")
    ranges = np.concatenate(list(fields["field.RANGE"]), axis=1)
    assert np.count_nonzero(ranges) == own.size > 10_000
