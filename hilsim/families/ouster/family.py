"""Ouster lidars: an array of beams that fires at once at each column of a turn, packets of sixteen columns, and inertial packets to a port of their own."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.ouster.packets import IMU_DEVICE_NS
from hilsim.families.ouster.plan import build_ouster_plan
from hilsim.families.ouster.protocol.firmware import pixel_shifts
from hilsim.families.ouster.protocol.geometry import MM_PER_M, offset_transform
from hilsim.families.ouster.protocol.imu import IMU_PACKET_SIZE
from hilsim.families.ouster.protocol.metadata import LIDAR_MODES, SensorMetadata, default_settings, mode_numbers
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, PROFILES
from hilsim.families.ouster.recognition import OUSTER_IMU_STYLE, OUSTER_LIDAR_STYLE
from hilsim.families.ouster.setting import COLUMN_PPB, TURN_MDEG, OusterSetting
from hilsim.families.ouster.specs import OusterSpec
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.head import turning_head
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.setup import WHOLE_TURN_DEG
from hilsim.sensor.specs import DecimationSpec
from hilsim.units import NS_PER_S
from hilsim.world.scene.background import AzimuthGrid

LIDAR_PORT, IMU_PORT = 7502, 7503
_FIRST_SERIAL = 122_600_000_001
"""Serial numbers of emulated units count from here: twelve digits, as real ones have."""
_FIRST_ID = 0x100001
_IMU_LATENCY_NS = 500_000
"""Time from an inertial packet's first stamp to its departure: the gyroscope is read after 435 us; lidar packets take longer to process."""
_FOLLOWING = {"TIME_FROM_SYNC_PULSE_IN", "TIME_FROM_PTP_1588"}
_COLUMN_ZERO_TURNS = 0.5
"""Azimuth of column 0, clockwise from ahead: it looks back, to the connector."""


