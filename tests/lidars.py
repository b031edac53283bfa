"""Settings of lidars for tests: keys of a rig's ``[[sensor]]`` by name."""

from hilsim.emulator.setting import LidarSetting
from hilsim.sensor.optics.weather import WeatherSpec
from hilsim.sensor.setup import SensorSetup


def lidar_setting(spec, *, name="lidar", stream=0, weather=None, unit="ideal", **setup):
    return LidarSetting(name=name, stream=stream, spec=spec, setup=SensorSetup(unit=unit, **setup), weather=weather or WeatherSpec())
