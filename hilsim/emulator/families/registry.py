"""Families that hilsim has itself, as classes; other distributions may bring more (``config.sensor_profiles``)."""

from typing import Any

from hilsim.emulator.families.base import LidarFamily
from hilsim.registry import OWN, family_part
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import LidarSpec


def own_family(name: str) -> type[LidarFamily[Any]]:
    """Class of one of the families in ``registry.OWN``."""
    family: type[LidarFamily[Any]] = family_part(name, "family").FAMILY  # type: ignore[union-attr] # each has one
    return family


def family_of(spec: LidarSpec, setup: SensorSetup | None = None) -> LidarFamily[Any]:
    """A lidar of a model as one of its family; with the default set-up unless given.

    Raises:
        TypeError: the model is of none of hilsim's families; one that extends theirs belongs to a family of its own.
    """
    name = getattr(spec, "family", "")
    family = own_family(name) if name in OWN else None
    if family is None or type(spec) is not family.profile:
        raise TypeError(f"spec must be of one of the families {', '.join(OWN)}, got {type(spec).__name__}")
    return family(spec, setup or SensorSetup())
