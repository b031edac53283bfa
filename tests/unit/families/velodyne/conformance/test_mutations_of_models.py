"""Streams of each model that lenient decoders accept and no sensor sends: each is an error."""

from dataclasses import dataclass

import numpy as np
import pytest

from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE
from hilsim.units import HOUR_US, TURN_CDEG

STREAMS = (("vlp16", {}), ("puck-hi-res", {}), ("vlp32c", {}), ("hdl32e", {}), ("vls128", {}), ("vls128", {"return_mode": "dual"}))
SPAN_NS = 700_000_000
SPANS_NS = {"vls128": 350_000_000}
"""A VLS-128 sends eight times as many packets a second as a VLP-16: what is wrong shows sooner."""


@dataclass
class Own:
    """A model's stream: datagrams, and the rows of its data packets."""

    datagrams: list
    rows: list
    packets: np.ndarray


@pytest.fixture(scope="module", params=STREAMS, ids=lambda stream: "-".join((stream[0], *stream[1].values())))
def model_stream(request, own_stream):
    """A stream of a model; do not write to it."""
    profile, setting = request.param
    datagrams = list(own_stream.emulate(SPANS_NS.get(profile, SPAN_NS), profile=profile, **setting))
    rows = [row for row, datagram in enumerate(datagrams) if len(datagram.payload) == DATA_PACKET_SIZE]
    return Own(datagrams, rows, np.frombuffer(b"".join(datagrams[row].payload for row in rows), DATA_PACKET_DTYPE))


def restamped(packets, stamps):
    packets["timestamp"] = np.asarray(stamps, dtype=np.int64) % HOUR_US


def turned(packets, first, stop, by_cdeg):
    azimuth = packets["blocks"]["azimuth"]
    azimuth[first:stop] = (azimuth[first:stop].astype(int) + by_cdeg) % TURN_CDEG


def broken_flag(packets):
    packets["blocks"]["flag"][100, 7] = 0


def clock_too_fast(packets):
    stamps = packets["timestamp"].astype(np.int64)
    step_us = np.diff(stamps).clip(0).mean()
    restamped(packets, stamps[0] + int(step_us) * np.arange(len(stamps)) - 2 * np.arange(len(stamps)))


def noisy_stamps(packets):
    restamped(packets, packets["timestamp"] + np.rint(np.random.default_rng(3).normal(0, 60, len(packets))))


def stamp_beyond_the_hour(packets):
    packets["timestamp"][200] = HOUR_US + 5


def half_turn(packets):
    turned(packets, 300, None, 18_000)


def repeated_azimuths(packets):
    azimuth = packets["blocks"]["azimuth"]
    azimuth[305:310] = azimuth[300:305]


def reversed_head(packets):
    packets["blocks"]["azimuth"] = (TURN_CDEG - packets["blocks"]["azimuth"].astype(int)) % TURN_CDEG


def doubled_rate(packets):
    packets["blocks"]["azimuth"] = packets["blocks"]["azimuth"].astype(int) * 2 % TURN_CDEG


def azimuth_of_36000(packets):
    packets["blocks"]["azimuth"][50] = TURN_CDEG


def even_distances(packets):
    packets["blocks"]["channels"]["distance"] &= 0xFFFE


def below_the_floor(packets):
    packets["blocks"]["channels"]["distance"][40, 3, 5] = 3


def changed_product(packets):
    packets["product"][400] ^= 0x02


def byte_of_another_mode(packets):
    packets["return_mode"] = 0x37 if packets["return_mode"][0] == 0x39 else 0x39


def unknown_mode_byte(packets):
    packets["return_mode"] = 0x77


def laser_of(packets, number):
    """Records of a laser: of a 16-channel sensor in each half block, of a VLS-128 in one of its banks."""
    channels = packets["blocks"]["channels"]
    if packets["product"][0] == 0xA1 and packets["return_mode"][0] == 0x39:
        return channels[:, 2 * (number // 32) : 2 * (number // 32) + 2, number % 32]
    if packets["product"][0] == 0xA1:
        return channels[:, number // 32 :: 4, number % 32]
    return channels[:, :, number::16] if packets["product"][0] in {0x22, 0x24} else channels[:, :, number]


def constant_laser(packets):
    laser_of(packets, 6)["distance"] = 2501


def permuted_lasers(packets):
    lasers = {0x22: 16, 0x24: 16, 0xA1: 128}.get(int(packets["product"][0]), 32)
    former = packets.copy()
    for number, other in enumerate(np.random.default_rng(5).permutation(lasers)):
        laser_of(packets, number)[:] = laser_of(former, other)


def blank_packet(packets):
    channels = packets["blocks"]["channels"]
    channels["distance"][200] = 0
    channels["reflectivity"][200] = 0


MUTATIONS = (
    broken_flag,
    clock_too_fast,
    noisy_stamps,
    stamp_beyond_the_hour,
    half_turn,
    repeated_azimuths,
    reversed_head,
    doubled_rate,
    azimuth_of_36000,
    even_distances,
    changed_product,
    byte_of_another_mode,
    unknown_mode_byte,
    constant_laser,
    blank_packet,
)


def mutated(stream, mutation):
    """Datagrams of a stream whose data packets a function has written to."""
    packets = stream.packets.copy()
    mutation(packets)
    datagrams = list(stream.datagrams)
    for row, payload in zip(stream.rows, packets, strict=True):
        datagram = datagrams[row]
        changed = {"payload": payload.tobytes()}
        datagrams[row] = type(datagram)(**{name: getattr(datagram, name) for name in datagram.__slots__} | changed)
    return datagrams


def test_the_stream_of_each_model_is_sound(model_stream, judge):
    assert judge(model_stream.datagrams).errors == set()


@pytest.mark.extended
@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: mutation.__name__)
def test_a_wrong_stream_of_each_model_is_an_error(model_stream, judge, mutation):
    assert judge(mutated(model_stream, mutation)).errors != set()


def test_permuted_lasers_are_an_error_of_each_model(model_stream, judge):
    assert "returns.laser_order" in judge(mutated(model_stream, permuted_lasers)).errors


def test_a_distance_below_the_floor_is_a_finding_and_an_error_where_the_floor_is_certain(model_stream, judge):
    verdict = judge(mutated(model_stream, below_the_floor))
    found = verdict.errors if model_stream.packets["product"][0] == 0x22 else verdict.warnings
    assert found == {"returns.minimum"}
