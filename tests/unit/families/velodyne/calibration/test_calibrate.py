"""Units that are known, recorded and learned again."""

import tomllib

import numpy as np
import pytest

from hilsim.config.parse import parse_table
from hilsim.emulator.identity.unit import unit_of
from hilsim.errors import CaptureError
from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.recording import Firings, read_recording
from hilsim.families.velodyne.calibration.report import render_lines, to_json, unit_toml
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.world.geometry.tracks import linear_track
from tests.compiled import compiled_only
from tests.unit.families.velodyne.calibration.emulated import SPEC, datagrams, emulated, errors

PACKETS = 1500


def learned_from(lidar, packets=PACKETS):
    return calibrate([read_recording(datagrams(lidar, packets), name="emulated")], SPEC)


@pytest.fixture(scope="module")
def lidar():
    return emulated()


@pytest.fixture(scope="module")
def found(lidar):
    return learned_from(lidar)


@compiled_only
def test_a_recording_gives_the_lasers_of_the_unit_back(lidar, found):
    unit = unit_of(lidar.setting, seed=lidar.seed)
    biases = errors(found.learned.lasers, "range_bias_m")
    assert np.isfinite(biases).all()
    np.testing.assert_allclose(biases, unit.bias_m - unit.bias_m.mean(), atol=0.002)
    baselines = errors(found.learned.lasers, "baseline")
    known = np.isfinite(baselines)
    assert known.sum() == 4  # the others see no sky
    np.testing.assert_array_equal(baselines[known], unit.baseline[known])


@compiled_only
def test_a_recording_gives_the_clock_and_the_encoder_of_the_unit_back(lidar, found):
    unit, keys = unit_of(lidar.setting, seed=lidar.seed), found.learned.keys
    assert keys["stamp_ppm"] == pytest.approx(unit.setup.clock.stamp_ppm, abs=1.0)
    assert keys["oscillator_ppm"] == pytest.approx(unit.setup.clock.oscillator_ppm, abs=1.0)
    entry, true = keys["encoder"][0], unit.spec.encoder_at(600)
    assert entry["rate_offset_rpm"] == pytest.approx(true.rate_offset_rpm, abs=0.1)
    assert (entry["count_zero_cdeg"], entry["tick_cdeg"]) == (true.count_zero_cdeg, true.tick_cdeg)
    np.testing.assert_allclose(entry["counts_cdeg"], true.counts_cdeg, atol=0.2)
    assert entry["count_gain"] == pytest.approx(true.count_gain, abs=0.04)
    assert entry["noise_cdeg"] == pytest.approx(true.noise_cdeg, abs=0.08)
    np.testing.assert_allclose([size for size, _ in entry["curve"]], [size for size, _ in true.curve], atol=0.1)
    assert keys["rate_jitter"]["per_turn_ratio"] == pytest.approx(unit.spec.rate_jitter.per_turn_ratio, rel=0.05)
    periods = [schedule["period_us"] for schedule in keys["position"]["schedules"]]
    np.testing.assert_allclose(periods, [10_040.0, 21_250.0], rtol=0.004)
    assert keys["mac"] == "60:76:88:10:00:aa"


@pytest.mark.extended
@compiled_only
def test_a_recording_of_a_learned_unit_gives_it_back(found):
    unit = parse_table(UnitSpec, tomllib.loads(unit_toml(found, "0")), "unit.toml")
    again = learned_from(emulated(unit, seed=99))
    for name, tolerance in (("range_bias_m", 0.002), ("baseline", 0)):
        first, second = (errors(of.learned.lasers, name) for of in (found, again))
        both = np.isfinite(first) & np.isfinite(second)
        assert both.sum() >= 2
        np.testing.assert_allclose(second[both], first[both], atol=tolerance)
    for name in ("stamp_ppm", "oscillator_ppm"):
        assert again.learned.keys[name] == pytest.approx(found.learned.keys[name], abs=1.0)


@pytest.mark.extended
@compiled_only
def test_a_recording_gives_the_byte_noise_of_the_unit_back_on_dark_surfaces_too():
    def known(byte):
        """Standard deviation of a laser's reported bytes."""
        return 1.0 + 0.03 * np.asarray(byte)

    bytes_ = (2.0, 10.0, 30.0, 90.0)
    unit = UnitSpec(byte_noise=tuple(zip(bytes_, known(bytes_), strict=True)))
    learned = learned_from(emulated(unit, bytes_=[60, 5, 14, 85, 30]), 2 * PACKETS).learned.keys["byte_noise"]
    byte, sd = np.array(learned).T
    assert (byte < 6).any()
    assert (byte > 70).any()
    np.testing.assert_allclose(sd, known(byte), rtol=0.15)


