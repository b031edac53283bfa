"""Faults of a sensor in its packets: each acts, and before its begin and after its end every byte is as without it."""

import numpy as np
import pytest

from hilsim.faults.catalogue import FAULTS, REQUIRED, Effect, Place
from hilsim.faults.specs import FAULT_SPECS
from hilsim.sensor.specs import ClockSetting

FIRST, COUNT = 300, 2
PACKET_NS = 24 * 55_296
ROWS = [row for row in FAULTS if row.place == Place.SENSOR and row.effect != Effect.MASTER]
ACTING = {
    "leap_second": {},
    "hour_overflow": {"at_s": 0.0},
    "encoder_overflow": {"beyond_cdeg": 29_535.0},
    "crosstalk": {"share": 0.5},
    "glare": {"share": 0.5, "scatter_m": 5.0},
    "wet_window": {"drops": 100, "drop_deg": 30.0},
    "brown_out": {"off_ms": 1.0, "down_ms": 1.0},
    "pps_doubled": {},
}
"""Keys with which faults show in every packet."""
UNSEEN = {"pps_error", "overheated", "nmea_missing", "nmea_invalid", "nmea_late", "nmea_wrong_second", "nmea_garbled", "hour_overflow", "pps_doubled"}
"""Kinds that position packets alone show, or an instant of the hour or of the second."""


def broken(row, begin_ns, **keys):
    required = {key.name: (3,) for key in row.keys if key.default is REQUIRED}
    return FAULT_SPECS[row.kind](**{"at_s": begin_ns / 1e9, **required, **ACTING.get(row.kind, {}), **keys})


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.kind)
def test_each_fault_acts_in_its_time_and_leaves_no_trace(make_lidar, row):
    keys = {"clock": ClockSetting(sync="pps")}
    clean = make_lidar(**keys).data_packets(FIRST, COUNT).payload
    ended = make_lidar(faults=(broken(row, PACKET_NS, for_s=0.1, **({"ramp_out_s": 0.0} if row.kind == "spin_up" else {})),), **keys)
    later = make_lidar(faults=(broken(row, 10**9, **({"at_s": 1.0} if row.kind == "hour_overflow" else {})),), **keys)
    for lidar in (ended, later):
        np.testing.assert_array_equal(lidar.data_packets(FIRST, COUNT).payload, clean)
    acting = make_lidar(faults=(broken(row, 50 * PACKET_NS),), **keys).data_packets(FIRST, COUNT).payload
    assert np.array_equal(acting, clean) == (row.kind in UNSEEN)


@pytest.mark.parametrize("kind", sorted(UNSEEN - {"hour_overflow", "pps_doubled"}))
def test_faults_of_what_comes_to_the_gps_input_are_in_position_packets(make_lidar, kind):
    row = next(row for row in ROWS if row.kind == kind)
    keys = {"clock": ClockSetting(sync="pps")}
    clean, acting = (make_lidar(faults=faults, **keys).position_span(0, 200_000_000).payload for faults in ((), (broken(row, 0),)))
    assert clean.shape == acting.shape
    assert not np.array_equal(clean, acting)
