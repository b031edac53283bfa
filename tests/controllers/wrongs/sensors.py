"""Wrong units, axes and bits in HIL_SENSOR."""

import math

from hilsim_flight_controller.rules.atmosphere import altitude_m
from hilsim_flight_controller.rules.timing import BAROMETER, GYROSCOPE, MAGNETOMETER
from tests.controllers.wrongs.registry import FLIGHT_S, scaled, wrong, wrong_sensor

_FORCE, _RATES, _FIELD = ("xacc", "yacc", "zacc"), ("xgyro", "ygyro", "zgyro"), ("xmag", "ymag", "zmag")
wrong_sensor("pressure in Pa", "pressure", **scaled(100.0, "abs_pressure"))
wrong_sensor(
    "pressure of another home",
    "pressure",
    abs_pressure=lambda f: f["abs_pressure"] + 30.0,
    pressure_alt=lambda f: altitude_m(f["abs_pressure"] + 30.0),
)
wrong_sensor("pressure altitude in feet", "pressure_altitude", **scaled(3.28084, "pressure_alt"))
wrong_sensor("temperature in kelvin", "temperature", temperature=lambda f: f["temperature"] + 273.15)
wrong_sensor("dynamic pressure in Pa", "airspeed", **scaled(100.0, "diff_pressure"))
wrong_sensor("field in tesla", "field", "stale", **scaled(1e-4, *_FIELD))
wrong_sensor("field in microtesla", "field", **scaled(100.0, *_FIELD))
wrong_sensor("field in FLU", "field", **scaled(-1.0, "ymag", "zmag"))
wrong_sensor("force in g", "specific_force", **scaled(1.0 / 9.80665, *_FORCE))
wrong_sensor("force in FLU", "specific_force", **scaled(-1.0, "yacc", "zacc"))
wrong_sensor("acceleration for specific force", "specific_force", zacc=lambda f: f["zacc"] + 9.80665)
wrong_sensor("rates in degrees", "gyroscope", run_s=FLIGHT_S, **scaled(math.degrees(1.0), *_RATES))
wrong_sensor("rates in FLU", "gyroscope", run_s=FLIGHT_S, **scaled(-1.0, "ygyro", "zgyro"))
wrong_sensor("a bias of 5 degrees a second", "gyroscope_rest", xgyro=lambda f: f["xgyro"] + math.radians(5.0))
wrong_sensor("not a number", "finite", xgyro=lambda _f: math.nan)
wrong_sensor("a second sensor", "device", id=lambda _f: 1)
wrong_sensor("half of the magnetometer's bits", "groups", "rate", fields_updated=lambda f: f["fields_updated"] & ~MAGNETOMETER | 0x40)
wrong_sensor("no bit for the temperature", "groups", "rate", fields_updated=lambda f: f["fields_updated"] & ~0x1000)
wrong_sensor("bits that do not exist", "groups", fields_updated=lambda f: f["fields_updated"] | 1 << 20)
wrong_sensor("no magnetometer", "rate", fields_updated=lambda f: f["fields_updated"] & ~MAGNETOMETER)
wrong_sensor("no barometer", "rate", fields_updated=lambda f: f["fields_updated"] & ~BAROMETER)
wrong_sensor("stamps in nanoseconds", "stamps", time_usec=lambda f: f["time_usec"] * 1000)
wrong_sensor("stamps in milliseconds", "stamps", time_usec=lambda f: f["time_usec"] // 1000)
wrong_sensor("stamps that stand", "stamps", time_usec=lambda _f: 1)


def _frozen(name, keys, *rules, run_s=4.2):
    @wrong(name, *rules, run_s=run_s)
    def spoil(bridge):
        first = {}
        bridge.on_sensor = lambda _now_us, fields: fields | {key: first.setdefault(key, fields[key]) for key in keys}


_frozen("a barometer that is stuck", ("abs_pressure", "pressure_alt"), "stale")
_frozen("a magnetometer that is stuck", _FIELD, "stale")
_frozen("an accelerometer that is stuck", _FORCE, "stale")
_frozen("one axis of a gyroscope that is stuck", ("xgyro",), "stale")


@wrong("a gyroscope in every second frame", "imu")
def _(bridge):
    bridge.on_sensor = lambda _now_us, fields: (
        fields | {"fields_updated": fields["fields_updated"] if bridge.frames % 2 else fields["fields_updated"] & ~GYROSCOPE}
    )
