"""Tables of faults: what they must have, and when they act."""

import pickle

import numpy as np
import pytest

import hilsim
from hilsim.errors import ConfigError
from hilsim.faults.catalogue import FAULTS, REQUIRED
from hilsim.faults.specs import FAULT_SPECS
from hilsim.faults.table import build_fault_table, passed_ns, strength
from tests.unit.faults.rigs import room


def fault(kind="blocked_sector", **keys):
    return FAULT_SPECS[kind](**keys)


@pytest.mark.parametrize("row", FAULTS, ids=lambda row: row.kind)
def test_each_fault_has_a_class_with_its_meaning_that_other_processes_know(row):
    spec = FAULT_SPECS[row.kind](**{key.name: (1,) for key in row.keys if key.default is REQUIRED})
    assert pickle.loads(pickle.dumps(spec)) == spec  # noqa: S301 - its own
    assert (spec.__doc__ or "").startswith(row.meaning)
    assert len(spec.values) == len(row.values)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"kind": "rust"}, "must be 'dead_channel'"),
        ({"kind": "dead_channel"}, "channels must be given"),
        ({"kind": "dead_channel", "channels": [16]}, "channels of a VLP-16 must be at most 15, got 16"),
        ({"kind": "dead_channel", "channels": [-1]}, "channels must each be 0 to 127, got -1"),
        ({"kind": "blocked_sector", "azimuth_deg": [20.0, 20.0]}, "azimuth_deg must be two angles that differ"),
        ({"kind": "blocked_sector", "on": "root"}, 'on must name a sensor of the rig (lidar), or be a pattern, got "root"'),
        ({"kind": "blocked_sector", "for_s": 0.0}, "for_s must be above 0"),
        ({"kind": "blocked_sector", "ramp_out_s": 1.0}, "for_s must be given with ramp_out_s"),
        ({"kind": "blocked_sector", "share": 1.5}, "share must be 0 to 1, got 1.5"),
        ({"kind": "dirty_window", "opacity": 0.5}, "opacity: unknown key"),
        ({"kind": "brown_out", "off_ms": 2.0, "down_ms": 1.0}, "down_ms must be off_ms or more, got 1.0 and 2.0"),
        ({"kind": "ptp_lost"}, "must follow time from the network"),
        ({"kind": "nmea_missing"}, "must have a receiver (sensor.gps)"),
        ({"kind": "pps_noisy"}, "the clock must follow a pulse"),
    ],
)
def test_a_wrong_table_is_refused_by_a_sentence(tmp_path, table, sentence):
    with pytest.raises(ConfigError) as refused:
        room(tmp_path, table, gps="")
    assert sentence in str(refused.value)


def test_all_wrong_tables_of_a_rig_are_named_at_once(tmp_path):
    with pytest.raises(ConfigError) as refused:
        room(tmp_path, {"kind": "rust"}, {"kind": "dead_channel"}, {"kind": "glare", "scatter_m": -1.0})
    assert [line.partition(".")[0] for line in str(refused.value).splitlines()] == ["fault[0]", "fault[1]", "fault[2]"]


def test_an_ouster_has_no_readings_of_an_encoder_to_be_wrong():
    rig = {"name": "rig", "scene": {"plane": [{"size_m": [9.0, 9.0]}]}, "sensor": [{"name": "top", "profile": "os1-64"}]}
    with pytest.raises(ConfigError, match="must have readings of an encoder"):
        hilsim.Emulator(rig, faults=[{"kind": "encoder_jump"}])


def acting(spec, times_s):
    table = build_fault_table([spec], 16, 7)
    return [float(strength(table, 0, round(time_s * 1e9))) for time_s in times_s]


def test_a_fault_comes_and_goes_in_its_ramps():
    linear = fault(at_s=10.0, for_s=10.0, ramp_s=4.0, ramp_out_s=2.0)
    assert acting(linear, [9.9, 10.0, 11.0, 14.0, 17.9, 19.0, 19.5, 20.0, 30.0]) == pytest.approx([0, 0, 0.25, 1, 1, 0.5, 0.25, 0, 0])
    exponential = fault(at_s=10.0, ramp_s=4.0, ramp="exponential")
    assert acting(exponential, [9.0, 10.0, 14.0, 22.0]) == pytest.approx([0, 0, 1 - np.exp(-1), 1 - np.exp(-3)])


@pytest.mark.parametrize("ramp", ["linear", "exponential"])
def test_what_has_passed_of_a_fault_is_the_sum_of_its_strengths(ramp):
    table = build_fault_table([fault(at_s=1.0, for_s=10.0, ramp_s=3.0, ramp_out_s=2.0, ramp=ramp)], 16, 7)
    times_ns = np.arange(1.0e9, 10.9e9, 1e6).astype(int)
    strengths = [strength(table, 0, int(time_ns)) for time_ns in times_ns]
    summed = np.cumsum(strengths) * 1e6
    going = times_ns > 9.0e9
    passed = np.array([passed_ns(table, 0, int(time_ns)) for time_ns in times_ns])
    assert np.abs(passed - summed)[~going].max() < 5e6
    assert np.abs(passed - summed)[going].max() < (5e6 if ramp == "linear" else 2e8)  # an exponential one is not whole when it goes


def test_random_numbers_of_a_fault_do_not_depend_on_others():
    alone = build_fault_table([fault("crosstalk")], 16, 7)
    beside = build_fault_table([fault(), fault("glare"), fault("crosstalk")], 16, 7)
    assert alone.seed[0] in beside.seed
    assert len(set(beside.seed.tolist())) == 3
    assert build_fault_table([fault("crosstalk", seed=1)], 16, 7).seed[0] != alone.seed[0] != build_fault_table([fault("crosstalk")], 16, 8).seed[0]
