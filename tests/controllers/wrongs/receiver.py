"""A wrong receiver: units, quality and time of HIL_GPS."""

import math

from tests.controllers.wrongs.registry import FLIGHT_S, scaled_whole, wrong, wrong_gps

_MAX_U16 = 65_534
_BEGAN_US = 1_780_000_000_000_000


def _mm_per_second(fields):
    return round(10.0 * math.hypot(fields["vn"], fields["ve"]))


wrong_gps(
    "position in degrees",
    "gps_position",
    "pressure",
    "field",
    run_s=3.2,
    lat=lambda f: f["lat"] // 10**7,
    lon=lambda f: f["lon"] // 10**7,
    alt=lambda _f: 0,
)
wrong_gps("position in degrees * 1e6", "gps_velocity", "field", **scaled_whole(0.1, "lat", "lon"))
wrong_gps("altitude in metres", "pressure", "gps_velocity", "stale", **scaled_whole(1e-3, "alt"))
wrong_gps("velocity in m/s", "gps_velocity", "specific_force", "gyroscope_rest", **scaled_whole(1e-2, "vn", "ve", "vd", "vel"), cog=lambda _f: 65_535)
wrong_gps("velocity in mm/s", "gps_velocity", run_s=11.0, vel=_mm_per_second, **scaled_whole(10.0, "vn", "ve", "vd"))
wrong_gps(
    "north for east",
    "gps_velocity",
    vn=lambda f: -f["ve"],
    ve=lambda f: f["vn"],
    cog=lambda f: f["cog"] if f["cog"] == 65_535 else (f["cog"] + 9000) % 36_000,
)
wrong_gps("up for down", "gps_velocity", **scaled_whole(-1.0, "vd"))
wrong_gps("speed in mm/s", "gps_speed", vel=lambda f: min(f["vel"] * 10, _MAX_U16))
wrong_gps("course in degrees", "gps_course", cog=lambda f: f["cog"] if f["cog"] == 65_535 else f["cog"] // 100)
wrong_gps("course from -180", "gps_course", cog=lambda f: 65_535 - 18_000 if f["cog"] > 18_000 else f["cog"])
wrong_gps("accuracy in metres", "gps_quality", run_s=17.0, **scaled_whole(1e-2, "eph", "epv"))
wrong_gps("five satellites", "gps_quality", run_s=17.0, satellites_visible=lambda _f: 5)
wrong_gps("no fix", "gps_quality", run_s=17.0, fix_type=lambda _f: 1)
wrong_gps("time since boot", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] - _BEGAN_US)
wrong_gps("time of sending", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] + 110_000)
wrong_gps("an old fix", "gps_time", run_s=3.2, time_usec=lambda f: f["time_usec"] - 500_000)
wrong_gps("one time for ever", "gps_time", run_s=3.2, time_usec=lambda _f: _BEGAN_US)


@wrong("a receiver that is stuck", "stale", "gps_velocity", run_s=FLIGHT_S)
def _(bridge):
    first = {}
    bridge.on_gps = lambda _now_us, fields: fields | {key: first.setdefault(key, fields[key]) for key in ("lat", "lon", "alt")}
