"""What a sensor's profile tells the generator: the only place here that knows how a profile is made."""

from hilsim.packets.velodyne_geometry import FiringGeometry
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
