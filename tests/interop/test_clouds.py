"""PointCloud2 messages of exported bags, against an independent decoder's points of the same packets; what differs is listed in ``test_decode``."""

import numpy as np
import pytest
from click.testing import CliRunner
from rosbags.highlevel import AnyReader
from velodyne_decoder import Model

import hilsim
from hilsim.cli import cli
from hilsim.show.outputs.events import OutputScan
from hilsim.show.outputs.ros import ros_typestore
from hilsim.show.outputs.sources import capture_events
from hilsim.units import NS_PER_S
from tests.interop.test_decode import READING_NOISE_DEG, ROUNDING_DEG, TIME_NS, Case, theirs

EDGE_NS = 5_000_000
"""Time near the first and the last turn in which a head's lasers are in two turns."""
CASES = [
    (Case("vlp16_strongest_gps", Model.VLP16, "VLP-16", 40, 0.0), 6e-5),
    (Case("emulated_dual", Model.VLP16, "VLP-16", 40, 0.0), 6e-5),
    (Case("hdl32e_strongest", Model.HDL32E, "HDL-32E", 20, 0.0), 0.03),
]


def exported(capture, folder, layout):
    """Points of the clouds of a bag, which are stamped by the host, and the sensor's stamp of each point, ns past the hour."""
    scans = [event for event in capture_events(capture)[1] if isinstance(event, OutputScan)]
    by_sensor_ns = {scan.stamp_ns if scan.host_stamp_ns is None else scan.host_stamp_ns: scan.stamp_ns for scan in scans}
    words = ["export", str(capture), "-o", str(folder), "--format", "ros2", "--no-packets", "--layout", layout]
    assert CliRunner().invoke(cli, words, catch_exceptions=False).exit_code == 0
    clouds, stamps = [], []
    with AnyReader([folder], default_typestore=ros_typestore()) as reader:
        for connection, _, data in reader.messages():
            if not connection.topic.endswith("/points"):
                continue
            message = reader.deserialize(data, connection.msgtype)
            names = [field.name for field in message.fields]
            kinds = [{7: "<f4", 2: "u1", 4: "<u2", 6: "<u4"}[field.datatype] for field in message.fields]
            offsets = [field.offset for field in message.fields]
            dtype = np.dtype({"names": names, "formats": kinds, "offsets": offsets, "itemsize": message.point_step})
            clouds.append(np.frombuffer(message.data, dtype))
            after_ns = clouds[-1]["time"] * 1e9 if "time" in names else clouds[-1]["time_stamp"]
            host_ns = message.header.stamp.sec * NS_PER_S + message.header.stamp.nanosec
            stamps.append(by_sensor_ns[host_ns] % (3600 * NS_PER_S) + after_ns.astype(np.int64))
    return np.concatenate(clouds), np.concatenate(stamps)


@pytest.mark.parametrize("layout", ["xyzirt", pytest.param("xyzircaedt", marks=pytest.mark.extended)])
@pytest.mark.parametrize(("case", "height_m"), CASES, ids=lambda value: getattr(value, "capture", ""))
def test_clouds_of_a_bag_are_the_points_of_an_independent_decoder(capture, tmp_path, case, height_m, layout):
    if case.capture == "emulated_dual":  # the real one's stamps count no UTC
        path = tmp_path / "dual.pcap"
        hilsim.record(hilsim.load_rig("demo", settings={"sensor.roof.return_mode": "dual"}), path, duration_s=0.5)
    else:
        path = capture(f"{case.capture}.pcap")
    points, stamps_ns = exported(path, tmp_path / "bag", layout)
    judged, judged_ns = theirs(path, case)
    instants = np.unique(stamps_ns)
    place = np.clip(np.searchsorted(instants, judged_ns), 1, instants.size - 1)
    place -= judged_ns - instants[place - 1] < instants[place] - judged_ns
    is_known = np.abs(instants[place] - judged_ns) <= 2 * TIME_NS
    is_within = (judged_ns > stamps_ns.min() + EDGE_NS) & (judged_ns < stamps_ns.max() - EDGE_NS)
    assert is_known[is_within].all()
    assert is_within.sum() > 0.5 * judged.size
    judged, is_within = judged[is_known], is_within[is_known]
    ring = points["ring" if layout == "xyzirt" else "channel"]
    key = np.searchsorted(instants, stamps_ns) * 512 + ring * 2
    judged_key = place[is_known] * 512 + judged["ring"].astype(int) * 2
    if "dual" in case.capture:  # of a pair, the nearer one first: of two lasers at one instant there are none
        key, judged_key = (each + is_farther(each, cloud) for each, cloud in ((key, points), (judged_key, judged)))
    _, mine, other = np.intersect1d(key, judged_key, return_indices=True)
    assert np.unique(key).size == key.size == mine.size
    assert np.isin(judged_key[is_within], key).all()
    points, judged = points[mine], judged[other]
    np.testing.assert_array_equal(points["intensity"], judged["intensity"])
    xyz, judged_xyz = (np.stack([cloud[axis] for axis in "xyz"], axis=1).astype(float) for cloud in (points, judged))
    range_m = np.linalg.norm(judged_xyz, axis=1)
    apart_m = np.linalg.norm(xyz - judged_xyz, axis=1)
    assert (apart_m <= np.radians(ROUNDING_DEG + READING_NOISE_DEG) * range_m + height_m).all()
    np.testing.assert_allclose(np.linalg.norm(xyz[:, :2], axis=1), np.linalg.norm(judged_xyz[:, :2], axis=1), rtol=1e-6)


def is_farther(key, cloud):
    """1 for the farther return of two of one firing, 0 for the nearer and for a single one."""
    range_m = np.sqrt(cloud["x"].astype(float) ** 2 + cloud["y"].astype(float) ** 2 + cloud["z"].astype(float) ** 2)
    order = np.lexsort((range_m, key))
    found = np.zeros(key.size, int)
    found[order[1:]] = np.diff(key[order]) == 0
    return found
