"""Our points against an independent decoder's (velodyne-decoder), for every model of which there is a capture.

What differs, and by how much: the decoder turns each firing by the mean rate of its packet and rounds the azimuth to 0.01 degrees, where we interpolate to
the next block; the heights of lasers' origins are known to hilsim of a VLP-16 only, and rounded to
0.1 mm; and of a VLS-128 it takes other slots of time, and does not turn the firings of the
first packet.
"""

from typing import NamedTuple

import dpkt
import numpy as np
import pytest
from velodyne_decoder import Config, Model, read_pcap

from hilsim.capture.batches import CaptureBatches
from hilsim.families.velodyne.points import decode_velodyne
from hilsim.families.velodyne.protocol.data import DATA_PACKET_SIZE
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.stream import packet_run, stacked_packets
from hilsim.units import HOUR_US, NS_PER_S

HEADERS_SIZE = 42
ROUNDING_DEG = 0.005 + 1e-4
READING_NOISE_DEG = 0.03
TIME_NS = 300  # the decoder's stamps are seconds since 1970 in a float64
SLOTS_NS = 12_000


class Case(NamedTuple):
    capture: str
    model: Model
    geometry: str
    step_cdeg: int  # of an even turn
    slot_deg: float  # how far the head turns in a slot of which decoders are not of one mind


CASES = [
    Case("vlp16_strongest_gps", Model.VLP16, "VLP-16", 40, 0.0),
    Case("vlp16_dual", Model.VLP16, "VLP-16", 40, 0.0),
    Case("hdl32e_strongest", Model.HDL32E, "HDL-32E", 20, 0.0),
    Case("vlp32c_strongest_fov", Model.VLP32C, "VLP-32C", 20, 0.0),
    Case("vls128_strongest", Model.VLS128, "VLS-128", 20, 0.011),
]


def ours(path, case):
    """Points, and whether each packet's azimuths go on without a gap."""
    points, packets = [], []
    for batch in CaptureBatches(path):
        chosen = batch.size == DATA_PACKET_SIZE
        points.append(decode_velodyne(batch, BY_NAME[case.geometry].geometry, chosen))
        points[-1]["packet"] += len(packets)
        packets += [batch.data[start : start + DATA_PACKET_SIZE].tobytes() for start in batch.start[chosen]]
    points = np.concatenate(points)
    has_gap = packet_run(stacked_packets(packets), None).azimuth_steps().has_gap
    order = np.lexsort((points["return_number"], points["time_ns"], points["packet"])) if "dual" in case.capture else slice(None)
    has_gap[0] |= case.model is Model.VLS128  # of which the decoder knows no rate yet
    return points[order], ~has_gap[points["packet"][order]]


def theirs(path, case):
    """The decoder's points, and the sensor's stamp of each, ns past the hour."""
    scans = list(read_pcap(str(path), Config(model=case.model, min_range=0.0, max_range=500.0), as_pcl_structs=True))
    stamps = [stamp.device % 3600 * NS_PER_S + cloud["time"].astype(float) * NS_PER_S for stamp, cloud in scans]
    return np.concatenate([cloud for _, cloud in scans]), np.concatenate(stamps)


def check(path, case, azimuth_deg):
    points, goes_on = ours(path, case)
    judged, stamps_ns = theirs(path, case)
    assert points.size == judged.size
    np.testing.assert_array_equal(points["ring"], judged["ring"])
    np.testing.assert_array_equal(points["intensity"], judged["intensity"])
    if "dual" in case.capture:
        np.testing.assert_array_equal(points["return_number"] == 1, judged["return_type"] == 1)
    level, judged_level = np.hypot(points["x"], points["y"]), np.hypot(judged["x"], judged["y"])
    np.testing.assert_allclose(level, judged_level, rtol=1e-6)
    for ring in np.unique(points["ring"]):
        height = (judged["z"] - points["z"])[points["ring"] == ring]
        assert np.ptp(height) <= 1e-6 * level.max()
        assert np.abs(height).max() < (6e-5 if case.geometry == "VLP-16" else 0.03)
    height = np.sort(np.array(BY_NAME[case.geometry].geometry.vertical_offset_mm or [0.0]))[::-1] * 1e-3
    z = points["z"] - (height[points["ring"]] if height.size > 1 else 0.0)
    np.testing.assert_allclose(points["range"], np.hypot(level.astype(float), z), rtol=1e-6)
    judged_azimuth = np.degrees(np.arctan2(-judged["y"].astype(float), judged["x"].astype(float)))
    of_points = np.degrees(np.arctan2(points["x"].astype(float), points["y"].astype(float)))
    np.testing.assert_allclose((of_points - points["azimuth"] + 180) % 360 - 180, 0.0, atol=1e-4)
    apart_deg = (judged_azimuth - of_points + 180) % 360 - 180
    assert np.abs(apart_deg[goes_on]).max() <= azimuth_deg + case.slot_deg
    apart_ns = (points["time_ns"] - stamps_ns + 500 * HOUR_US) % (1000 * HOUR_US) - 500 * HOUR_US
    assert np.abs(apart_ns).max() <= (SLOTS_NS if case.slot_deg else TIME_NS)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.capture)
def test_points_of_real_captures_are_those_of_an_independent_decoder(capture, case):
    check(capture(f"{case.capture}.pcap"), case, ROUNDING_DEG + READING_NOISE_DEG)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.capture)
def test_of_a_head_that_turns_evenly_azimuths_are_the_same_but_for_the_decoders_rounding(capture, tmp_path, case):
    groups = 4 if case.geometry == "VLS-128" else 2 if "dual" in case.capture else 1
    number = 0
    path = tmp_path / "even.pcap"
    with capture(f"{case.capture}.pcap").open("rb") as file, path.open("wb") as out:
        writer = dpkt.pcap.Writer(out)
        for stamp, frame in dpkt.pcap.Reader(file):
            if len(frame) != HEADERS_SIZE + DATA_PACKET_SIZE:
                continue
            even = bytearray(frame)
            for block in range(12):
                azimuth = (number * 12 // groups + block // groups) * case.step_cdeg % 36_000
                even[HEADERS_SIZE + 100 * block + 2 : HEADERS_SIZE + 100 * block + 4] = azimuth.to_bytes(2, "little")
            number += 1
            writer.writepkt(bytes(even), stamp)
    check(path, case, ROUNDING_DEG)