@pytest.mark.extended
@compiled_only
@pytest.mark.parametrize(("ripple_m", "ratio", "packets"), [(0.008, 0.65, PACKETS), (0.003, 1.3, PACKETS), (0.008, 0.65, 330)])
def test_a_recording_gives_the_ripple_and_the_noise_of_the_units_ranges_back_of_a_few_turns_too(ripple_m, ratio, packets):
    unit = UnitSpec(ripple_m=ripple_m, range_noise_ratio=ratio)
    learned = learned_from(emulated(unit, bytes_=[60, 3, 9, 85, 30]), packets).learned.keys
    assert learned["ripple_m"] == pytest.approx(ripple_m, rel=0.05)
    assert learned["range_noise_ratio"] == pytest.approx(ratio, rel=0.08)


@pytest.mark.extended
@compiled_only
def test_a_recording_gives_the_response_of_the_unit_to_range_back():
    known = ((3.0, 0.7), (8.0, 1.4))
    learned = learned_from(emulated(UnitSpec(response=known)), PACKETS).learned.keys["response"]
    place, ratio = np.array(learned).T
    assert place.max() - place.min() > 1.9
    expected = np.interp(place, *np.array(known).T)
    np.testing.assert_allclose(ratio / ratio.mean(), expected / expected.mean(), rtol=0.04)


@pytest.mark.extended
@compiled_only
def test_a_recording_in_dual_mode_gives_the_share_of_firings_with_the_last_return_alone_back():
    learned = learned_from(emulated(UnitSpec(one_sided_ratio=0.02), return_mode="dual"), 500).learned
    assert learned.keys["one_sided_ratio"] == pytest.approx(0.02, rel=0.1)


@compiled_only
def test_a_recording_of_one_return_says_nothing_about_missing_ones(found):
    assert "one_sided_ratio" not in found.learned.keys
    assert "in dual mode are needed, got 0" in next(figure.reason for figure in found.figures if figure.name == "one_sided_ratio")


@compiled_only
def test_empty_bytes_of_any_share_are_learned(found, lidar):
    firings = Firings(read_recording(datagrams(lidar, PACKETS), name="emulated"))
    counts = firings.byte_counts(firings.distance == 0)
    laser = int(counts.sum(axis=1).argmax())
    keys = found.learned.lasers[laser]
    assert {byte for byte, _ in keys["empty_bytes"]} == set(np.flatnonzero(counts[laser]).tolist()) - {keys["baseline"]}


@compiled_only
def test_each_figure_is_in_the_table_the_file_and_the_json_with_its_samples_or_a_reason(found):
    text, lines, parts = unit_toml(found, "0"), "\n".join(line for line, _ in render_lines(found)), to_json(found)
    for figure in found.figures:
        assert bool(figure.text) != bool(figure.reason)
        assert f"# {figure.name}: " in text
        assert figure.name in lines
    assert [part["name"] for part in parts["figures"]] == [figure.name for figure in found.figures]


@compiled_only
def test_captures_that_say_nothing_are_refused_with_a_sentence(lidar):
    packets = datagrams(lidar, 400)
    with pytest.raises(CaptureError, match="must hold at least 100 Velodyne data packets of one sensor, got"):
        read_recording(packets[:90], name="short")
    with pytest.raises(CaptureError, match=r"short: must cover at least 2 turns of the head, got 1\.\d\d"):
        calibrate([read_recording(packets[:150], name="short")], SPEC)
    other = datagrams(lidar, 200, source="192.168.1.202")
    with pytest.raises(CaptureError, match=r"two: one sensor must be chosen with --sensor, got 192\.168\.1\.201 .* 192\.168\.1\.202"):
        read_recording([*packets, *other], name="two")
    with pytest.raises(CaptureError, match=r"the sensor must be one of 192\.168\.1\.201 .*, got 10\.0\.0\.1"):
        read_recording(packets, name="one", sensor="10.0.0.1")


@compiled_only
def test_a_sensor_that_moves_is_refused():
    track = linear_track([0, 1_000_000_000], [(-1.0, 0.0, 0.0), (0.5, 0.0, 0.0)], [(1.0, 0.0, 0.0, 0.0)] * 2)
    with pytest.raises(CaptureError, match=r"emulated: the sensor must stand still: at least 60 % of its directions .*, got \d+ %"):
        learned_from(emulated(track=track), 600)
