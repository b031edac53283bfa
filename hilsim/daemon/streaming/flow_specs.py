"""Settings of a rig's flows for the transmitter and the render threads."""

import math
from typing import NamedTuple

from hilsim.config.part_kind import carrier
from hilsim.config.rig import AUTO_LEAD_MS, Rig, is_moved_live
from hilsim.config.tables.sensor import SensorSpec
from hilsim.emulator.batch import Flow
from hilsim.protocols.ethernet import LinkStyle
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, SocketSpec

_PRIORITY_BELOW = 10
"""Priority of the sending loop minus the priority of the render threads."""
RENDERING_SLICE_US = 2000.0
"""Time slice of render threads. It is longer than one packet takes to render, otherwise the next timer tick would interrupt it."""


class LeadBounds(NamedTuple):
    """Bounds of a sensor's lead; equal if the rig sets it.

    Attributes:
        shortest_ns: Shortest lead, in force from the first step of the pacer on.
        longest_ns: Longest lead, in force until then.
        tolerated_ratio: Share of the packets of a step that may be late before the lead grows.
    """

    shortest_ns: int
    longest_ns: int
    tolerated_ratio: float


AUTO_LEAD = LeadBounds(40_000_000, 60_000_000, 0.0)
"""Bounds if the rig leaves the lead to hilsim: stalls of a virtual machine's host are shorter."""

AUTO_LEAD_FLYING = LeadBounds(2_500_000, 12_000_000, 0.01)
"""Bounds if a part moves the rig live: poses are known only up to now, so a longer lead gives older poses, which is worse than an
occasional late packet."""

_SLOTS = (64, 4096)
_SLOTS_PER_LEAD = 1.25


def flow_spec(flow: Flow, sensor: SensorSpec, style: LinkStyle, packet_rate_hz: float) -> FlowSpec:
    """Settings of a flow for the transmitter."""
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
    """Data packets a second of all sensors together."""
    return sum(lidar.packet_rate_hz for lidar in rig.lidars)


def largest_data_size(rig: Rig, number: int) -> int:
    """Bytes of the largest data packet that a sensor of the rig may send; one without a web interface keeps its setting."""
    sensor, lidar = rig.spec.sensor[number], rig.lidars[number]
    return lidar.family.settled_data_size if sensor.web is None else lidar.family.largest_data_size


def _packet_rate_hz(rig: Rig, number: int) -> float:
    """Data packets a second in the fastest mode of a sensor."""
    lidar = rig.lidars[number]
    return max(lidar.packet_rate_hz, lidar.family.fastest_packet_hz if rig.spec.sensor[number].web is not None else 0.0)


def lead_bounds(rig: Rig) -> LeadBounds:
    """Bounds of the time between rendering a packet and its deadline."""
    if rig.spec.lead_ms != AUTO_LEAD_MS:
        lead_ns = round(rig.spec.lead_ms * 1e6)
        return LeadBounds(lead_ns, lead_ns, 0.0)
    is_live = carrier(rig.spec) is not None or is_moved_live(rig)
    return AUTO_LEAD_FLYING if is_live else AUTO_LEAD


def ring_slots(rig: Rig) -> int:
    """Capacity of each ring in packets: as set in the rig, or the packets rendered ahead for the fastest sensor plus a quarter."""
    if rig.spec.transmit.slots:
        return rig.spec.transmit.slots
    fastest_hz = max((_packet_rate_hz(rig, number) for number in range(len(rig.lidars))), default=0.0)
    least, most = _SLOTS
    return min(max(math.ceil(_SLOTS_PER_LEAD * lead_bounds(rig).longest_ns / 1e9 * fastest_hz), least), most)


def rendering_priority(rig: Rig) -> int:
    """Priority of render threads under SCHED_FIFO."""
    return max(rig.spec.transmit.priority - _PRIORITY_BELOW, 1)


def render_settings(rig: Rig) -> ThreadSettings:
    """Initial scheduling of a rig's render threads; ``daemon.streaming.pacer`` changes it by their measured cost."""
    return ThreadSettings(scheduling=rig.spec.transmit.scheduling, priority=rendering_priority(rig), slice_us=RENDERING_SLICE_US)
