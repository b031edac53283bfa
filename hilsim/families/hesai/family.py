"""Hesai lidars: a head that turns, and packets of blocks that its encoder or a clock times."""

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from hilsim.emulator.families.base import FlowLayout, LidarFamily
from hilsim.emulator.plan import LidarPlan
from hilsim.families.hesai.packets import HesaiPlan, shown_ns
from hilsim.families.hesai.protocol.gps import GPS_PORT, GPS_SIZE, ROOM, XT_ROOM
from hilsim.families.hesai.protocol.models import XT_TAIL
from hilsim.families.hesai.protocol.points import DATA_PORT, ReturnMode, layout_of
from hilsim.families.hesai.protocol.ptc import PTC_PORT, SERIAL_LENGTH
from hilsim.families.hesai.recognition import HESAI_STYLE
from hilsim.families.hesai.setting import PAIRS, HesaiSetting
from hilsim.families.hesai.specs import RATES_RPM, HesaiSpec
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.field_of_view import build_field_of_view
from hilsim.sensor.head import Head, build_head, locked_to_pulse, mean_rate_rpm, turning_head
from hilsim.sensor.position_stream import build_periodic_stream
from hilsim.sensor.setup import SensorSetup
from hilsim.sensor.specs import DecimationSpec
from hilsim.sensor.unit.draws import UnitDraws
from hilsim.sensor.unit.encoder import build_encoder
from hilsim.sensor.unit.spec import UnitSpec
from hilsim.sensor.unit.spread import UnitSpread
from hilsim.units import NS_PER_S, TURN_CDEG
from hilsim.world.scene.background import AzimuthGrid, ImageGrid

