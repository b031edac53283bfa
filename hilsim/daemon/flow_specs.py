"""What the transmitter and the rendering threads need to know of a rig's flows."""

import os

from hilsim.config.rig import Rig
from hilsim.config.sensor_table import SensorSpec
from hilsim.emulator.batch import Flow
from hilsim.packets.ethernet import LinkStyle
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.transmit.specs import FlowSpec, FrameSocketSpec, SchedulingChoice, SocketSpec

_PRIORITY_BELOW = 10
"""Of rendering threads below the sending loop."""
_SLICE_US = 1000.0
"""Longer than one packet takes to render, or the next timer tick interrupts it."""
_FIRING_COST_S = 200e-6 / 384
"""CPU time to render a firing in a large scene: 90 us for the 384 of a packet measured in a room, 140 us in the demo street."""
_SUB_RAY_COST_RATIO = 0.27
"""What a further sub-ray costs, in costs of a beam of one: 2.6 fold for 7, 5.8 fold for 19 measured in the demo street."""
_FEEDER_BUDGET_RATIO = 0.5


def flow_spec(flow: Flow, sensor: SensorSpec, style: LinkStyle, packet_rate_hz: float) -> FlowSpec:
    """What the transmitter needs to know of a flow."""
    network = sensor.network
    if network.mode == "ethernet":
        return FlowSpec(name=flow.name, socket=FrameSocketSpec(interface=network.interface), packet_rate_hz=packet_rate_hz)
    return FlowSpec(
        name=flow.name,
        socket=SocketSpec(
            source=flow.source,
            source_port=flow.source_port if network.source_ports == "sensor" else 0,
            destination=flow.destination,
            destination_port=flow.destination_port,
            broadcast=network.broadcast,
            interface=network.interface,
            ttl=style.ttl,
            dont_fragment=style.dont_fragment,
            udp_checksum=style.udp_checksum,
        ),
        packet_rate_hz=packet_rate_hz,
    )


def data_packet_rate_hz(rig: Rig) -> float:
    """Of all sensors together."""
    return sum(lidar.packet_rate_hz for lidar in rig.lidars)


def feeder_scheduling(rig: Rig) -> SchedulingChoice:
    """How rendering threads are scheduled: as the sending loop, unless together they would fill the cores.

    Real-time threads that fill a core are throttled by the kernel for 50 ms of each second, the sending loop with them; a short slice is the better
    choice then.
    """
    wanted = rig.spec.transmit.scheduling
    if wanted in ("slice", "plain"):
        return wanted
    firings_hz = [lidar.spec.laser_count * 1e9 / lidar.spec.sequence_ns for lidar in rig.lidars]
    costs_s = [_FIRING_COST_S * (1.0 + _SUB_RAY_COST_RATIO * (lidar.sub_rays - 1)) for lidar in rig.lidars]
    load = sum(rate_hz * cost_s for rate_hz, cost_s in zip(firings_hz, costs_s, strict=True))
    return "auto" if load <= _FEEDER_BUDGET_RATIO * len(os.sched_getaffinity(0)) else "slice"


def feeder_settings(rig: Rig) -> ThreadSettings:
    """How a rig's rendering threads are scheduled."""
    return ThreadSettings(scheduling=feeder_scheduling(rig), priority=max(rig.spec.transmit.priority - _PRIORITY_BELOW, 1), slice_us=_SLICE_US)
