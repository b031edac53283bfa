"""Another destination for the packets of a sensor, as set on its own page, while they flow."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from hilsim.assembly.build import flow_framing, network_stack, sensor_flows
from hilsim.config.tables.sensor import SensorSpec
from hilsim.daemon.parts import RigContext
from hilsim.emulator.setting import LidarSetting
from hilsim.errors import ConfigError, HilsimError
from hilsim.transmit.specs import SocketSpec


def redirect(context: RigContext, sensor: SensorSpec, setting: LidarSetting, address: str, ports: Sequence[int], *, key: str) -> None:
    """Send a sensor's packets to another destination from the next one on, and announce that to the sinks, whose frames contain it.

    Args:
        context: Context of the running rig.
        sensor: The sensor as the rig has it.
        setting: Setting of the sensor as the rig has it.
        address: IPv4 address of the destination.
        ports: Ports of the destination for data packets and for the others; 0: unchanged.
        key: Name of the setting, for errors.

    Raises:
        ConfigError: ``sensor.web.destinations`` does not permit it, the sensor sends whole frames, or a socket cannot be opened; the destinations are as
            they were.
    """
    transmitter, rows = context.transmitter, {name: row for row, name in dict(context.rows).items()}
    flows, retargets = sensor_flows(sensor, setting), []
    if sensor.web is not None and address != flows.data.flow.destination and not sensor.web.permits(address):
        raise ConfigError(f"{key} must be in {' or '.join(sensor.web.destinations)} (sensor.web.destinations of the rig), got {address}")
    for of, port in zip(flows, ports, strict=True):
        row = rows[of.flow.name]
        former = transmitter.flows[row]
        if not isinstance(former.socket, SocketSpec):
            raise ConfigError(f'{key} must not be changed in mode "ethernet", whose frames contain the destination')
        if port and (former.socket.destination, former.socket.destination_port) != (address, port):
            retargets.append((row, former, former.socket, of._replace(flow=replace(of.flow, destination=address, destination_port=port))))
    try:
        specs = [
            replace(former, socket=replace(socket, destination=address, destination_port=of.flow.destination_port))
            for _, former, socket, of in retargets
        ]
        with transmitter.reserved(specs, [former for _, former, _, _ in retargets]):
            for (row, _, _, of), spec in zip(retargets, specs, strict=True):
                framing, stack = flow_framing(of, sensor, setting), network_stack(sensor, setting)
                transmitter.retarget_flow(row, spec, partial(context.introduce_flow, name=spec.name, framing=framing, stack=stack))
    except (HilsimError, ValueError) as error:
        raise ConfigError(f"{key} must be a destination that packets can be sent to, got {address}: {error}") from error
