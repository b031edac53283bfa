"""Ouster's frames become scans, sensor by sensor."""

from dataclasses import replace

import numpy as np

from hilsim.capture.batches import gathered
from hilsim.families.ouster.metadata_files import OusterMetadata
from hilsim.read.scans.points import DECODED_DTYPE
from hilsim.read.scans.streams import SensorStreams
from tests.ouster_sensors import sensor
from tests.ouster_streams import stream

SENSOR = sensor(channels=16, mode="512x10")


def scans_of(datagrams, *metadata, batch=7):
    found, names = [], []
    streams = SensorStreams(lambda scan, packets: found.append((scan, packets)), names.append, metadata={"ouster": OusterMetadata(metadata)})
    for first in range(0, len(datagrams), batch):
        some = gathered(datagrams[first : first + batch])
        streams.add("10.5.5.86", some, np.arange(some.start.size))
    return found, names, streams


def lidar_only(datagrams):
    return [each for each in datagrams if each.destination_port == 7502]


def test_each_frame_is_a_scan_as_soon_as_its_last_packet_came():
    found, names, streams = scans_of(stream(SENSOR, 3), SENSOR)
    assert names == ["10.5.5.86"]
    assert [(scan.number, len(packets.payloads), packets.first) for scan, packets in found] == [(0, 32, 0), (1, 32, 32), (2, 32, 64)]
    assert all(scan.points.dtype == DECODED_DTYPE for scan, _ in found)
    assert found[1][0].points["packet"].min() == 32
    losses = streams.losses()["10.5.5.86"]
    assert (losses.packets, losses.lost, losses.cut_scans) == (96, 0, 0)


def test_a_frame_that_was_not_seen_from_its_beginning_is_left_out():
    found, _, streams = scans_of(lidar_only(stream(SENSOR, 3))[5:], SENSOR)
    assert [len(packets.payloads) for _, packets in found] == [32, 32]
    assert streams.losses()["10.5.5.86"].cut_scans == 1


def test_lost_packets_are_counted_and_the_frame_is_given_without_them():
    datagrams = lidar_only(stream(SENSOR, 3))
    found, _, streams = scans_of(datagrams[:40] + datagrams[43:], SENSOR)
    assert [len(packets.payloads) for _, packets in found] == [32, 29, 32]
    losses = streams.losses()["10.5.5.86"]
    assert (losses.lost, losses.gaps) == (3, 1)


def test_frames_of_an_azimuth_window_are_whole():
    window = replace(SENSOR, column_window=(400, 83))
    found, _, streams = scans_of(stream(window, 2), window)
    assert [len(packets.payloads) for _, packets in found] == [13, 13]
    assert streams.losses()["10.5.5.86"].lost == 0


def test_two_sensors_behind_one_address_have_scans_of_their_own():
    other = sensor(channels=16, mode="512x10", serial="100000000001")
    both = sorted(stream(SENSOR, 2) + stream(other, 2, seed=9), key=lambda each: each.host_stamp_ns)
    found, names, _ = scans_of(both, SENSOR, other)
    assert sorted(names) == ["10.5.5.86", "10.5.5.86-100000000001"] or sorted(names) == ["10.5.5.86", "10.5.5.86-122247000785"]
    assert sorted((scan.sensor, scan.number) for scan, _ in found) == sorted((name, number) for name in names for number in range(2))


def test_packets_without_metadata_are_counted_only():
    found, names, streams = scans_of(stream(SENSOR, 2))
    assert (found, names) == ([], [])
    assert not streams.losses()


def test_metadata_that_come_later_and_those_of_a_sensor_initialised_anew_are_used_from_then_on():
    anew = replace(SENSOR, initialization_id=SENSOR.initialization_id + 1, lidar_mode="1024x10", pixel_shift_by_row=(0,) * 16)
    found, names = [], []
    streams = SensorStreams(lambda scan, _: found.append(scan), names.append)
    for datagrams, known in ((stream(SENSOR, 1), ()), (stream(SENSOR, 2), (SENSOR,)), (stream(anew, 2), (SENSOR, anew))):
        streams.use_metadata({"ouster": OusterMetadata(known)})
        batch = gathered(datagrams)
        streams.add("roof", batch, np.arange(batch.start.size))
        found.append(None)
    assert [scan is None for scan in found] == [True, False, False, True, False, False, True]  # none, then two of each
    assert set(names) == {"roof"}
