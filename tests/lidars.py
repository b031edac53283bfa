"""Settings of lidars for tests: keys of a rig's ``[[sensor]]`` by name."""

import dataclasses

from hilsim.emulator.setting import LidarSetting
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.signal.spec import SignalSpec


def exact_signal(spec):
    """A model whose receiver adds nothing to ranges and bytes beyond ``range_noise_m`` and ``[detector]``, and whose beams are lines unless a rig widens them."""
    return dataclasses.replace(spec, signal=SignalSpec(), beam=dataclasses.replace(spec.beam, sub_rays=1, receiver_offset_mm=0.0))


def lidar_setting(spec, *, name="lidar", stream=0, weather=None, is_exact=True, unit="ideal", faults=(), **setup):
    """Setting of a lidar, with the signal of its profile where ``is_exact`` is false."""
    return LidarSetting(
        name=name,
        stream=stream,
        spec=exact_signal(spec) if is_exact else spec,
        setup=SensorSetup(unit=unit, **setup),
        weather=weather or WeatherSpec(),
        faults=faults,
    )
