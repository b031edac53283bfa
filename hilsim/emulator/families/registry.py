"""Every family that hilsim has itself; other distributions may bring more (``config.sensor_profiles``)."""

from typing import Any

from hilsim.emulator.families.base import LidarFamily
from hilsim.families.cepton.family import CeptonFamily
from hilsim.families.ouster.family import OusterFamily
from hilsim.families.velodyne.family import VelodyneFamily
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import LidarSpec

FAMILIES: tuple[type[LidarFamily[Any]], ...] = (VelodyneFamily, CeptonFamily, OusterFamily)
"""The first is the default of profiles."""


def family_of(spec: LidarSpec, setup: SensorSetup | None = None) -> LidarFamily[Any]:
    """A lidar of a model as one of its family; with the default set-up unless given.

    Raises:
        TypeError: the model is of none of hilsim's families; one that extends theirs belongs to a family of its own.
    """
    for family in FAMILIES:
        if type(spec) is family.profile:
            return family(spec, setup or SensorSetup())
    raise TypeError(f"spec must be of one of the families {', '.join(family.name for family in FAMILIES)}, got {type(spec).__name__}")
