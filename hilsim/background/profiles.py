"""What a sensor's profile tells the generator: the only place here that knows how a profile is made."""

from hilsim.background.survey import FoundSensor, Kind
from hilsim.errors import CaptureError
from hilsim.protocols.velodyne.geometry import FiringGeometry
from hilsim.sensor.cepton_specs import CeptonSpec
from hilsim.sensor.specs import LidarSpec
from hilsim.sensor.velodyne_specs import VelodyneSpec


def geometry_of(spec: VelodyneSpec) -> FiringGeometry:
    """Where a profile's lasers look and when they fire."""
    return FiringGeometry(
        model=spec.model,
        elevation_deg=tuple(channel.elevation_deg for channel in spec.channels),
        azimuth_offset_deg=tuple(channel.azimuth_offset_deg for channel in spec.channels),
        delay_ns=tuple(laser // spec.lasers_per_firing * spec.firing_ns for laser in range(len(spec.channels))),
        sequence_ns=spec.sequence_ns,
        distance_unit_mm=spec.range_unit_mm,
    )


def check_named(named: LidarSpec, found: FoundSensor, where: str) -> None:
    """Refuse a profile that cannot be that of a sensor which was found.

    Args:
        named: The profile that a person says the sensor has.
        found: What the packets say.
        where: What to call their source.

    Raises:
        CaptureError: the packets are of another family, or name another model.
    """
    if found.kind is Kind.VELODYNE:
        if found.model != named.model:
            raise CaptureError(f"{where}: --profile must be of the model that the packets say, got one of a {named.model} and packets of {found}")
    elif not isinstance(named, CeptonSpec):
        raise CaptureError(f'{where}: --profile must be of family "cepton" for Cepton packets, got one of a {named.model} and packets of {found}')
