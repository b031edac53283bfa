"""Metadata of the Ouster sensors of a rig, as they begin."""

from hilsim.assembly.build import sensor_flows
from hilsim.config.rig import Rig
from hilsim.families.ouster.family import OusterFamily
from hilsim.families.ouster.protocol.metadata import SensorMetadata


def ouster_metadata(rig: Rig) -> list[SensorMetadata]:
    """Metadata of a rig's Ouster sensors in the order of the rig, with the ports that their packets go to."""
    found = []
    for sensor, setting in zip(rig.spec.sensor, rig.lidars, strict=True):
        if isinstance(setting.family, OusterFamily):
            data, position = (each.flow for each in sensor_flows(sensor, setting))
            ports = {"data_port": data.destination_port, "position_port": position.destination_port}
            found.append(setting.family.metadata(setting.stream, destination=data.destination, **ports))
    return found
