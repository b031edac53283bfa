"""Faults of a vehicle's sensors and motors: what they make of readings, of fixes, of a link's messages and of a flight."""

import math

import numpy as np
import pytest

from hilsim.config.rig import load_rig
from hilsim.config.script import load_script
from hilsim.errors import ConfigError
from hilsim.faults.specs import FAULT_SPECS
from hilsim.offline.spans import build_offline
from hilsim.parts.vehicle.autopilot.breaking import break_fix, break_readings, gps_silence, vehicle_fault_table, weakened
from hilsim.parts.vehicle.autopilot.change_table import ChangeTable, Kind
from hilsim.parts.vehicle.autopilot.vehicle_sensors import BAROMETER_FIELDS, MAGNETOMETER_FIELDS
from hilsim.parts.vehicle.physics.multirotor import build_multirotor, target_speed
from hilsim.parts.vehicle.physics.pressure import pressure_altitude_m
from hilsim.protocols.mavlink.messages import HIL_GPS_DTYPE
from hilsim.world.geometry.geodesy import HomeSpec, build_home
from hilsim.world.platforms.platform import platform_state
from tests.compiled import compiled_only
from tests.flight import FlyingLoop, vehicle_spec
from tests.unit.vehicle.vehicles import profile

S = 1_000_000_000
HOME = build_home(HomeSpec(latitude_deg=47.4, longitude_deg=8.5, altitude_m=488.0))
READING = np.array([0.1, 0.2, -9.8, 0.01, 0.02, 0.03, 0.2, 0.01, 0.43, 955.0, 0.02, 496.0, 12.0], np.float32)
BEFORE = READING + np.float32(1.0)


def table(*faults, seed=3):
    return vehicle_fault_table([FAULT_SPECS[kind](**keys) for kind, keys in faults], seed)


def read(*faults, at_s=1.0, seed=3):
    """A reading that faults have changed, and the bits that are withheld."""
    reading = READING.copy()
    withheld = break_readings(table(*faults, seed=seed), round(at_s * S), BEFORE, reading)
    return reading, withheld


def changed(reading):
    return np.flatnonzero(reading != READING).tolist()


@pytest.mark.parametrize(("word", "places"), [("accelerometer", [0, 1, 2]), ("gyroscope", [3, 4, 5]), ("compass", [6, 7, 8]), ("barometer", [9, 11])])
def test_each_sensor_is_stuck_or_silent_by_itself(word, places):
    stuck, withheld = read((f"{word}_stuck", {}))
    assert (changed(stuck), withheld) == (places, 0)
    assert np.array_equal(stuck[places], BEFORE[places])
    _, withheld = read((f"{word}_off", {}))
    fields = {"compass": MAGNETOMETER_FIELDS, "barometer": BAROMETER_FIELDS}.get(word, sum(1 << place for place in places))
    assert withheld == fields


def test_a_bias_comes_with_its_ramp_and_is_gone_with_its_end():
    drifting = ("gyroscope_biased", {"x_radps": 0.1, "z_radps": -0.2, "ramp_s": 4.0, "for_s": 6.0})
    for at_s, share in ((0.0, 0.0), (1.0, 0.25), (3.0, 0.75), (5.0, 1.0), (6.0, 0.0)):
        reading, _ = read(drifting, at_s=at_s)
        assert reading[3:6] - READING[3:6] == pytest.approx([0.1 * share, 0.0, -0.2 * share], abs=1e-6)
    assert changed(read(drifting, at_s=6.0)[0]) == []


def test_a_barometer_is_off_by_a_pressure_and_its_altitude_says_the_same():
    reading, _ = read(("barometer_biased", {"bias_pa": 120.0}))
    assert reading[9] - READING[9] == pytest.approx(1.2, abs=1e-3)
    assert reading[11] == pytest.approx(pressure_altitude_m(100.0 * float(reading[9])), abs=1e-3)


