"""Hesai lidars of the XT series: a head that turns, and packets of blocks that an encoder times."""

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.hesai.packets import HesaiPlan, shown_ns
from hilsim.families.hesai.protocol.points import DATA_PORT, Head, ReturnMode, packet_size
from hilsim.families.hesai.recognition import HESAI_STYLE
from hilsim.families.hesai.setting import PAIRS, HesaiSetting
from hilsim.families.hesai.specs import RATES_RPM, HesaiSpec
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.head import mean_rate_rpm, turning_head
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.setup import WHOLE_TURN_DEG, SensorSetup
from hilsim.sensor.specs import DecimationSpec
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.units import TURN_CDEG
from hilsim.world.scene.background import AzimuthGrid

GPS_PORT, _SOURCE_PORT = 10_110, 10_000
_MINUTE_NS = 60_000_000_000


@dataclass(frozen=True)
class HesaiFamily(LidarFamily[HesaiSpec]):
    """A Hesai."""

    name: ClassVar[str] = "hesai"
    title: ClassVar[str] = "Hesai"
    profile: ClassVar[type[HesaiSpec]] = HesaiSpec
    grid: ClassVar[type[AzimuthGrid]] = AzimuthGrid
    grid_axes: ClassVar[str] = "azimuth and channel"
    capture_stamps: ClassVar[Literal["ns", "us"]] = "us"
    pair: ClassVar[tuple[EchoChoice, EchoChoice]] = (EchoChoice.LAST, EchoChoice.STRONGEST_BESIDE_LAST)
    is_known_by_source: ClassVar[bool] = False
    reports_azimuth: ClassVar[bool] = True

    @property
    def setting(self) -> HesaiSetting:
        """Settings that other sensors have not."""
        return self.setup.hesai or HesaiSetting()

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A rate that it has; stamps that ``clock.sync`` alone sets; nothing that is not emulated."""
        spec, setup = self.spec, self.setup
        rate = mean_rate_rpm(setup)
        yield rate in RATES_RPM, f"rotation_rate_rpm must be {', '.join(map(str, RATES_RPM[:-1]))} or {RATES_RPM[-1]} for a {spec.model}, got {rate}"
        for name, value, default, why in (
            ("field_of_view_deg", setup.field_of_view_deg, WHOLE_TURN_DEG, "what its packets do at the edges is not known"),
            ("phase_lock_deg", setup.phase_lock_deg, None, "it is not emulated"),
            ("decimation", setup.decimation, DecimationSpec(), "it is not emulated"),
            ("clock.stamps", setup.clock.stamps, "power_up", "clock.sync sets them"),
        ):
            yield value == default, f"{name} must not be given for a {spec.model}: {why}"

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Points, and GPS packets, which are not sent."""
        return (
            FlowLayout("points", _SOURCE_PORT, data_port or DATA_PORT, HESAI_STYLE),
            FlowLayout("gps", _SOURCE_PORT, position_port or GPS_PORT, HESAI_STYLE),
        )

    def effective_setup(self) -> dict[str, Any]:
        """The rate, and its settings."""
        return {"rotation_rate_rpm": mean_rate_rpm(self.setup), "hesai": dataclasses.asdict(self.setting)}

    @property
    def pace(self) -> str:
        """The model and its rate."""
        return f"{self.spec.model} at {mean_rate_rpm(self.setup)} rpm"

    def packets_text(self, info_port: int) -> str:  # noqa: ARG002 - nothing is sent there
        """Points."""
        return "(points)"

    @property
    def mode(self) -> ReturnMode:
        """Return mode, as packets name it."""
        if self.is_dual:
            return PAIRS[self.setting.pair][0]
        return ReturnMode.FIRST if self.setting.first_return else ReturnMode[self.setup.return_mode.upper()]

    @property
    def choices(self) -> tuple[EchoChoice, ...]:
        """Choice for each block of an azimuth."""
        if not self.is_dual:
            return (EchoChoice.FIRST,) if self.setting.first_return else super().choices
        pair = PAIRS[self.setting.pair][1]
        return pair if self.spec.has_later_first else pair[::-1]

    @property
    def spread(self) -> UnitSpread:
        """That of the model."""
        return self.spec.units

    def of_unit(
        self,
        spec: HesaiSpec,
        setup: SensorSetup,
        learned: UnitSpec,
        spread: UnitSpread,
        draws: UnitDraws,
    ) -> tuple[HesaiSpec, SensorSetup]:
        """With the angle of the unit's head when it starts."""
        phase_deg = next(phase for phase in (setup.phase_deg, learned.phase_deg, draws.phase_deg(spread)) if phase is not None)
        return spec, replace(setup, phase_deg=phase_deg)

    @property
    def sequences_per_packet(self) -> int:
        """Firings of all lasers in a packet."""
        return self.spec.known.rounds(self.returns)

    @property
    def largest_data_size(self) -> int:
        """Always the same."""
        return packet_size(self.spec.known)

    @property
    def fastest_packet_hz(self) -> float:
        """Packets a second in dual modes."""
        return 1e9 / (self.spec.known.rounds(2) * self.spec.sequence_ns)

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
        """With a receiver."""
        return self.setup.gps is not None

    def clock_offset_s(self, clock: DeviceClock, rig_ns: int, utc_epoch_ns: int) -> float:
        """Time shown now minus UTC."""
        return (int(shown_ns(clock, max(rig_ns - clock.start_ns, 0))) - utc_epoch_ns - rig_ns) / 1e9

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:  # noqa: ARG002 - the plan's clock has it
        """A head that turns evenly in the rotor's time, from an angle at which a packet begins."""
        spec, known, rate_rpm = self.spec, self.spec.known, mean_rate_rpm(self.setup)
        step_cdeg = TURN_CDEG * plan.sequence_ns * rate_rpm // _MINUTE_NS * plan.sequences_per_packet
        phase_cdeg = round((self.setup.phase_deg or 0.0) * 100.0 / step_cdeg) * step_cdeg % TURN_CDEG
        first_return, returns = (spec.first_return_byte, spec.dual_returns_byte) if self.is_dual else (0, 1)
        return plan._replace(
            own=HesaiPlan(
                head=Head(known.channels, known.blocks, first_return, returns),
                mode=int(self.mode),
                status=np.frombuffer(known.status, np.uint8).copy(),
            ),
            head=turning_head(rate_rpm // 60, phase_cdeg / TURN_CDEG),
            position=build_periodic_stream(None, seed=seed, stream=stream),
            data_size=packet_size(known),
            elevation_deg=np.array(spec.elevations_deg),
            azimuth_offset_rad=np.radians(spec.azimuths_deg),
        )


FAMILY = HesaiFamily