@dataclass(frozen=True)
class OusterFamily(LidarFamily[OusterSpec]):
    """An Ouster."""

    name: ClassVar[str] = "ouster"
    title: ClassVar[str] = "Ouster"
    profile: ClassVar[type[OusterSpec]] = OusterSpec
    grid: ClassVar[type[AzimuthGrid]] = AzimuthGrid
    grid_axes: ClassVar[str] = "azimuth and channel"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "us"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.STRONGEST, EchoChoice.SECOND_STRONGEST)
    is_known_by_source: ClassVar[bool] = True
    interface_ports: ClassVar[Mapping[str, int]] = MappingProxyType({"port": 80, "commands_port": 7501})
    has_network_stack: ClassVar[bool] = True

    @property
    def setting(self) -> OusterSetting:
        """Settings of its control interface."""
        return self.setup.ouster or OusterSetting()

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Nothing twice that ``[sensor.ouster]`` sets."""
        spec, setup = self.spec, self.setup
        for name, value, default, instead in (
            ("field_of_view_deg", setup.field_of_view_deg, WHOLE_TURN_DEG, "ouster.azimuth_window_mdeg"),
            ("rotation_rate_rpm", setup.rotation_rate_rpm, None, "ouster.lidar_mode"),
            ("phase_deg", setup.phase_deg, None, "phase_lock_deg"),
            ("return_mode", setup.return_mode, "strongest", "ouster.udp_profile_lidar"),
        ):
            yield value == default, f"{name} must not be given for a {spec.model}: {instead} sets it"
        yield setup.gps is None, f"gps must not be given for a {spec.model}: its packets contain no sentence"
        yield setup.decimation == DecimationSpec(), f"decimation must not be given for an {spec.model}"
        clock = setup.clock
        yield clock.sync == "auto", f'clock.sync must be "auto" for a {spec.model}: ouster.timestamp_mode sets it, got "{clock.sync}"'
        yield clock.stamps == "power_up", f'clock.stamps must be "power_up" for a {spec.model}: ouster.timestamp_mode sets it, got "{clock.stamps}"'
        yield (
            setup.phase_lock_deg is None or self.setting.timestamp_mode in _FOLLOWING,
            f"phase_lock_deg must be given with ouster.timestamp_mode {' or '.join(sorted(_FOLLOWING))} only, got {self.setting.timestamp_mode}",
        )
        try:
            self.setting.layout(spec.beams)
        except ValueError as error:
            yield False, f"ouster.udp_profile_lidar: {error}"

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Lidar packets and inertial packets; a real sensor sends each from any free port."""
        return (
            FlowLayout("lidar", LIDAR_PORT, data_port or LIDAR_PORT, OUSTER_LIDAR_STYLE),
            FlowLayout("imu", IMU_PORT, position_port or IMU_PORT, OUSTER_IMU_STYLE),
        )

    def effective_setup(self) -> dict[str, Any]:
        """Its settings."""
        return {"ouster": dataclasses.asdict(self.setting)}

    @property
    def pace(self) -> str:
        """The model, its mode and its profile."""
        return f"{self.spec.model}, {self.setting.lidar_mode}, {self.setting.udp_profile_lidar}"

    def packets_text(self, info_port: int) -> str:
        """Lidar packets, and the port of inertial packets."""
        return f"(lidar) and :{info_port} (inertial)"

    def web_rules(self, web: Any, network: Any) -> Iterator[tuple[bool, str]]:
        """Its serial number is elsewhere, and it sends to whoever asks for it."""
        yield not web.serial, "web.serial must not be given for an Ouster: ouster.serial says it"
        yield self.commands_port_rule(web)
        yield network.mode == "udp", 'network.mode must be "udp" for an Ouster with web, which sends to whoever asks for it, got "ethernet"'

    @property
    def is_dual(self) -> bool:
        """Whether its profile has two returns."""
        return self.setting.profile.returns > 1

    @property
    def sequence_ns(self) -> int:
        """Device time from column to column."""
        return self.setting.column_ns

    @property
    def produced_ratio(self) -> float:
        """Share of a turn's packets that are sent."""
        return len(self.setting.sent_packets) * COLUMNS_PER_PACKET / self.setting.columns_per_frame

    @property
    def sequences_per_packet(self) -> int:
        """Columns of a packet."""
        return COLUMNS_PER_PACKET

    @property
    def largest_data_size(self) -> int:
        """Bytes of a packet of the profile with the largest ones."""
        return max(dataclasses.replace(self.setting, udp_profile_lidar=name).layout(self.spec.beams).size for name in PROFILES)

    @property
    def settled_data_size(self) -> int:
        """Bytes of a packet of its profile."""
        return self.setting.layout(self.spec.beams).size

    @property
    def fastest_packet_hz(self) -> float:
        """Packets a second of the fastest mode."""
        return max(columns * rate_hz for columns, rate_hz in map(mode_numbers, LIDAR_MODES)) / COLUMNS_PER_PACKET

    @property
    def scan_ns(self) -> int:
        """Time of a turn."""
        return NS_PER_S // self.setting.rate_hz

    @property
    def rotation_rate_hz(self) -> float:
        """Rotation rate of the head."""
        return float(self.setting.rate_hz)

    @property
    def has_utc_source(self) -> bool:
        """Whether its stamps follow time from outside."""
        return self.setting.timestamp_mode in _FOLLOWING

    def serial(self, stream: int) -> int:
        """Serial number of the sensor with this number in its rig."""
        return self.setting.serial or _FIRST_SERIAL + stream

    def initialization_id(self, stream: int) -> int:
        """Number of the initialisation of the sensor with this number in its rig."""
        return self.setting.initialization_id or _FIRST_ID + stream

    def metadata(self, stream: int, *, destination: str, data_port: int | None, position_port: int | None) -> SensorMetadata:
        """Metadata that the sensor gives of itself.

        Args:
            stream: Number of the sensor within its rig.
            destination: Address that its packets go to.
            data_port: Port of lidar packets; None: the model's.
            position_port: Port of inertial packets; None: the model's.
        """
        setting, spec = self.setting, self.spec
        lidar, imu = self.flows(data_port, position_port)
        version, lock = setting.version, self.setup.phase_lock_deg
        settings = default_settings(version, destination) | {
            "azimuth_window": list(setting.azimuth_window_mdeg),
            "operating_mode": setting.operating_mode,
            "phase_lock_enable": lock is not None,
            "phase_lock_offset": 0 if lock is None else round(lock * 1000),
            "signal_multiplier": setting.signal_multiplier if setting.signal_multiplier < 1 else round(setting.signal_multiplier),
            "timestamp_mode": setting.timestamp_mode,
            "udp_port_lidar": lidar.destination_port,
            "udp_port_imu": imu.destination_port,
        }
        if "return_order" in settings:
            settings |= {"return_order": setting.return_order, "min_range_threshold_cm": setting.min_range_threshold_cm}
        generation = "bootes" if version.major >= 3 else "aries"
        x, y, z = spec.array.imu_position_mm
        return SensorMetadata(
            prod_line=spec.prod_line,
            serial=str(self.serial(stream)),
            image_rev=f"ousteros-image-prod-{generation}-v{version}+20240101000000",
            initialization_id=self.initialization_id(stream),
            beams=spec.geometry,
            imu_to_sensor=offset_transform(x, y, z),
            lidar_mode=setting.lidar_mode,
            lidar_profile=setting.udp_profile_lidar,
            pixel_shift_by_row=pixel_shifts(spec.azimuth_deg, setting.columns_per_frame, version, spec.prod_line),
            settings=settings,
            imu_profile=setting.udp_profile_imu,
            column_window=None if setting.has_whole_turn else setting.column_window,
            prod_pn="840-000000-00",
            build_rev=f"v{version}",
            build_date="2024-01-01T00:00:00Z",
            status="STANDBY" if setting.operating_mode == "STANDBY" else "RUNNING",
        )

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:  # noqa: ARG002 - the plan's clock has it
        """A head that passes column 0 at its first firing, beams beside its axis, and inertial packets."""
        spec, setting, profile = self.spec, self.setting, self.setting.profile
        clock = plan.clock._replace(oscillator_ppb=plan.clock.oscillator_ppb + COLUMN_PPB)
        clock = clock._replace(start_ns=clock.start_ns + self._wait_ns(clock))
        scale = setting.profile.fields[0].scale
        own = build_ouster_plan(
            spec,
            setting,
            serial=self.serial(stream),
            initialization_id=self.initialization_id(stream),
            stamp_base_ns=self._stamp_base_ns(clock),
            is_dark=plan.false_alarms.sun_z <= 0.0,
            seed=seed,
            stream=stream,
        )
        response = plan.response._replace(
            range_min_m=max(plan.response.range_min_m, setting.min_range_threshold_cm / 100.0),
            threshold_energy=plan.response.threshold_energy / setting.signal_multiplier,
            code_max=min(plan.response.code_max, profile.largest_range_mm),
            grid=max(plan.response.grid, float(scale)),
        )
        up = self.setup.body_from_sensor.transform((0.0, 0.0, spec.array.height_mm / MM_PER_M))
        return plan._replace(
            own=own,
            clock=clock,
            head=turning_head(setting.rate_hz, _COLUMN_ZERO_TURNS, COLUMN_PPB),
            response=response,
            position=build_periodic_stream(IMU_DEVICE_NS, seed=seed, stream=stream)._replace(latency_ns=_IMU_LATENCY_NS - plan.data_latency_ns),
            data_size=own.layout.size,
            info_size=IMU_PACKET_SIZE,
            elevation_deg=np.array(spec.elevation_deg),
            azimuth_offset_rad=np.radians(spec.azimuth_deg),
            bias_m=plan.bias_m + own.arm_m,
            channel_origin_m=np.repeat([up], spec.beams, axis=0),
        )

    def _wait_ns(self, clock: DeviceClock) -> int:
        """Time by which a sensor whose phase is locked fires its first column later, so that the head passes its angle at each second."""
        lock_deg = self.setup.phase_lock_deg
        if lock_deg is None or not clock.follows_pulse:
            return 0
        to_lock_ns = round((1.0 - lock_deg * 1000 / TURN_MDEG) % 1.0 * self.scan_ns)
        return -(clock.utc_epoch_ns + clock.start_ns + to_lock_ns) % self.scan_ns

    def _stamp_base_ns(self, clock: DeviceClock) -> int:
        """``OusterPlan.stamp_base_ns``: pulses are counted from the one before the first column on."""
        if not clock.follows_pulse:
            return clock.stamp_offset_ns
        return (clock.utc_epoch_ns + clock.start_ns) // NS_PER_S * NS_PER_S


FAMILY = OusterFamily
