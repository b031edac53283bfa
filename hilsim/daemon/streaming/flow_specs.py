"""What the transmitter and the rendering threads need to know of a rig's flows."""

import math

from hilsim.config.rig import AUTO_LEAD_MS, Rig
from hilsim.config.sensor_table import SensorSpec
from hilsim.emulator.batch import Flow
from hilsim.protocols.ethernet import LinkStyle
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, SocketSpec

_PRIORITY_BELOW = 10
"""Of rendering threads below the sending loop."""
RENDERING_SLICE_US = 2000.0
"""Longer than one packet takes to render, or the next timer tick interrupts it."""

AUTO_LEAD_NS = (40_000_000, 60_000_000)
"""Lead where it is left to hilsim, to begin with and at most: standstills of a virtual machine's host are shorter."""

AUTO_LEAD_FLYING_NS = (4_000_000, 12_000_000)
"""The same where a vehicle flies: poses are known only up to now, so a longer lead is a later picture."""

_SLOTS = (64, 4096)
_SLOTS_PER_LEAD = 1.25


def flow_spec(flow: Flow, sensor: SensorSpec, style: LinkStyle, packet_rate_hz: float) -> FlowSpec:
    """What the transmitter needs to know of a flow."""
    network = sensor.network
    if network.mode == "ethernet":
        return FlowSpec(name=flow.name, socket=FrameSocketSpec(interface=network.interface), packet_rate_hz=packet_rate_hz)
    return FlowSpec(
        name=flow.name,
        socket=SocketSpec.of_flow(
            flow.key, style, free_port=network.source_ports != "sensor", broadcast=network.broadcast, interface=network.interface
        ),
        packet_rate_hz=packet_rate_hz,
    )


def data_packet_rate_hz(rig: Rig) -> float:
    """Of all sensors together."""
    return sum(lidar.packet_rate_hz for lidar in rig.lidars)


def lead_bounds_ns(rig: Rig) -> tuple[int, int]:
    """Shortest and longest time before its deadline that a packet is rendered."""
    if rig.spec.lead_ms != AUTO_LEAD_MS:
        lead_ns = round(rig.spec.lead_ms * 1e6)
        return lead_ns, lead_ns
    return AUTO_LEAD_NS if rig.spec.vehicle is None else AUTO_LEAD_FLYING_NS


def ring_slots(rig: Rig) -> int:
    """Packets that each ring holds: what the rig says, or what is rendered ahead of the fastest sensor, and a quarter more."""
    if rig.spec.transmit.slots:
        return rig.spec.transmit.slots
    fastest_hz = max((lidar.packet_rate_hz for lidar in rig.lidars), default=0.0)
    least, most = _SLOTS
    return min(max(math.ceil(_SLOTS_PER_LEAD * lead_bounds_ns(rig)[1] / 1e9 * fastest_hz), least), most)


def rendering_priority(rig: Rig) -> int:
    """Of rendering threads under SCHED_FIFO."""
    return max(rig.spec.transmit.priority - _PRIORITY_BELOW, 1)


def render_settings(rig: Rig) -> ThreadSettings:
    """How a rig's rendering threads are scheduled to begin with; ``daemon.streaming.pacer`` changes it by what they cost."""
    return ThreadSettings(scheduling=rig.spec.transmit.scheduling, priority=rendering_priority(rig), slice_us=RENDERING_SLICE_US)
