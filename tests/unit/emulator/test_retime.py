"""Recorded packets made to name the present."""

import numpy as np
import pytest

from hilsim.emulator.replaying import retiming_of
from hilsim.emulator.retime import NOTHING, Retiming, StampClock
from hilsim.emulator.retime import retime as retime_kernel
from hilsim.families.cepton.protocol.info import encode_info_packet
from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.velodyne.recognition import VelodyneKind

CLOCK = StampClock(shown_ns=1_700_000_000_000_000_000, utc_ns=1_800_000_000_000_000_000)
SENTENCE = b"$GPRMC,081802.00,A,3649.7478558,N,00224.4542928,W,0.034,212.5,210116,0.0,E,A*2E\r\n"


def retime(kind, clock, stamp_ns, payload):
    """Rewrite a packet of a kind, or by a ``Retiming``."""
    retiming = kind if isinstance(kind, Retiming) else retiming_of(kind, payload.tobytes())
    retime_kernel(np.array(retiming, np.int64), clock, stamp_ns, payload)


def payload_of(size, seed=3):
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


def changed(before, after):
    return np.flatnonzero(before != after).tolist()


def test_of_a_data_packet_only_the_stamp_changes():
    before = payload_of(1206)
    after = before.copy()
    retime(VelodyneKind.DATA, CLOCK, 5_000_999, after)
    assert set(changed(before, after)) <= set(range(1200, 1204))
    assert int.from_bytes(after[1200:1204].tobytes(), "little") == (1_700_000_000_000_000 + 5_000) % 3_600_000_000


def test_the_stamp_runs_on_through_the_end_of_the_hour():
    payload = payload_of(1206)
    stamps = []
    for step_us in (0, 1, 2):
        retime(VelodyneKind.DATA, StampClock(3_599_999_999_000, 0), 1000 * step_us, payload)
        stamps.append(int.from_bytes(payload[1200:1204].tobytes(), "little"))
    assert stamps == [3_599_999_999, 0, 1]


def test_of_a_position_packet_stamp_and_sentence_change_and_the_sentence_names_utc():
    before = np.zeros(512, np.uint8)
    before[206 : 206 + len(SENTENCE)] = np.frombuffer(SENTENCE, np.uint8)
    after = before.copy()
    retime(VelodyneKind.POSITION, CLOCK, 1_500_000_000, after)
    assert int.from_bytes(after[198:202].tobytes(), "little") == (1_700_000_000_000_000 + 1_500_000) % 3_600_000_000
    assert after[206 : 206 + len(SENTENCE)].tobytes().startswith(b"$GPRMC,080001.00,A,3649")  # 1,800,000,001 s is 2027-01-15 08:00:01
    assert b",150127," in after[206:300].tobytes()
    assert set(changed(before, after)) <= set(range(198, 202)) | set(range(206, 206 + len(SENTENCE)))


def test_of_a_cepton_packet_only_the_reference_stamp_changes():
    before = payload_of(1464)
    after = before.copy()
    retime(CeptonKind.STDV, CLOCK, 7_000, after)
    assert set(changed(before, after)) <= set(range(8, 16))
    assert int.from_bytes(after[8:16].tobytes(), "little") == 1_700_000_000_000_007


def info(sync_offset_us):
    said = {"model": 3, "serial": 1, "firmware": (1, 0, 0, 0), "model_name": "m", "part_number": 0, "power_up_us": 5, "returns": 1}
    return encode_info_packet(**said, sync_offset_us=sync_offset_us)


@pytest.mark.parametrize(("shown_ns", "offset_us"), [(CLOCK.utc_ns, 0), (CLOCK.shown_ns, 100_000_000_000_000)])
def test_of_sensor_information_what_leads_from_stamps_to_utc_changes_alone(shown_ns, offset_us):
    payload = info(77)
    retime(CeptonKind.INFZ, StampClock(shown_ns, CLOCK.utc_ns), 7_000, payload)
    np.testing.assert_array_equal(payload, info(offset_us))


def test_information_of_a_sensor_that_is_not_synchronised_and_what_is_too_short_stay_untouched():
    payload = info(0)
    retime(CeptonKind.INFZ, CLOCK, 7_000, payload)
    np.testing.assert_array_equal(payload, info(0))
    short = info(77)[:87].copy()
    retime(CeptonKind.INFZ, CLOCK, 7_000, short)
    np.testing.assert_array_equal(short, info(77)[:87])


@pytest.mark.parametrize("size", [1, 300, 1206])
def test_packets_of_unknown_format_stay_unchanged(size):
    before = payload_of(size)
    after = before.copy()
    retime(NOTHING, CLOCK, 5, after)
    assert not changed(before, after)
