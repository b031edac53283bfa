"""Settings of a replay."""

import math
from dataclasses import dataclass, fields
from typing import Literal

from hilsim.errors import require, within
from hilsim.parts.replays.flows import FlowRule, parse_endpoints
from hilsim.protocols.ethernet import parse_mac
from hilsim.sensor.specs import SUB_RAY_COUNTS
from hilsim.transmit.hosts import is_host, is_ipv4

Pace = Literal["device", "capture", "nominal"]
Retime = Literal["utc", "device", "none"]
Loop = Literal["none", "plain", "seamless"]


@dataclass(frozen=True, kw_only=True)
class ReplaySpec:
    """Replay of one capture.

    Attributes:
        name: Name, unique within the rig; a label of metrics.
        file: Capture file (PCAP, PCAPNG; plain, gzip or zstd), relative to the rig.
        flow: Rules that select the recorded flows and set their addresses; without rules, all flows.
        source: Source address of packets: ``auto`` (to loopback destinations one loopback address for each recorded source, else ``recorded``), ``recorded``,
            or an address of this host.
        source_ports: Source ports: ``auto``: free ports to loopback destinations (a receiver on this host can then bind the sensor's port on all
            addresses), else
            the recorded ones; ``recorded``; ``any``.
        destination: Destination address of packets, the name of a host (looked up once at the start and at each reload), or ``recorded``.
        destination_port: Destination port of packets; 0: the recorded one.
        broadcast: Permission for a broadcast destination, whose packets every host on the network gets.
        mode: Way of sending: ``udp``: ordinary sockets; ``ethernet``: whole frames through ``interface`` with the recorded sources, on hosts that do
            not have these
            addresses (needs CAP_NET_RAW).
        interface: Name of the network interface; needed for ``ethernet``, optional for ``udp``.
        destination_mac: MAC address for frames to a unicast address.
        pace: Source of the send times: the sensor's own time stamps (``device``: free of the capturing host's jitter, and following its clock in the long
            run), the capture's times (``capture``), or a constant rate (``nominal``). Packets whose stamps are not understood are sent by capture time.
        rate_hz: Packets a second of each flow of unknown packet kind, for pace ``nominal``.
        interval_scale: Factor on the time between packets: 0.5 replays twice as fast.
        start_s: Capture time at which the replay begins.
        duration_s: Length of capture time to replay; 0: to the capture's end.
        offset_s: Rig time at which the replay begins; its first packet is due 2 ms later.
        align: Use of ``offset_s``: ``start``: the replay begins then; ``capture``: the earliest of all captures so aligned begins then, and the
            others as much later as they were recorded.
        retime: New time of time stamps, NMEA sentences and sequence numbers: ``utc``: the present UTC; ``device``: the rig's device clock (rig time plus
            ``clock_offset_s``); ``none``: untouched, every payload as it was recorded.
        clock_offset_s: Time of the stamps at rig time 0 with ``retime = "device"``.
        loop: Repetition: ``none``; ``plain``: again from the start; ``seamless``: cut where the head points in the same direction (or the frame
            parity is equal), so that
            receivers see one continuous stream.
        loops: Number of passes of a loop; 0: for ever.
        loop_sensor: Recorded address of the sensor that decides the seamless cut; empty: the one with the most packets.
        lookahead_packets: Number of packets to read ahead.
        late_policy: Reaction to a stall of the host longer than the 20 ms that packets are ready ahead: ``postpone``: all following deadlines move by
            that time, for all replays that postpone, so that no packet is lost and none is sent in a burst; ``keep``: the deadlines stay, and
            ``transmit.late_policy`` decides about each packet.
        overlay: Put the rig's scene into the recorded points: what is nearer than a recorded return replaces it.
        profile: Sensor profile with the beam and the detector of the recorded unit; empty: the profile of its model, if hilsim ships it, else the VLP-16's.
            Required for a Cepton. Range noise is measured on the capture.
        mount_position_m: Position of the recorded sensor in the frame of its carrier.
        mount_rotation_deg: Roll, pitch and yaw of the recorded sensor in the frame of its carrier.
        trajectory: File with the carrier's poses, relative to the rig; time 0 is the capture's first packet. Empty: the rig's platform, which must be fixed.
        sub_rays: Rays a beam that are cast against the scene: 1, 7 or 19.
    """

    name: str
    file: str
    flow: tuple[FlowRule, ...] = ()
    source: str = "auto"
    source_ports: Literal["auto", "recorded", "any"] = "auto"
    destination: str = "127.0.0.1"
    destination_port: int = 0
    broadcast: bool = False
    mode: Literal["udp", "ethernet"] = "udp"
    interface: str = ""
    destination_mac: str = ""
    pace: Pace = "device"
    rate_hz: float = 0.0
    interval_scale: float = 1.0
    start_s: float = 0.0
    duration_s: float = 0.0
    offset_s: float = 0.0
    align: Literal["start", "capture"] = "start"
    retime: Retime = "utc"
    clock_offset_s: float = 0.0
    loop: Loop = "none"
    loops: int = 0
    loop_sensor: str = ""
    lookahead_packets: int = 4096
    late_policy: Literal["postpone", "keep"] = "postpone"
    overlay: bool = False
    profile: str = ""
    mount_position_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mount_rotation_deg: tuple[float, float, float] = (0.0, 0.0, 0.0)
    trajectory: str = ""
    sub_rays: int = 7

    def __post_init__(self) -> None:
        plain = self.name.replace("-", "").replace("_", "").replace(".", "").isalnum()
        require(
            *within(self, destination_port=(0, 65_535), rate_hz=(0, 1_000_000), interval_scale=(0.001, 1000), start_s=(0, 100_000_000)),
            *within(self, offset_s=(0, 100_000_000)),
            (plain, f'name must be letters, digits, "-", "_" and ".", got "{self.name}"'),
            (bool(self.file), "file must be given"),
            (self.source in {"auto", "recorded"} or is_ipv4(self.source), f'source must be auto, recorded or an IPv4 address, got "{self.source}"'),
            (
                is_host(self.destination),
                f'destination must be recorded, an IPv4 address or the name of a host, got "{self.destination}"',
            ),
            (
                self.broadcast or self.destination != "255.255.255.255",
                "broadcast must be true for destination 255.255.255.255: every host on the network gets these packets",
            ),
            (self.mode == "udp" or bool(self.interface), 'interface must be given for mode "ethernet"'),
            (
                not self.destination_mac or _is_mac(self.destination_mac),
                f'destination_mac must be like "60:76:88:10:2f:6f", got "{self.destination_mac}"',
            ),
            (0.0 <= self.duration_s <= 1e8, f"duration_s must be 0 (to the end) to 1e8, got {self.duration_s}"),
            (abs(self.clock_offset_s) <= 8e9, f"clock_offset_s must be at most 8e9 either way, got {self.clock_offset_s}"),
            (self.loops >= 0, f"loops must be 0 (for ever) or more, got {self.loops}"),
            (self.loop != "none" or self.loops <= 1, f'loops must be given with loop "plain" or "seamless" only, got {self.loops}'),
            (not self.loop_sensor or is_ipv4(self.loop_sensor), f'loop_sensor must be an IPv4 address, got "{self.loop_sensor}"'),
            (64 <= self.lookahead_packets <= 1 << 18, f"lookahead_packets must be 64 to {1 << 18}, got {self.lookahead_packets}"),
            (self.overlay or not self._overlay_keys, f"overlay must be true for {', '.join(self._overlay_keys)}, got false"),
            (all(map(math.isfinite, self.mount_position_m)), f"mount_position_m must be finite, got {self.mount_position_m}"),
            (all(map(math.isfinite, self.mount_rotation_deg)), f"mount_rotation_deg must be finite, got {self.mount_rotation_deg}"),
            (self.sub_rays in SUB_RAY_COUNTS, f"sub_rays must be one of {', '.join(map(str, SUB_RAY_COUNTS))}, got {self.sub_rays}"),
        )

    @property
    def _overlay_keys(self) -> list[str]:
        """Keys with a value of their own that only an overlay uses."""
        names = ("profile", "mount_position_m", "mount_rotation_deg", "trajectory", "sub_rays")
        return [name for name in names if getattr(self, name) != _OVERLAY_DEFAULTS[name]]

    @property
    def source_addresses(self) -> tuple[str, ...]:
        """Source addresses that the settings name."""
        addresses = (self.source, *(parse_endpoints(rule.send).source for rule in self.flow))
        return tuple(address for address in addresses if is_ipv4(address))


_OVERLAY_DEFAULTS = {each.name: each.default for each in fields(ReplaySpec)}


def _is_mac(text: str) -> bool:
    try:
        parse_mac(text)
    except ValueError:
        return False
    return True
