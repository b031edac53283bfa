"""Cepton-style lidars: lasers that a mirror sweeps over an image, point packets, and sensor information to the same port."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.cepton.packets import CeptonPlan
from hilsim.families.cepton.protocol.info import encode_info_packet
from hilsim.families.cepton.protocol.stdv import POINTS_MAX, STDV_PORT, packet_size, points_max
from hilsim.families.cepton.recognition import CEPTON_STYLE
from hilsim.families.cepton.setting import CeptonSetting
from hilsim.families.cepton.specs import CeptonSpec
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.mirror import build_mirror
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.response import linear_ratios
from hilsim.sensor.setup import WHOLE_TURN_DEG
from hilsim.sensor.specs import DecimationSpec
from hilsim.world.scene.background import AzimuthGrid, ImageGrid

INFO_PERIOD_NS = 500_000_000
"""Sensor information is sent twice a second (Cepton Sensor Communication Specifications)."""


@dataclass(frozen=True)
class CeptonFamily(LidarFamily[CeptonSpec]):
    """A Cepton-style sensor."""

    name: ClassVar[str] = "cepton"
    title: ClassVar[str] = "Cepton-style"
    profile: ClassVar[type[CeptonSpec]] = CeptonSpec
    grid: ClassVar[type[ImageGrid]] = ImageGrid
    grid_axes: ClassVar[str] = "image x and z"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "us"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.STRONGEST, EchoChoice.LAST_BESIDE_STRONGEST)
    is_known_by_source: ClassVar[bool] = True

    @property
    def identity(self) -> CeptonSetting:
        """Its information packet."""
        return self.setup.cepton or CeptonSetting()

    def rules(self) -> Iterator[tuple[bool, str]]:
        """None of a Velodyne's keys, and lasers that fit a packet."""
        spec, setup = self.spec, self.setup
        yield setup.field_of_view_deg == WHOLE_TURN_DEG, f"field_of_view_deg must not be given for a {spec.model}: it has no turning head"
        yield setup.phase_lock_deg is None, f"phase_lock_deg must not be given for a {spec.model}: it has no turning head"
        yield setup.rotation_rate_rpm is None, f"rotation_rate_rpm must not be given for a {spec.model}: its head does not turn"
        yield setup.gps is None, f"gps must not be given for a {spec.model}: it has no input for a receiver"
        yield setup.decimation == DecimationSpec(), f"decimation must not be given for a {spec.model}: its firings have no channels and columns"
        most, points = points_max(self.identity.header_version), spec.laser_count * self.returns
        yield (
            points <= most,
            f"segments must be at most {most // self.returns} in return_mode {setup.return_mode} (a packet holds {most} points), got {spec.laser_count}",
        )

    def port_rules(self, data_port: int | None, position_port: int | None) -> Iterator[tuple[bool, str]]:  # noqa: ARG002 - any data port will do
        """There is no port of position packets."""
        yield position_port is None, f"network.position_port must not be given for a {self.spec.model}: its information packets go to data_port"

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:  # noqa: ARG002 - it has none
        """Points and sensor information, to one port."""
        port = data_port or STDV_PORT
        return FlowLayout("points", STDV_PORT, port, CEPTON_STYLE), FlowLayout("info", STDV_PORT, port, CEPTON_STYLE)

    def effective_setup(self) -> dict[str, Any]:
        """Its information packet."""
        return {"cepton": dataclasses.asdict(self.identity)}

    def effective_ports(self, data_port: int | None, position_port: int | None) -> dict[str, int]:  # noqa: ARG002 - it has none
        """The one port."""
        return {"data_port": data_port or STDV_PORT}

    @property
    def pace(self) -> str:
        """The model and its scans."""
        return f"{self.spec.model}, {1.0 / self.spec.scan_s:.3g} scans/s"

    def packets_text(self, info_port: int) -> str:  # noqa: ARG002 - that of the points
        """Points, and information where it is sent."""
        return f"(points{' and information' if self.identity.info_packets else ''})"

    @property
    def sequences_per_packet(self) -> int:
        """As many as fit."""
        return points_max(self.identity.header_version) // (self.spec.laser_count * self.returns)

    @property
    def largest_data_size(self) -> int:
        """A packet of the newer header with as many points as there can be."""
        return packet_size(2, POINTS_MAX)

    @property
    def scan_ns(self) -> int:
        """Time of a scan of the image."""
        return round(self.spec.scan_s * 1e9)

    @property
    def has_utc_source(self) -> bool:
        """Over its network."""
        return True

    def clock_offset_s(self, clock: DeviceClock, rig_ns: int, utc_epoch_ns: int) -> float:  # noqa: ARG002 - it keeps what it begins with
        """Time from power-up to its first firing; 0 where its stamps are UTC."""
        return self.setup.clock.offset_s if self.setup.clock.stamps == "power_up" else 0.0

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:
        """A mirror, beams that leave from one place, and sensor information."""
        spec, setup, identity = self.spec, self.setup, self.identity
        info = self.info_packet(utc_epoch_ns) if identity.info_packets else np.zeros(0, np.uint8)
        return plan._replace(
            own=CeptonPlan(identity.header_version, info),
            mirror=build_mirror(spec.mirror, spec.segments, phase_deg=setup.phase_deg or 0.0),
            position=build_periodic_stream(INFO_PERIOD_NS if identity.info_packets else None, seed=seed, stream=stream),
            data_size=packet_size(identity.header_version, plan.sequences_per_packet * spec.laser_count * plan.choice.size),
            info_size=info.size,
        )

    def info_packet(self, utc_epoch_ns: int) -> npt.NDArray[np.uint8]:
        """``uint8[88]``, the sensor information packet: its counter began ``offset_s`` before the sensor's first firing.

        How far UTC is ahead of the counter is written when it is sent.
        """
        spec, setup, identity = self.spec, self.setup, self.identity
        power_up_us = (utc_epoch_ns + round(setup.start_delay_us * 1000) - round(setup.clock.offset_s * 1e9)) // 1000
        return encode_info_packet(
            model=spec.model_code,
            serial=identity.serial,
            firmware=identity.firmware,
            model_name=spec.model,
            part_number=identity.part_number,
            power_up_us=max(power_up_us, 0),
            sync_offset_us=0,
            returns=self.returns,
        )

    def reflectivity_ratios(self) -> npt.NDArray[np.float64]:
        """Ratios to a white diffuse target on the family's scale."""
        return linear_ratios()

    def background_rows(self, grid: AzimuthGrid | ImageGrid) -> npt.NDArray[np.int32]:  # noqa: ARG002 - a beam finds its row by its direction
        """None: a beam finds its cell by its direction."""
        return np.zeros(self.spec.laser_count, np.int32)


FAMILY = CeptonFamily
