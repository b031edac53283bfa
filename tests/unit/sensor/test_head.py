"""The rotating head against what real units do."""

import dpkt
import numpy as np
import pytest

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.protocol.data import decode_data_packets
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.sensor.head import build_head, head_reading_cdeg, head_turns
from hilsim.sensor.unit.encoder import EncoderSpec, RateJitterSpec, build_encoder
from tests.compiled import compiled_only

SEQUENCE_NS = 55_296
STILL = RateJitterSpec()
PERFECT = EncoderSpec(rate_rpm=600, tick_cdeg=0.0, noise_cdeg=0.0)
PROFILE = parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")
VLP16, REAL = PROFILE.encoder_at(600), PROFILE.rate_jitter


def make(rate_rpm=600, phase_deg=0.0, rate_jitter=STILL, seed=1):
    return build_head(rate_rpm=rate_rpm, phase_deg=phase_deg, rate_jitter=rate_jitter, seed=seed, stream=0)


def increments(readings):
    return np.diff(readings) % 36_000


def block_readings(emulated, blocks, encoder=VLP16):
    kernel_side = build_encoder(encoder, seed=1, stream=0)
    return np.array([head_reading_cdeg(emulated, kernel_side, 2 * block * SEQUENCE_NS, 2 * block) for block in range(blocks)])


@pytest.mark.parametrize("rate_rpm", [300, 600, 660, 1200])
def test_a_minute_is_a_whole_number_of_turns(rate_rpm):
    emulated = make(rate_rpm, phase_deg=37.5)
    for minutes in (0, 1, 60 * 24 * 365):
        assert head_turns(emulated, minutes * 60_000_000_000) == pytest.approx(37.5 / 360, abs=1e-12)


def test_a_perfect_head_turns_by_rate_times_time():
    emulated = make(600)
    assert head_turns(emulated, 25_000_000) == pytest.approx(0.25, abs=1e-12)
    assert head_reading_cdeg(emulated, build_encoder(PERFECT, seed=1, stream=0), 25_000_000, 0) == 9000


@compiled_only
def test_readings_stay_below_36000():
    readings = block_readings(make(1200, 359.9, REAL), 20_000)
    assert readings.min() >= 0
    assert readings.max() <= 35_999


def test_the_speed_swings_by_the_given_ratio_and_averages_to_the_rate():
    emulated = make(600, rate_jitter=RateJitterSpec(per_turn_ratio=0.01))
    step_ns = 100_000
    turns = np.unwrap([head_turns(emulated, index * step_ns) for index in range(5000)], period=1.0)
    speed = np.diff(turns) / step_ns * 60e9
    assert speed.max() == pytest.approx(606.0, abs=0.05)
    assert speed.min() == pytest.approx(594.0, abs=0.05)
    assert speed.mean() == pytest.approx(600.0, rel=1e-4)


@compiled_only
@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "vlp16_dual.pcap"])
def test_azimuth_increments_are_distributed_as_in_a_real_capture(capture, name):
    with capture(name).open("rb") as file:
        payloads = [frame[42:] for _, frame in dpkt.pcap.Reader(file) if len(frame) == 1248]
    step = 2 if "dual" in name else 1
    packets = decode_data_packets(np.frombuffer(b"".join(payloads), np.uint8).reshape(-1, 1206))
    real = increments(packets["blocks"]["azimuth"][:, ::step].astype(int).ravel())
    ours = increments(block_readings(make(600, 12.0, REAL), 40_000))
    bins = np.arange(36, 46)
    share = [np.histogram(sample, bins)[0] / sample.size for sample in (real, ours)]
    assert np.abs(share[0] - share[1]).sum() / 2 < 0.03
    correlation = [np.corrcoef(sample[:-1], sample[1:])[0, 1] for sample in (real, ours)]
    assert correlation[1] == pytest.approx(correlation[0], abs=0.05)


def test_two_units_swing_differently():
    one, other = make(rate_jitter=REAL, seed=1), make(rate_jitter=REAL, seed=2)
    assert one.per_turn_phase_rad != other.per_turn_phase_rad


@pytest.mark.parametrize(("rate_rpm", "entry"), [(300, 0), (420, 0), (480, 1), (600, 1), (840, 1), (900, 2), (1200, 2)])
def test_the_encoder_entry_of_the_nearest_measured_rate_is_used(rate_rpm, entry):
    assert PROFILE.encoder_at(rate_rpm) is PROFILE.encoder[entry]
