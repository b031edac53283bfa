"""Livox lidars: lines that fire at once along an endless pattern, packets of 96 points, and inertial packets to a port of their own."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.livox.interface.keys import HAP, MODELS
from hilsim.families.livox.packets import IMU_NS, LivoxPlan, byte_of
from hilsim.families.livox.patterns import PATTERNS, rows_of, table_of
from hilsim.families.livox.protocol.imu import IMU_PACKET_SIZE
from hilsim.families.livox.protocol.points import CARTESIAN_MM, GPS_TIME, NO_TIME, POINTS, PTP_TIME, packet_size
from hilsim.families.livox.recognition import LIVOX_STYLE
from hilsim.families.livox.setting import LivoxSetting
from hilsim.families.livox.specs import LivoxSpec
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.response import calibrated_ratios
from hilsim.sensor.setup import WHOLE_TURN_DEG
from hilsim.sensor.specs import DecimationSpec
from hilsim.units import NS_PER_S
from hilsim.world.scene.background import AzimuthGrid

WINDOW_NS = NS_PER_S // 10
"""What is taken for a scan of a pattern that has none: the time of a frame of the vendor's driver and viewer."""
_FIRST_SERIAL = 100


@dataclass(frozen=True)
class LivoxFamily(LidarFamily[LivoxSpec]):
    """A Livox."""

    name: ClassVar[str] = "livox"
    title: ClassVar[str] = "Livox"
    profile: ClassVar[type[LivoxSpec]] = LivoxSpec
    grid: ClassVar[type[AzimuthGrid]] = AzimuthGrid
    grid_axes: ClassVar[str] = "azimuth and channel"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "us"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.FIRST, EchoChoice.LAST)
    is_known_by_source: ClassVar[bool] = True
    has_network_stack: ClassVar[bool] = True

    @property
    def setting(self) -> LivoxSetting:
        """Settings that its host makes."""
        return self.setup.livox or LivoxSetting()

    @property
    def is_hap(self) -> bool:
        """Whether it has a blind spot that its host sets, and no windows."""
        return MODELS[self.spec.dev_type][0] == HAP

    def rules(self) -> Iterator[tuple[bool, str]]:
        """None of a turning head's keys; stamps that ``clock.sync`` alone sets."""
        spec, setup, clock = self.spec, self.setup, self.setup.clock
        for name, value, default, why in (
            ("field_of_view_deg", setup.field_of_view_deg, WHOLE_TURN_DEG, "livox.fov_deg sets it"),
            ("rotation_rate_rpm", setup.rotation_rate_rpm, None, "its pattern has rates of its own"),
            ("phase_lock_deg", setup.phase_lock_deg, None, "its pattern follows nothing"),
            ("return_mode", setup.return_mode, "strongest", "it reports the first return"),
            ("decimation", setup.decimation, DecimationSpec(), "its pattern has no channels and columns"),
            ("interference", setup.interference, False, "light of other sensors is not made for it"),
            ("clock.stamps", clock.stamps, "power_up", "clock.sync sets them"),
        ):
            yield value == default, f"{name} must not be given for a {spec.model}: {why}"
        yield self.setting.fov_enable == 0 or not self.is_hap, f"livox.fov_enable must not be given for a {spec.model}"

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Points and inertial packets, from ports of which hosts take them alone."""
        _, ports = MODELS[self.spec.dev_type]
        return (
            FlowLayout("points", ports.points, data_port or ports.points + ports.step, LIVOX_STYLE),
            FlowLayout("imu", ports.imu, position_port or ports.imu + ports.step, LIVOX_STYLE),
        )

    def web_rules(self, web: Any, network: Any) -> Iterator[tuple[bool, str]]:
        """Its interface has UDP ports of its own, its serial number is elsewhere, and it sends to whoever asks for it."""
        model, none = self.spec.model, type(web)()
        alone = (web.port, web.commands_port, web.discovery, web.serial) == (none.port, none.commands_port, none.discovery, none.serial)
        no_keys = f"web.port, commands_port, discovery and serial must not be given for a {model}: its UDP ports are fixed, and livox.serial says the number"
        by_udp = f'network.mode must be "udp" for a {model} with web, which sends to whoever asks for it, got "ethernet"'
        own_ports = f'network.source_ports must be "sensor" for a {model} with web: hosts take its packets from these alone'
        apart = f"network.source must not be the destination {network.source}: hosts ignore packets from their own address"
        yield from ((alone, no_keys), (network.mode == "udp", by_udp), (network.source_ports == "sensor", own_ports))
        yield network.source != network.destination, apart

    def effective_setup(self) -> dict[str, Any]:
        """Its settings."""
        return {"livox": dataclasses.asdict(self.setting)}

    @property
    def pace(self) -> str:
        """The model and its points."""
        points = self.spec.laser_count * NS_PER_S // self.spec.sequence_ns
        return f"{self.spec.model}, {points:,} points/s"

    def packets_text(self, info_port: int) -> str:
        """Points, and the port of inertial packets."""
        return f"(points) and :{info_port} (inertial)"

    @property
    def choices(self) -> tuple[EchoChoice, ...]:
        """The first return."""
        return (EchoChoice.FIRST,)

    @property
    def sequences_per_packet(self) -> int:
        """Those of 96 points."""
        return POINTS // self.spec.laser_count

    @property
    def largest_data_size(self) -> int:
        """Bytes of a packet of type 1."""
        return packet_size(CARTESIAN_MM)

    @property
    def settled_data_size(self) -> int:
        """Bytes of a packet of its type."""
        return packet_size(self.setting.pcl_data_type)

    @property
    def fastest_packet_hz(self) -> float:
        """Its packets a second: no setting changes them."""
        return NS_PER_S / (self.sequences_per_packet * self.sequence_ns)

    @property
    def scan_ns(self) -> int:
        """A tenth of a second."""
        return WINDOW_NS

    @property
    def has_utc_source(self) -> bool:
        """With a receiver."""
        return self.setup.gps is not None

    def serial(self, stream: int) -> str:
        """Serial number of the sensor with this number in its rig."""
        return self.setting.serial or f"{self.spec.serial_prefix}{_FIRST_SERIAL + stream:07d}"

    def time_type(self, clock: DeviceClock) -> int:
        """Source of its time: none, a receiver, or PTP where ``clock.sync`` is ``pps`` without one."""
        if not clock.follows_pulse:
            return NO_TIME
        return PTP_TIME if self.setup.gps is None else GPS_TIME

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:  # noqa: ARG002 - the plan's clock has it
        """Lines that follow the pattern, and inertial packets."""
        spec, setting, figures = self.spec, self.setting, PATTERNS[self.spec.pattern]
        forward_m, left_m, up_m = (part / 1000.0 for part in spec.imu_position_mm)
        own = LivoxPlan(
            slow_uhz=figures.slow_uhz,
            fast_uhz=figures.fast_uhz,
            phase_turns=figures.phase_turns + (self.setup.phase_deg or 0.0) / 360.0,
            advance=float(figures.advance),
            reach=np.array(figures.reach, np.int64),
            rows=rows_of(figures),
            table=table_of(figures, plan.firing_offset_ns),
            interval=spec.interval,
            data_type=setting.pcl_data_type,
            time_type=self.time_type(plan.clock),
            windows_deg=np.array(setting.windows_deg, np.float64).reshape(-1, 4),
            imu_place_m=np.array(self.setup.body_from_sensor.transform((-left_m, forward_m, up_m))),
        )
        response = plan.response
        if self.is_hap:
            response = response._replace(range_min_m=max(response.range_min_m, setting.blind_spot_cm / 100.0))
        return plan._replace(
            own=own,
            response=response,
            position=build_periodic_stream(IMU_NS, seed=seed, stream=stream)._replace(is_sent=setting.imu and setting.work_mode == "sampling"),
            data_size=packet_size(setting.pcl_data_type),
            info_size=IMU_PACKET_SIZE,
        )

    def reflectivity_ratios(self) -> npt.NDArray[np.float64]:
        """Ratios to a white diffuse target on the family's scale, the inverse of ``packets.byte_of``."""
        of_engine = calibrated_ratios()
        first = np.searchsorted([byte_of(byte) for byte in range(256)], np.arange(256))
        return of_engine[np.minimum(first, 255)]


FAMILY = LivoxFamily