def test_noise_has_its_deviation_and_depends_on_time_and_seed_alone():
    noisy = ("compass_noisy", {"noise_gauss": 0.05})
    errors = np.array([read(noisy, at_s=at_s)[0][6:9] - READING[6:9] for at_s in np.arange(0.0, 8.0, 0.004)])
    assert errors.std() == pytest.approx(0.05, rel=0.03)
    assert np.abs(errors.mean(axis=0)).max() < 4 * 0.05 / math.sqrt(len(errors))
    assert np.array_equal(read(noisy)[0], read(noisy)[0])
    assert not np.array_equal(read(noisy)[0], read(noisy, seed=4)[0])


def test_what_is_clipped_is_clipped_after_what_is_added():
    reading, _ = read(("accelerometer_clipped", {"limit_mps2": 9.0}), ("accelerometer_biased", {"x_mps2": 0.0, "y_mps2": 30.0}))
    assert reading[:3].tolist() == pytest.approx([0.1, 9.0, -9.0])


def fix(*faults, at_s, speed_cmps=0):
    """A fix at the home that faults have changed; ``speed_cmps`` to the north."""
    record = np.zeros(1, HIL_GPS_DTYPE)
    record["lat"], record["lon"], record["alt"] = 474_000_000, 85_000_000, 488_000
    record["eph"], record["epv"], record["fix_type"], record["satellites_visible"], record["cog"] = 30, 40, 3, 12, 65535
    record["vn"] = record["vel"] = speed_cmps
    break_fix(table(*faults), HOME, round(at_s * S), record)
    return record[0]


def way_m(message):
    """East, north and up of a fix from the home, on a sphere."""
    north = (int(message["lat"]) - 474_000_000) * 1e-7 * 111_195.0
    east = (int(message["lon"]) - 85_000_000) * 1e-7 * 111_195.0 * math.cos(math.radians(47.4))
    return east, north, (int(message["alt"]) - 488_000) * 1e-3


@compiled_only
def test_a_gps_jumps_and_says_nothing_of_it():
    message = fix(("gps_jump", {"distance_m": 100.0, "bearing_deg": 90.0, "up_m": 5.0}), at_s=1.0)
    assert way_m(message) == pytest.approx((100.0, 0.0, 5.0), abs=0.5)
    assert [int(message[name]) for name in ("fix_type", "satellites_visible", "eph", "vn", "ve", "vd", "vel")] == [3, 12, 30, 0, 0, 0, 0]


@compiled_only
def test_a_drift_moves_velocity_and_course_with_the_position():
    message = fix(("gps_drift", {"speed_mps": 2.0, "bearing_deg": 90.0, "climb_mps": 0.5}), at_s=10.0, speed_cmps=200)
    assert way_m(message) == pytest.approx((20.0, 0.0, 5.0), abs=0.2)
    assert [int(message[name]) for name in ("vn", "ve", "vd", "vel", "cog")] == [200, 200, -50, 283, 4500]


@compiled_only
@pytest.mark.parametrize("at_s", [1.0, 5.0, 30.0])
def test_a_smooth_drift_is_the_one_that_px4_documents(at_s):
    message = fix(("gps_smooth_drift", {"speed_mps": 3.0, "settling_s": 5.0}), at_s=at_s)
    left = math.exp(-at_s / 5.0)
    assert way_m(message)[0] == pytest.approx(3.0 * (at_s - 5.0 * (1.0 - left)), rel=0.01, abs=0.02)
    assert message["ve"] == pytest.approx(300.0 * (1.0 - left), abs=1)


