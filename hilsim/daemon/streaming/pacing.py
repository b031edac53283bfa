"""Rules by which sensors share the machine, given the cost of their rendering. Pure functions; ``daemon.streaming.pacer`` measures and applies.

Costs are measured CPU time a packet; shares are the cores that a sensor takes if all its packets are rendered.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hilsim.config.tables.render import REAL_TIME_SHARE
from hilsim.sensor.specs import SUB_RAY_COUNTS

FIFO_ROOM_SHARE = 0.1
FIFO_AGAIN_NS = 10_000_000_000
"""A sensor returns to SCHED_FIFO when the cores would have had room for it for this long."""

BUSY_SHARE = 0.29
"""Share of a core that render threads with short slices leave to a busy process by their weight: a quarter, plus what sending and the kernel take."""

FULL_SHARE = 0.95
"""Largest share of the cores (and of one core, for one sensor) with which rendering keeps up."""

ROOM_SHARE = 0.75
"""Share of the cores below which a sensor gets back the next larger number of rays a beam, as estimated with these rays."""

_WEIGHT_OF_NICE = (1024, 820, 655, 526, 423, 335, 272, 215, 172, 137, 110, 87, 70, 56, 45, 36, 29, 23, 18, 15)  # kernel/sched/core.c, from nice 0 on
_SUB_RAY_COST_RATIO = 0.31
"""Cost of each further sub-ray relative to a beam of one ray: 2.9 fold for 7, 6.4 fold for 19, measured in the demo street."""

_LOST_RATIO = 0.01
_SHORT_STEPS = 2
_SETTLING_NS = 1_500_000_000
_PATIENCE_NS = 30_000_000_000
_MAX_SETBACKS = 5


@dataclass(frozen=True, kw_only=True)
class SensorLoad:
    """Cost and results of one sensor's rendering since the last step.

    Attributes:
        name: Name of the sensor.
        rate_hz: Data packets a second.
        cost_ns: CPU time a packet.
        rays: Rays a beam now.
        wanted_rays: Rays a beam that the rig requests.
        rendered_packets: Data packets rendered.
        lost_packets: Data packets not rendered, because they would have been late.
        late_packets: Data packets rendered too late, but sent.
    """

    name: str
    rate_hz: float
    cost_ns: float
    rays: int
    wanted_rays: int
    rendered_packets: int = 0
    lost_packets: int = 0
    late_packets: int = 0

    @property
    def share(self) -> float:
        """Cores that the sensor takes."""
        return self.rate_hz * self.cost_ns / 1e9

    @property
    def loses(self) -> bool:
        """Whether more packets are lost than by a single stall of the machine."""
        return self.lost_packets > _LOST_RATIO * (self.rendered_packets + self.lost_packets) + 1

    def with_rays(self, rays: int) -> "SensorLoad":
        """Load with another number of rays a beam, at their expected cost."""
        return replace(self, rays=rays, cost_ns=self.cost_ns * relative_cost(rays) / relative_cost(self.rays))


def total_share(loads: Sequence[SensorLoad]) -> float:
    """Cores that all sensors take together."""
    return sum(load.share for load in loads)


def relative_cost(rays: int) -> float:
    """Expected cost of a packet relative to one with a single ray a beam."""
    return 1.0 + _SUB_RAY_COST_RATIO * (rays - 1)


def fewer_rays(rays: int) -> int:
    """The next smaller number of rays a beam; 1 for 1."""
    return max((count for count in SUB_RAY_COUNTS if count < rays), default=rays)


def more_rays(rays: int, wanted: int) -> int:
    """The next larger number of rays a beam, up to the requested number."""
    return min((count for count in SUB_RAY_COUNTS if rays < count <= wanted), default=rays)


def fits(loads: Sequence[SensorLoad], cores: int, *, share: float = FULL_SHARE) -> bool:
    """Whether the cores can render all packets: no sensor takes more than ``share`` of one core, nor all together more than ``share`` of all cores."""
    return total_share(loads) <= share * cores and all(load.share <= share for load in loads)


def fit_rays(loads: Sequence[SensorLoad], cores: int) -> tuple[SensorLoad, ...]:
    """Loads with as many rays a beam as the machine is expected to render; the most expensive sensors lose rays first."""
    fitted = list(loads)
    while not fits(fitted, cores):
        givers = [load for load in fitted if load.rays > 1]
        too_large = [load for load in givers if load.share > FULL_SHARE]
        if not givers or (total_share(fitted) <= FULL_SHARE * cores and not too_large):
            break
        giver = max(too_large or givers, key=lambda load: load.share)
        fitted[fitted.index(giver)] = giver.with_rays(fewer_rays(giver.rays))
    return tuple(fitted)


def nice_for(sensors: int, cores: int, fifo_share: float = 0.0) -> int:
    """Nice value of render threads with short slices with which a busy process keeps ``BUSY_SHARE`` of each core.

    Args:
        sensors: Number of sensors rendered by such threads.
        cores: Number of cores of the machine.
        fifo_share: Cores that other sensors take under SCHED_FIFO.
    """
    if sensors == 0:
        return 0
    left = (1.0 - fifo_share / cores) / BUSY_SHARE - 1.0
    most = _WEIGHT_OF_NICE[0] * left * cores / sensors
    return next((nice for nice, weight in enumerate(_WEIGHT_OF_NICE) if weight <= most), len(_WEIGHT_OF_NICE) - 1)


@dataclass(kw_only=True)
class FifoRule:
    """Rule that chooses the sensors rendered under SCHED_FIFO: the first ones of the rig, as many as fit into its share of the machine.

    Attributes:
        cores: Number of cores of the machine.
        most_share: Share of the cores that these sensors may take together.
        names: Names of these sensors; None before the first step.
    """

    cores: float
    most_share: float = REAL_TIME_SHARE
    names: frozenset[str] | None = None
    _room_since_ns: int | None = None

    def step(self, loads: Sequence[SensorLoad], now_ns: int) -> frozenset[str]:
        """Choose the sensors for SCHED_FIFO from now on; returns their names."""
        kept: list[str] = []
        share = 0.0
        for load in loads:
            if (self.names is None or load.name in self.names) and share + load.share <= self.most_share * self.cores:
                kept.append(load.name)
                share += load.share
        most = max(self.most_share - FIFO_ROOM_SHARE, 0.0) * self.cores
        returning = next((load.name for load in loads if load.name not in kept and share + load.share <= most), None)
        if returning is None:
            self._room_since_ns = None
        elif self._room_since_ns is None:
            self._room_since_ns = now_ns
        elif now_ns - self._room_since_ns >= FIFO_AGAIN_NS:
            kept.append(returning)
            self._room_since_ns = None
        self.names = frozenset(kept)
        return self.names


@dataclass(kw_only=True)
class LeadRule:
    """Rule for the time between rendering a sensor's packets and their deadlines.

    Attributes:
        shortest_ns: Shortest lead, that of the first step.
        longest_ns: Longest lead.
        tolerated_ratio: Share of the packets of a step that may be late or lost before the lead grows.
        lead_ns: Present lead.
    """

    shortest_ns: int
    longest_ns: int
    tolerated_ratio: float = 0.0
    lead_ns: int = field(init=False)
    _calm_since_ns: int = 0

    def __post_init__(self) -> None:
        self.lead_ns = self.shortest_ns

    def step(self, load: SensorLoad, now_ns: int) -> int:
        """Choose the lead from now on: half as long again when packets were late or lost, a tenth shorter after half a minute without; returns it."""
        if load.late_packets + load.lost_packets > self.tolerated_ratio * (load.rendered_packets + load.lost_packets):
            self.lead_ns = min(self.lead_ns * 3 // 2, self.longest_ns)
            self._calm_since_ns = now_ns
        elif now_ns - self._calm_since_ns >= _PATIENCE_NS:
            self.lead_ns = max(self.lead_ns * 9 // 10, self.shortest_ns)
            self._calm_since_ns = now_ns
        return self.lead_ns


@dataclass(kw_only=True)
class RaysRule:
    """Rule that takes rays from sensors so that no packet is lost, and gives them back later.

    Attributes:
        cores: Number of cores of the machine.
    """

    cores: int
    _short_steps: int = 0
    _short_ns: int | None = None
    _changed_ns: int | None = None
    _raised_ns: int | None = None
    _setbacks: int = 0

    def step(self, loads: Sequence[SensorLoad], now_ns: int) -> Mapping[str, int]:
        """Choose the sensor that changes, if any, and its rays a beam from now on."""
        is_short = any(load.loses for load in loads) or not fits(loads, self.cores)
        self._short_steps = self._short_steps + 1 if is_short else 0
        if is_short:
            self._short_ns = now_ns
        if self._changed_ns is not None and now_ns - self._changed_ns < _SETTLING_NS:
            return {}
        if self._short_steps >= _SHORT_STEPS:
            return self._give_up(loads, now_ns)
        if not is_short and now_ns - max(self._short_ns or 0, self._changed_ns or 0) >= _PATIENCE_NS << self._setbacks:
            return self._give_back(loads, now_ns)
        return {}

    def _give_up(self, loads: Sequence[SensorLoad], now_ns: int) -> Mapping[str, int]:
        givers = [load for load in loads if load.rays > 1]
        if not givers:
            return {}
        if self._raised_ns is not None and now_ns - self._raised_ns < _PATIENCE_NS:
            self._setbacks, self._raised_ns = min(self._setbacks + 1, _MAX_SETBACKS), None
        giver = max([load for load in givers if load.loses] or givers, key=lambda load: load.share)
        self._changed_ns, self._short_steps = now_ns, 0
        return {giver.name: fewer_rays(giver.rays)}

    def _give_back(self, loads: Sequence[SensorLoad], now_ns: int) -> Mapping[str, int]:
        for load in sorted(loads, key=lambda load: load.share):
            more = load.with_rays(more_rays(load.rays, load.wanted_rays))
            if more.rays > load.rays and fits([more if other is load else other for other in loads], self.cores, share=ROOM_SHARE):
                self._changed_ns = self._raised_ns = now_ns
                return {load.name: more.rays}
        return {}
