"""Velodyne lidars: a head that turns, data packets of twelve blocks, and position packets with a receiver's sentence beside them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.velodyne.packets import VelodynePlan
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, DATA_PORT, RECORDS_PER_BLOCK, ReturnMode, factory_bytes
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE, POSITION_PORT
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE
from hilsim.families.velodyne.specs import VelodyneSpec
from hilsim.families.velodyne.unit import of_unit
from hilsim.sensor.clock import DeviceClock, stamp_us
from hilsim.sensor.decimation import Decimation, build_decimation
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.field_of_view import build_field_of_view
from hilsim.sensor.head import Head, build_head, locked_to_pulse, mean_rate_rpm
from hilsim.sensor.position_stream import build_position_stream
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.encoder import build_encoder
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.world.scene.background import AzimuthGrid, ImageGrid

_MINUTE_NS = 60_000_000_000
_HOUR_S = 3600


def rate_rule(spec: VelodyneSpec, setup: SensorSetup) -> tuple[bool, str]:
    """Check that a model supports the configured rotation rate; returns the condition and its error message for ``require``."""
    rate_rpm = mean_rate_rpm(setup)
    return (
        spec.rate_min_rpm <= rate_rpm <= spec.rate_max_rpm and rate_rpm % spec.rate_step_rpm == 0,
        f"rotation_rate_rpm must be {spec.rate_min_rpm} to {spec.rate_max_rpm} in steps of {spec.rate_step_rpm} for a {spec.model}, got {rate_rpm}",
    )


def build_model_head(spec: VelodyneSpec, setup: SensorSetup, clock: DeviceClock, *, seed: int, stream: int) -> Head:
    """Build the kernel-side head of a model with its setup and clock; ``stream`` is the sensor's number within the rig."""
    rate_rpm = mean_rate_rpm(setup)
    rate = rate_rpm + spec.encoder_at(rate_rpm).rate_offset_rpm
    head = build_head(rate_rpm=rate, phase_deg=setup.phase_deg or 0.0, rate_jitter=spec.rate_jitter, seed=seed, stream=stream)
    if setup.phase_lock_deg is None or not clock.follows_pulse:
        return head
    return locked_to_pulse(head, clock, rate_rpm=rate_rpm, lock_deg=setup.phase_lock_deg)