@compiled_only
@pytest.mark.parametrize(("kind", "far_m", "fast_mps"), [("gps_garbage", 0.1, 2.0), ("gps_jammed", 200.0, 300.0)])
def test_a_disturbed_gps_loses_its_fix_then_has_a_bad_one(kind, far_m, fast_mps):
    messages = [fix((kind, {}), at_s=at_s) for at_s in np.arange(0.0, 40.0, 0.1)]
    fixed = np.array([message["fix_type"] == 3 for message in messages])
    lost_s = 0.1 * int(fixed.argmax())
    assert 1.0 <= lost_s <= 6.1
    assert fixed[round(10 * lost_s) :].all()
    assert all(message["satellites_visible"] == 0 and message["eph"] == 65534 for message in messages[: round(10 * lost_s)])
    bad = messages[round(10 * lost_s) :]
    assert np.abs([way_m(message) for message in bad]).max() <= 1.01 * far_m
    assert np.abs([way_m(message) for message in bad]).max() >= 0.7 * far_m or far_m < 1.0
    speeds = np.array([(message["vn"], message["ve"]) for message in bad]) / 100.0
    assert 0.7 * fast_mps < np.abs(speeds).max() <= fast_mps
    assert {int(message["satellites_visible"]) for message in bad} <= set(range(2, 17))


def test_a_fix_is_withheld_or_repeated_only_while_the_fault_acts():
    off, stuck = ("gps_off", {"at_s": 2.0, "for_s": 1.0}), ("gps_stuck", {"at_s": 2.0})
    found = [int(gps_silence(table(off, stuck), round(at_s * S))) for at_s in (1.9, 2.5, 3.5)]
    assert found == [0, 204, 203]


def test_a_weak_motor_gives_its_share_of_the_thrust_and_a_dead_one_none():
    for name in ("iris", "airsim-quad"):
        multirotor = build_multirotor(profile(name))
        command = np.full(4, 0.7)
        weak = weakened(table(("motor_weak", {"motors": (2,), "thrust": 0.5}), ("motor_dead", {"motors": (4,)})), multirotor, command, S)
        speeds = [target_speed(multirotor, each) for each in weak]
        assert (speeds[1] / speeds[0]) ** 2 == pytest.approx(0.5, abs=1e-6)
        assert (weak[0], weak[2], speeds[3]) == (0.7, 0.7, 0.0)
        assert command.tolist() == [0.7] * 4


@pytest.fixture
def flying():
    loop = FlyingLoop(vehicle_spec()).begin()
    loop.plug()
    loop.beat()
    loop.await_messages("HIL_SENSOR", 3)
    yield loop
    loop.end()


def break_now(loop, *faults):
    """Break a vehicle that flies; an empty table mends it."""
    changes = ChangeTable(loop.shared.changes)
    number = changes.add(Kind.FAULTS, 0, table(*faults))
    loop.await_that(lambda: changes.begun_ns(number) is not None)
    loop.held = [*getattr(loop, "held", []), changes]  # what it has pinned is in use


@compiled_only
def test_a_loop_that_runs_has_faults_until_they_are_cleared(flying):
    break_now(flying, ("compass_stuck", {}), ("barometer_off", {}), ("gyroscope_biased", {"x_radps": 3.0}), ("gps_off", {}))
    messages = flying.await_messages("HIL_SENSOR", 60)[10:]
    assert len({(each.xmag, each.ymag, each.zmag) for each in messages}) == 1
    assert {each.fields_updated & BAROMETER_FIELDS for each in messages} == {0}
    assert any(each.fields_updated & MAGNETOMETER_FIELDS == MAGNETOMETER_FIELDS for each in messages)
    assert all(2.5 < each.xgyro < 3.5 for each in messages)
    assert flying.messages("HIL_GPS") == []
    break_now(flying)
    messages = flying.await_messages("HIL_SENSOR", 60)[10:]
    assert len({each.xmag for each in messages}) > 5
    assert all(abs(each.xgyro) < 0.5 for each in messages)
    flying.await_messages("HIL_GPS", 1)


FLIGHT = """
name = "flight"
[scene]
[[scene.plane]]
size_m = [100.0, 100.0]
[platform]
kind = "vehicle"
[vehicle]
profile = "iris"
[vehicle.controller]
kind = "{controller}"
[[vehicle.waypoint]]
time_s = 0.0
position_m = [0.0, 0.0, 4.0]
[[sensor]]
name = "top"
profile = "vlp16"
network = {{ destination = "127.0.0.1" }}
{faults}
"""


