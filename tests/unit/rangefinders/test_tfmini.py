"""TFmini frames against a parser written from the manual, and the rules by which the autopilots' drivers read them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.parts.rangefinders.tfmini import TFMINI_FRAME_DTYPE, Tfmini, TfminiSpec, encode_tfmini

SECOND_NS = 1_000_000_000


def parse(stream):
    """Frames ``(distance, strength, byte 6, byte 7)`` in a stream of bytes: two 59, six bytes, and the low byte of their sum."""
    found, at = [], 0
    while at + 9 <= len(stream):
        frame = stream[at : at + 9]
        if frame[0] == frame[1] == 0x59 and sum(frame[:8]) % 256 == frame[8]:
            found.append((frame[2] + 256 * frame[3], frame[4] + 256 * frame[5], frame[6], frame[7]))
            at += 9
        else:
            at += 1
    return found


def serial_device(**changed):
    return Tfmini(TfminiSpec(port="/dev/ttyS1", **changed), seed=1, stream=0)


def seen(range_m, **changed):
    """The one frame that a sensor looking at a wall sends."""
    (frame,) = serial_device(**changed).frames(0, 10_000_000, lambda time_ns, _: np.full(time_ns.size, range_m))
    (parsed,) = parse(frame.data)
    return parsed


def test_a_frame_has_these_bytes():
    frame = encode_tfmini(np.array([1000]), np.array([513]), np.array([7]))
    assert frame.tobytes() == bytes.fromhex("5959 e803 0102 0700 a7")


def test_every_field_is_where_the_manual_says():
    places = {name: offset for name, (_, offset) in TFMINI_FRAME_DTYPE.fields.items()}
    assert places == {"header": 0, "distance": 2, "strength": 4, "mode_or_temperature": 6, "checksum": 8}


@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535), st.integers(0, 65535)), min_size=1, max_size=20))
def test_an_independent_parser_reads_the_written_bytes(rows):
    distance, strength, last = np.array(rows).T
    frames = encode_tfmini(distance, strength, last)
    assert [parse(frame.tobytes()) for frame in frames] == [[(d, s, m % 256, m // 256)] for d, s, m in rows]


def test_a_parser_that_begins_within_a_frame_finds_the_next():
    frames = serial_device().frames(0, SECOND_NS // 20, lambda time_ns, _: np.linspace(1.0, 5.0, time_ns.size))
    stream = b"".join(frame.data for frame in frames)
    assert [distance for distance, *_ in parse(stream[4:])] == [200, 300, 400, 500]


def test_a_frame_with_a_wrong_sum_is_no_frame():
    frame = bytearray(encode_tfmini(np.array([1000]), np.array([513]), np.array([7])).tobytes())
    frame[2] ^= 1
    assert parse(bytes(frame)) == []


def test_frames_are_due_at_exact_multiples_of_the_period_whatever_stretches_are_asked_for():
    asked = []

    def sample(time_ns, azimuth_deg):
        asked.extend(zip(time_ns.tolist(), azimuth_deg.tolist(), strict=True))
        return time_ns / 1e9 + 1.0

    one, other = serial_device(range_noise_m=0.05), serial_device(range_noise_m=0.05)
    whole = one.frames(0, SECOND_NS, sample)
    assert [frame.time_ns for frame in whole] == list(range(0, SECOND_NS, 10_000_000))
    assert asked == [(time_ns, 0.0) for time_ns in range(0, SECOND_NS, 10_000_000)]
    cuts = [0, 1, 10_000_000, 10_000_001, 335_000_000, SECOND_NS]
    pieces = [other.frames(start, stop, sample) for start, stop in pairwise(cuts)]
    assert [frame for piece in pieces for frame in piece] == whole
    assert [one.next_ns(time_ns) for time_ns in (-5, 0, 1, 10_000_000)] == [0, 0, 10_000_000, 10_000_000]


def test_distances_are_rounded_to_centimetres_and_modes_distinguished():
    assert seen(1.234) == (123, 1891, 2, 0)
    assert seen(4.567) == (457, 138, 7, 0)


def test_the_strength_is_at_the_manuals_least_at_the_limit_and_never_above_its_largest():
    assert seen(12.0) == (1200, 20, 7, 0)
    assert seen(0.5) == (50, 3000, 2, 0)


@pytest.mark.parametrize("range_m", [np.inf, 12.01, 0.29])
def test_a_weak_echo_is_65535_which_ardupilot_takes_for_out_of_range_and_px4_leaves_out(range_m):
    assert seen(range_m) == (65535, 0, 7, 0)
    assert seen(range_m, model="tfmini_s")[:2] == (65535, 0)


def test_a_weak_echo_of_the_plus_is_0():
    assert seen(np.inf, model="tfmini_plus")[:2] == (0, 0)


def test_the_later_models_tell_the_temperature_of_their_chip():
    _, strength, low, high = seen(6.0, model="tfmini_plus", temperature_deg_c=27.5)
    assert strength == 400
    assert (low + 256 * high) / 8 - 256 == 27.5


def test_noise_has_the_spread_that_was_asked_for():
    frames = serial_device(range_noise_m=0.05).frames(0, 20 * SECOND_NS, lambda time_ns, _: np.full(time_ns.size, 5.0))
    distances = np.array([parse(frame.data)[0][0] for frame in frames])
    assert distances.mean() == pytest.approx(500.0, abs=0.5)  # 2000 frames: three standard errors are 0.34
    assert distances.std() == pytest.approx(5.0, abs=0.3)


def test_nothing_is_answered():
    assert serial_device().receive(bytes.fromhex("42570200000001 02"), 5) == []


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"rate_hz": 30}, r"rate_hz must be 100 divided by a whole number \(model tfmini\), got 30"),
        ({"rate_hz": 300, "model": "tfmini_s"}, r"rate_hz must be 1000 divided by a whole number \(model tfmini_s\), got 300"),
        ({"baud": 12_000_001}, "baud must be 1200 to 12000000, got 12000001"),
        ({"range_max_m": 328.0}, "range_min_m and range_max_m must be 0 <= min < max <= 327.67, got 0.3 and 328.0"),
        ({"mount_position_m": (0.0, np.nan, 0.0)}, r"mount_position_m must be finite, got \(0.0, nan, 0.0\)"),
        ({"range_noise_m": -0.1}, "range_noise_m must be 0 to 1, got -0.1"),
    ],
)
def test_a_setting_that_cannot_be_is_refused_by_name(changed, fault):
    with pytest.raises(ValueError, match=f"^{fault}$"):
        TfminiSpec(port="/dev/ttyS1", **changed)