@dataclass(frozen=True)
class VelodyneFamily(LidarFamily[VelodyneSpec]):
    """A Velodyne."""

    name: ClassVar[str] = "velodyne"
    title: ClassVar[str] = "Velodyne"
    profile: ClassVar[type[VelodyneSpec]] = VelodyneSpec
    grid: ClassVar[type[AzimuthGrid]] = AzimuthGrid
    grid_axes: ClassVar[str] = "azimuth and channel"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "ns"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.LAST, EchoChoice.STRONGEST_BESIDE_LAST)
    is_known_by_source: ClassVar[bool] = False
    has_pulse_input: ClassVar[bool] = True
    reports_azimuth: ClassVar[bool] = True
    interface_ports: ClassVar[Mapping[str, int]] = MappingProxyType({"port": 80})

    def rules(self) -> Iterator[tuple[bool, str]]:
        """Stamps that count from the hour, a rate that the head can turn at."""
        yield (
            self.setup.clock.stamps == "power_up",
            f'clock.stamps must be "power_up" for a {self.spec.model}: its stamps count from the hour, and follow UTC with clock.sync = "pps"',
        )
        yield rate_rule(self.spec, self.setup)

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Data packets and position packets."""
        return (
            FlowLayout("data", DATA_PORT, data_port or DATA_PORT, VELODYNE_DATA_STYLE),
            FlowLayout("position", POSITION_PORT, position_port or POSITION_PORT, VELODYNE_POSITION_STYLE),
        )

    @property
    def spread(self) -> UnitSpread:
        """That of the model."""
        return self.spec.units

    def of_unit(
        self, spec: VelodyneSpec, setup: SensorSetup, learned: UnitSpec, spread: UnitSpread, draws: UnitDraws
    ) -> tuple[VelodyneSpec, SensorSetup]:
        """With the unit's head and position packets."""
        return of_unit(spec, setup, learned, spread, draws)

    @property
    def largest_data_size(self) -> int:
        """Always the same."""
        return DATA_PACKET_SIZE

    @property
    def mode(self) -> ReturnMode:
        """Return mode, as packets name it."""
        return ReturnMode.named(self.setup.return_mode)

    def effective_setup(self) -> dict[str, Any]:
        """The rate."""
        return {"rotation_rate_rpm": mean_rate_rpm(self.setup)}

    @property
    def pace(self) -> str:
        """The model and its rate."""
        return f"{self.spec.model} at {mean_rate_rpm(self.setup)} rpm"

    def packets_text(self, info_port: int) -> str:
        """Data, and the port of position packets."""
        return f"(data) and :{info_port} (position)"

    @property
    def sequences_per_packet(self) -> int:
        """Firing sequences of a data packet."""
        return BLOCKS * RECORDS_PER_BLOCK // (self.mode.returns * self.spec.laser_count)

    @property
    def scan_ns(self) -> int:
        """Time of a turn."""
        return _MINUTE_NS // mean_rate_rpm(self.setup)

    @property
    def rotation_rate_hz(self) -> float:
        """Rotation rate of the head."""
        return mean_rate_rpm(self.setup) / 60

    @property
    def has_utc_source(self) -> bool:
        """Whether a receiver is connected."""
        return self.setup.gps is not None

    def clock_offset_s(self, clock: DeviceClock, rig_ns: int, utc_epoch_ns: int) -> float:
        """Stamp shown now minus UTC's time past the hour, taken to the nearer side of the hour."""
        shown_s = stamp_us(clock, max(rig_ns - clock.start_ns, 0)) / 1e6
        true_s = (utc_epoch_ns + rig_ns) / 1e9 % _HOUR_S
        return float((shown_s - true_s + _HOUR_S / 2) % _HOUR_S - _HOUR_S / 2)

    @property
    def decimation(self) -> Decimation:
        """As in the base class."""
        return build_decimation(self.setup.decimation, self.spec)

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:  # noqa: ARG002 - of interest to other families
        """A head, channels at their elevations, and position packets."""
        spec, setup = self.spec, self.setup
        mount = setup.body_from_sensor
        model = BY_NAME.get(spec.model)
        last_firing_ns = (plan.sequences_per_packet - 1) * plan.sequence_ns + int(plan.firing_offset_ns[-1])
        elevation_deg = np.array([channel.elevation_deg for channel in spec.channels])
        head = build_model_head(spec, setup, plan.clock, seed=seed, stream=stream)
        encoder = build_encoder(spec.encoder_at(mean_rate_rpm(setup)), seed=seed, stream=stream)
        block_sequences = max(RECORDS_PER_BLOCK // spec.laser_count, 1)
        return plan._replace(
            own=VelodynePlan(
                factory_bytes=factory_bytes(self.mode, spec.product),
                stamp_offset_ns=last_firing_ns if model and model.stamps_last_firing else 0,
                has_imu=model is not None and model.has_imu,
            ),
            head=head,
            encoder=encoder,
            field_of_view=build_field_of_view(setup.field_of_view_deg, head, encoder, block_sequences=block_sequences, sequence_ns=plan.sequence_ns),
            position=build_position_stream(spec.position, seed=seed, stream=stream),
            data_size=DATA_PACKET_SIZE,
            info_size=POSITION_PACKET_SIZE,
            elevation_deg=elevation_deg,
            azimuth_offset_rad=np.radians([channel.azimuth_offset_deg for channel in spec.channels]),
            channel_origin_m=np.array([mount.transform((0.0, 0.0, channel.vertical_offset_mm / 1000.0)) for channel in spec.channels]),
        )

    def background_rows(self, grid: AzimuthGrid | ImageGrid) -> npt.NDArray[np.int32]:
        """Row of each channel, by elevation."""
        return self.rows_by_elevation(grid, [channel.elevation_deg for channel in self.spec.channels])


FAMILY = VelodyneFamily