def flight(directory, faults="", script="", controller="hold", seconds=8.0):
    """Platform of an offline flight."""
    path = directory / "flight.toml"
    path.write_text(FLIGHT.format(faults=faults, controller=controller))
    script_path = directory / "script.toml"
    script_path.write_text(script)
    until_ns = round(seconds * S)
    offline = build_offline(load_rig(path), utc_epoch_ns=0, until_ns=until_ns, script=load_script(script_path) if script else None)
    assert offline.scenery is not None
    return offline.scenery.platform


def heights(platform, *times_s):
    return np.array([platform_state(platform, round(time_s * S))[0][2] for time_s in times_s])


def test_a_hold_that_loses_thrust_sinks_from_then_on_and_one_without_a_motor_falls(tmp_path):
    times_s = np.arange(0.5, 8.0, 0.25)
    sound = flight(tmp_path)
    weak = flight(tmp_path, '[[fault]]\nkind = "motor_weak"\nmotors = [1, 2, 3, 4]\nthrust = 0.45\nat_s = 5.0\n')
    dead = flight(tmp_path, '[[fault]]\nkind = "motor_dead"\nmotors = [1]\nat_s = 5.0\n')
    early = times_s < 5.0
    for broken in (weak, dead):
        assert np.array_equal(heights(broken, *times_s[early]), heights(sound, *times_s[early]))
        assert heights(sound, 6.0)[0] - heights(broken, 6.0)[0] > 0.3


def test_a_script_breaks_and_mends_a_flight_as_the_rig_and_the_end_of_a_fault_do(tmp_path):
    times_s = np.arange(0.5, 8.0, 0.25)
    fault = 'kind = "motor_weak"\nmotors = [1, 2, 3, 4]\nthrust = 0.45\nat_s = 4.0\nfor_s = 0.5\n'
    rigs = heights(flight(tmp_path, f"[[fault]]\n{fault}"), *times_s)
    scripts = heights(
        flight(
            tmp_path,
            script='[[change]]\nkind = "fault"\nat_s = 4.0\nfault = { kind = "motor_weak", motors = [1, 2, 3, 4], thrust = 0.45 }\n'
            '[[change]]\nkind = "clear"\nat_s = 4.5\n',
        ),
        *times_s,
    )
    assert scripts == pytest.approx(rigs, abs=1e-4)  # poses between rows are interpolated, and changes add rows
    assert np.array_equal(scripts[times_s < 3.9], rigs[times_s < 3.9])
    sound = heights(flight(tmp_path), *times_s)
    assert np.abs(sound - scripts).max() > 0.2


@pytest.mark.parametrize(
    ("faults", "controller", "sentence"),
    [
        ('kind = "gps_off"', "hold", "must name a vehicle that a flight controller reads over MAVLink of the rig (none)"),
        ('kind = "motor_dead"\nmotors = [5]', "hold", "motors of motor_dead must be 1 to 4, got 5"),
        ('kind = "motor_dead"\nmotors = [0]', "hold", "motors must each be 1 to 16, got 0"),
        ('kind = "motor_dead"\nmotors = [1]\non = "top"', "hold", "must name a vehicle of the rig (vehicle)"),
        ('kind = "compass_noisy"\nnoise_gauss = -1.0', "tcp", "noise_gauss must be 0 to 1e+06, got -1.0"),
    ],
)
def test_what_a_vehicle_cannot_have_is_refused_by_a_sentence(tmp_path, faults, controller, sentence):
    controller = f'{controller}"\naddress = "127.0.0.1:4560' if controller == "tcp" else controller
    with pytest.raises(ConfigError) as refused:
        flight(tmp_path, f"[[fault]]\n{faults}\n", controller=controller)
    assert sentence in str(refused.value)


def test_a_script_is_refused_what_a_rig_is(tmp_path):
    script = '[[change]]\nkind = "fault"\nat_s = 1.0\nfault = { kind = "motor_dead", motors = [9] }\n'
    with pytest.raises(ConfigError, match="motors of motor_dead must be 1 to 4, got 9"):
        flight(tmp_path, script=script)
