"""A VLP-32C with a limited field of view has the structure of a real unit's stream: the same measures of both."""

import numpy as np
import pytest

import hilsim
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE
from hilsim.units import HOUR_US, TURN_CDEG
from tests.support import ROOM

LEAP_CDEG = 1000
CYCLES_US = {663, 664}


@pytest.fixture(params=["real", "emulated"])
def packets(request, tmp_path):
    """Data packets of half a second."""
    if request.param == "real":
        path = request.getfixturevalue("capture")("vlp32c_strongest_fov.pcap")
    else:
        path = tmp_path / "out.pcap"
        (tmp_path / "rig.toml").write_text(ROOM.replace('name = "lidar"', 'name = "lidar"\nprofile = "vlp32c"\nfield_of_view_deg = [270, 90]'))
        hilsim.record(tmp_path / "rig.toml", path, duration_s=0.5)
    payloads = [packet.payload for packet in hilsim.read_capture(path) if len(packet.payload) == DATA_PACKET_SIZE]
    return np.frombuffer(b"".join(payloads), DATA_PACKET_DTYPE)


@pytest.fixture
def leaps(packets):
    """Index of each block, over all packets, after which the azimuth leaps; the azimuths before and after."""
    azimuth = packets["blocks"]["azimuth"].astype(int).ravel()
    block = np.flatnonzero(np.diff(azimuth) % TURN_CDEG > LEAP_CDEG)
    return block, azimuth[block], azimuth[block + 1]


def test_every_packet_is_whole_and_the_azimuth_leaps_once_a_turn_at_the_edges_of_the_field(packets, leaps):
    block, before, after = leaps
    assert (packets["blocks"]["flag"] == 0xEEFF).all()
    assert len(block) in {4, 5}
    assert ((before >= 9060) & (before < 9100)).all()
    assert ((after >= 27000) & (after < 27040)).all()
    # Half a turn of blocks between two leaps, 0.199 degrees each.
    assert (np.abs(np.diff(block) - 18100 / 19.9) < 12).all()


def test_leaps_are_inside_packets_at_varying_blocks_and_no_packet_is_sent_early(packets, leaps):
    block, _, _ = leaps
    places = block % 12
    assert len(set(places.tolist())) > 1
    inside = places != 11
    assert inside.sum() >= len(places) - 1  # one in twelve is between two packets by chance
    step_us = np.diff(packets["timestamp"].astype(int)) % HOUR_US
    of_leaps = block // 12
    of_leaps = of_leaps[of_leaps < len(step_us)]
    ordinary = np.delete(step_us, of_leaps)
    assert set(ordinary.tolist()) <= CYCLES_US
    # The packet that holds the leap has the stamp of its own first firing; the next one is later by the turn outside the field.
    outside_us = step_us[of_leaps] - 663.552
    np.testing.assert_allclose(outside_us, 49_711, atol=60)


def test_stamps_are_those_of_a_clock_that_runs_on_outside_the_field(packets):
    stamps = np.unwrap(packets["timestamp"].astype(float), period=HOUR_US)
    sequences = (stamps - stamps[0]) / 55.296
    assert np.abs(sequences - np.rint(sequences)).max() < 0.1
