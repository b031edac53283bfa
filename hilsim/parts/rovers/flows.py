"""Flows of a rover: sources and destinations of its packets."""

from typing import NamedTuple

from hilsim.parts.rovers.protocol import LIDAR_PORT, POSE_PORT, TELEMETRY_PORT
from hilsim.parts.rovers.specs import RoverSpec
from hilsim.protocols.ethernet import Framing, plain_framing
from hilsim.protocols.flow_key import FlowKey

FLOW_PORTS = {"pose": POSE_PORT, "lidar": LIDAR_PORT, "telemetry": TELEMETRY_PORT}
"""Ports of rover 0's flows, in the order of ``parts.rovers.fleet.Row``."""


class RoverFlow(NamedTuple):
    """One of a rover's flows.

    Attributes:
        name: Name, unique within a rig.
        key: Addresses and ports.
        framing: Framing in a capture.
    """

    name: str
    key: FlowKey
    framing: Framing


def rover_flow(rover: RoverSpec, label: str) -> RoverFlow:
    """Flow of a rover for one of the labels of ``FLOW_PORTS``."""
    port, network = FLOW_PORTS[label] + rover.number, rover.network
    key = FlowKey(network.source, port, network.destination, port)
    return RoverFlow(f"{rover.name}/{label}", key, plain_framing(key))