_SOURCE_PORT = 10_000
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
    interface_ports: ClassVar[Mapping[str, int]] = MappingProxyType({"port": 80, "commands_port": PTC_PORT})

    @property
    def setting(self) -> HesaiSetting:
        """Settings that other sensors have not."""
        return self.setup.hesai or HesaiSetting()

    def rules(self) -> Iterator[tuple[bool, str]]:
        """A rate that it has; stamps that ``clock.sync`` alone sets; nothing that is not emulated."""
        spec, setup = self.spec, self.setup
        rate = mean_rate_rpm(setup)
        known = spec.known
        yield self._pair in known.pairs, f"hesai.pair must be {' or '.join(known.pairs)} for a {spec.model}, got {self._pair}"
        yield (
            not self.setting.first_return or "first" in known.singles,
            f"hesai.first_return must not be given for a {spec.model}: it has no such mode",
        )
        yield rate in RATES_RPM, f"rotation_rate_rpm must be {', '.join(map(str, RATES_RPM[:-1]))} or {RATES_RPM[-1]} for a {spec.model}, got {rate}"
        for name, value, default, why in (
            ("decimation", setup.decimation, DecimationSpec(), "it is not emulated"),
            ("clock.stamps", setup.clock.stamps, "power_up", "clock.sync sets them"),
        ):
            yield value == default, f"{name} must not be given for a {spec.model}: {why}"

    def flows(self, data_port: int | None, position_port: int | None) -> tuple[FlowLayout, FlowLayout]:
        """Points, and GPS packets."""
        return (
            FlowLayout("points", _SOURCE_PORT, data_port or DATA_PORT, HESAI_STYLE),
            FlowLayout("gps", _SOURCE_PORT, position_port or GPS_PORT, HESAI_STYLE),
        )

    def web_rules(self, web: Any, network: Any) -> Iterator[tuple[bool, str]]:
        """It sends to whoever asks for it, and announces itself nowhere."""
        yield not web.discovery, f"web.discovery must not be given for a {self.spec.model}: it does not announce itself"
        yield len(web.serial) <= SERIAL_LENGTH, f"web.serial must be at most {SERIAL_LENGTH} characters for a {self.spec.model}, got {web.serial!r}"
        yield self.commands_port_rule(web)
        yield (
            network.mode == "udp",
            f'network.mode must be "udp" for a {self.spec.model} with web, which sends to whoever asks for it, got "ethernet"',
        )

    def effective_setup(self) -> dict[str, Any]:
        """The rate, and its settings."""
        single = self.setup.return_mode if self.is_dual or self.setting.first_return else self._single
        return {"return_mode": single, "rotation_rate_rpm": mean_rate_rpm(self.setup), "hesai": dataclasses.asdict(self.setting)}

    @property
    def pace(self) -> str:
        """The model and its rate."""
        return f"{self.spec.model} at {mean_rate_rpm(self.setup)} rpm"

    def packets_text(self, info_port: int) -> str:
        """Points, and the port of GPS packets, which are sent where a receiver is connected."""
        return f"(points) and :{info_port} (GPS)" if self.has_utc_source else "(points)"

    @property
    def _pair(self) -> str:
        return self.setting.pair or self.spec.known.pairs[0]

    @property
    def _single(self) -> str:
        """The return of a mode of one: the last of a model that has no mode of the strongest."""
        wanted = "first" if self.setting.first_return else self.setup.return_mode
        return wanted if wanted in self.spec.known.singles else "last"

    @property
    def mode(self) -> ReturnMode:
        """Return mode, as packets name it."""
        if self.is_dual:
            return PAIRS[self._pair][0]
        return ReturnMode[self._single.upper()]

    @property
    def choices(self) -> tuple[EchoChoice, ...]:
        """Choice for each block of an azimuth."""
        if not self.is_dual:
            return (EchoChoice[self._single.upper()],)
        pair = PAIRS[self._pair][1]
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
        return self.spec.packet_size

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
        """With a receiver that it listens to."""
        return self.setup.gps is not None and self.setting.clock_source == "gps"

    def clock_offset_s(self, clock: DeviceClock, rig_ns: int, utc_epoch_ns: int) -> float:
        """Time shown now minus UTC."""
        return (int(shown_ns(clock, self.spec.known.unset_utc_s * NS_PER_S, max(rig_ns - clock.start_ns, 0))) - utc_epoch_ns - rig_ns) / 1e9

    def complete(self, plan: LidarPlan, *, seed: int, stream: int, utc_epoch_ns: int) -> LidarPlan:  # noqa: ARG002 - the plan's clock has it
        """Where its head is, and its packets."""
        spec, known = self.spec, self.spec.known
        clock, head = self._locked(plan.clock, self._head(plan, seed, stream))
        has_gps, lead = self.has_utc_source, self._step_cdeg if known.azimuth_ns else 0
        encoder = build_encoder(spec.encoder, seed=seed, stream=stream) if known.is_clocked else plan.encoder
        rounds = plan.sequences_per_packet  # whole packets are seen or not, so that no stamp is wrong
        first_return, returns = (spec.first_return_byte, spec.dual_returns_byte) if self.is_dual else (0, 1)
        before_ns = (plan.sequences_per_packet - 1) * plan.sequence_ns if known.stamps_first else 0
        return plan._replace(
            own=HesaiPlan(
                layout=layout_of(known, first_return=first_return, returns=returns, is_counted=spec.is_counted),
                channels=known.channels,
                mode=int(self.mode),
                lead_cdeg=lead,
                stamp_ns=known.stamp_ns - before_ns,
                unset_ns=known.unset_utc_s * NS_PER_S,
                speed_parts=known.speed_parts,
                status=np.array([list(each) for each in known.status], np.uint8),
                status_rounds=known.status_rounds or 1,
                gps_room=XT_ROOM if known.tail == XT_TAIL else ROOM,
            ),
            clock=clock,
            head=head,
            encoder=encoder,
            field_of_view=build_field_of_view(self.setup.field_of_view_deg, head, encoder, block_sequences=rounds, sequence_ns=plan.sequence_ns),
            position=build_periodic_stream(NS_PER_S if has_gps else None, seed=seed, stream=stream),
            data_size=spec.packet_size,
            info_size=GPS_SIZE,
            elevation_deg=np.array(spec.elevations_deg),
            azimuth_offset_rad=np.radians(spec.azimuths_deg),
        )

    def background_rows(self, grid: AzimuthGrid | ImageGrid) -> npt.NDArray[np.int32]:
        """Row of each channel, by elevation."""
        return self.rows_by_elevation(grid, self.spec.elevations_deg)

    @property
    def _step_cdeg(self) -> int:
        """What the head turns in a round."""
        return TURN_CDEG * self.spec.sequence_ns * mean_rate_rpm(self.setup) // _MINUTE_NS

    def _head(self, plan: LidarPlan, seed: int, stream: int) -> Head:
        """A head that a clock's firings find anywhere; or one that turns evenly in the rotor's time, from an angle at which a packet begins."""
        known, rate_rpm, phase_deg = self.spec.known, mean_rate_rpm(self.setup), self.setup.phase_deg or 0.0
        if known.is_clocked:
            return build_head(rate_rpm=rate_rpm, phase_deg=phase_deg, rate_jitter=self.spec.rate_jitter, seed=seed, stream=stream)
        packet_cdeg = self._step_cdeg * known.rounds(1)  # of any mode, so that the head stays where it is when the mode changes
        packet_cdeg //= 1 if TURN_CDEG % packet_cdeg == 0 else 2  # a turn of an XT32M is no number of packets
        phase_cdeg = round(phase_deg * 100.0 / packet_cdeg) * packet_cdeg % TURN_CDEG
        excess_ppb = (
            TURN_CDEG // self._step_cdeg * plan.sequence_ns * NS_PER_S // (_MINUTE_NS // rate_rpm) - NS_PER_S
        )  # a round is no whole nanoseconds
        # its phase is kept when it changes, so that azimuths are multiples of a step again when the head has settled
        return turning_head(rate_rpm // 60, phase_cdeg / TURN_CDEG, excess_ppb)._replace(is_locked=True)

    def _locked(self, clock: DeviceClock, head: Head) -> tuple[DeviceClock, Head]:
        """Clock and head with the phase locked to the pulse: an encoder's firings keep to their azimuths, so that the pulse is met within half a round."""
        lock_deg, rate_rpm = self.setup.phase_lock_deg, mean_rate_rpm(self.setup)
        if lock_deg is None or not clock.follows_pulse:
            return clock, head
        if self.spec.known.is_clocked:
            return clock, locked_to_pulse(head, clock, rate_rpm=rate_rpm, lock_deg=lock_deg)
        clock = clock._replace(oscillator_ppb=head.clock_ppb)  # device time is the rotor's, which keeps to the pulses
        locked = locked_to_pulse(head, clock, rate_rpm=rate_rpm, lock_deg=lock_deg)
        steps = round(locked.phase_turns * TURN_CDEG / self._step_cdeg)
        return clock, locked._replace(phase_turns=steps * self._step_cdeg / TURN_CDEG % 1.0)


FAMILY = HesaiFamily
