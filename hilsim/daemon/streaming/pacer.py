"""Measure what rendering costs, and keep it within the machine: set scheduling, lead and rays of each sensor twice a second.

The rules and their reasons are in ``daemon.streaming.pacing``.
"""

import os
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import median

from hilsim.daemon.parts import Say
from hilsim.daemon.streaming.flow_specs import RENDERING_SLICE_US, LeadBounds
from hilsim.daemon.streaming.pacing import FifoRule, LeadRule, RaysRule, SensorLoad, fit_rays, fits, nice_for, relative_cost, total_share
from hilsim.daemon.streaming.stream import Streaming
from hilsim.errors import TransmitError
from hilsim.streaming.render_state import RenderCounter
from hilsim.streaming.render_thread import RenderThread
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.transmit.specs import SchedulingChoice

_ENOUGH_PACKETS = 20
"""Number of packets rendered in one step from which their cost counts as the sensor's."""

_LOOKS = 5
_RING_SPARE = 4


@dataclass(kw_only=True)
class _Account:
    """Measurements and decisions of one sensor."""

    lead: LeadRule
    cost_ns: float
    render_thread: RenderThread
    rays: int
    costs_ns: deque[float] = field(default_factory=lambda: deque(maxlen=_LOOKS))
    cpu_ns: int = 0
    rendered: int = 0
    lost: int = 0
    late: int = 0


@dataclass(kw_only=True, eq=False)
class Pacer:
    """Keeps a rig's rendering within the machine.

    Attributes:
        requested: Scheduling that the rig requests; with ``auto`` the pacer chooses.
        real_time_share: Share of the cores for rendering under SCHED_FIFO, if the pacer chooses.
        priority: SCHED_FIFO priority of rendering.
        lead: Bounds of all sensors' leads.
        ring_slots: Capacity of a ring in packets, which limits the lead.
        say: Callback that reports each decision, in the thread that calls ``step``.
        cores: Number of cores of the machine.
        lock: Lock held while the pacer reads and changes sensors; other code that changes them holds it too.
    """

    requested: SchedulingChoice
    real_time_share: float
    priority: int
    lead: LeadBounds
    ring_slots: int
    say: Say = lambda _event, _keys: None
    cores: int = field(default_factory=lambda: len(os.sched_getaffinity(0)))
    lock: threading.Lock = field(default_factory=threading.Lock)
    _accounts: dict[str, _Account] = field(default_factory=dict)
    _fifo: FifoRule = field(init=False)
    _rays: RaysRule = field(init=False)
    _ordinary: SchedulingChoice = "slice"
    _is_braked: bool = False

    def __post_init__(self) -> None:
        self._fifo = FifoRule(cores=self.cores, most_share=self.real_time_share)
        self._rays = RaysRule(cores=self.cores)

    def fits(self, streams: Mapping[str, Streaming]) -> bool:
        """Whether the machine can render all that the rig requests, by the results of ``RenderThread.measure``; for use before sensors start."""
        return fits(
            [self._load(name, streaming, streaming.render_thread.state.counters[RenderCounter.ESTIMATE_NS]) for name, streaming in streams.items()],
            self.cores,
        )

    def settle(self, streams: Mapping[str, Streaming]) -> None:
        """Choose rays and scheduling by the results of ``RenderThread.measure``, before sensors start, and report a machine that is too small."""
        with self.lock:
            loads = [self._look(name, streaming) for name, streaming in streams.items()]
            fitted = fit_rays(loads, self.cores)
            for load, streaming in zip(fitted, streams.values(), strict=True):
                if load.rays != streaming.rays:
                    self._set_rays(streaming, load.rays, "not rendered in time by this machine")
            if not fits(fitted, self.cores):
                needed = total_share([load.with_rays(load.wanted_rays) for load in loads])
                self.say(
                    "rig.machine_too_small",
                    {"needed_cores": round(needed, 2), "needed_cores_with_fewest_rays": round(total_share(fitted), 2), "cores": self.cores},
                )
            self._schedule(streams, fitted, 0)

    def step(self, streams: Mapping[str, Streaming], now_ns: int) -> None:
        """Evaluate what was rendered since the last step, and adapt the settings; takes 1 ms, or some 10 ms if rays change."""
        with self.lock:
            loads = [self._look(name, streaming) for name, streaming in streams.items()]
            for name in [name for name in self._accounts if name not in streams]:
                del self._accounts[name]
            for load, streaming in zip(loads, streams.values(), strict=True):
                lead_ns = self._accounts[load.name].lead.step(load, now_ns)
                if lead_ns != streaming.render_thread.lead_ns:
                    streaming.render_thread.set_lead_ns(lead_ns)
            self._schedule(streams, loads, now_ns)
            for name, rays in self._rays.step(loads, now_ns).items():
                self._set_rays(streams[name], rays, "packets were not rendered in time" if rays < streams[name].rays else "there is room again")

    def leave_real_time(self, streams: Mapping[str, Streaming]) -> None:
        """Take rendering off SCHED_FIFO permanently, whatever the rig requests; never blocks, so a signal handler may call it."""
        self._is_braked = True
        for streaming in streams.values():
            self._reschedule(streaming, self._settings(is_fifo=False, nice=nice_for(len(streams), self.cores)))

    def set_lead(self, bounds: LeadBounds) -> None:
        """Use other bounds of the leads from the next step on."""
        if bounds != self.lead:
            self.lead = bounds
            self._accounts.clear()

    def lead_rule(self, streaming: Streaming) -> LeadRule:
        """Rule for one sensor's lead, within the bounds and its ring's capacity."""
        held_ns = int(max(self.ring_slots - _RING_SPARE, 1) / streaming.lidar.setting.packet_rate_hz * 1e9)
        shortest_ns, longest_ns = min(self.lead.shortest_ns, held_ns), min(self.lead.longest_ns, held_ns)
        return LeadRule(shortest_ns=shortest_ns, longest_ns=longest_ns, tolerated_ratio=self.lead.tolerated_ratio)

    def _look(self, name: str, streaming: Streaming) -> SensorLoad:
        render_thread, setting = streaming.render_thread, streaming.lidar.setting
        counters = render_thread.state.counters
        rendered, late = int(counters[RenderCounter.RENDERED]), int(counters[RenderCounter.LATE])
        lost = int(counters[RenderCounter.SKIPPED])
        cpu_ns = render_thread.cpu_ns or 0
        account = self._accounts.get(name)
        if account is None or account.rendered > rendered:  # the sensor is new, or its render thread was replaced
            estimate_ns = float(counters[RenderCounter.ESTIMATE_NS])
            account = _Account(
                lead=self.lead_rule(streaming),
                cost_ns=estimate_ns,
                render_thread=render_thread,
                rays=setting.sub_rays,
                rendered=rendered,
                lost=lost,
                late=late,
            )
            self._accounts[name] = account
        fresh = rendered - account.rendered
        self._update_cost(account, render_thread, setting.sub_rays, cpu_ns, fresh)
        load = replace(
            self._load(name, streaming, account.cost_ns),
            rendered_packets=fresh,
            lost_packets=lost - account.lost,
            late_packets=late - account.late,
        )
        account.rendered, account.lost, account.late = rendered, lost, late
        return load

    @staticmethod
    def _load(name: str, streaming: Streaming, cost_ns: float) -> SensorLoad:
        rate_hz = streaming.lidar.setting.packet_rate_hz
        return SensorLoad(name=name, rate_hz=rate_hz, cost_ns=float(cost_ns), rays=streaming.rays, wanted_rays=streaming.wanted_rays)

    @staticmethod
    def _update_cost(account: _Account, render_thread: RenderThread, rays: int, cpu_ns: int, fresh: int) -> None:
        """Update the cost of a packet: the median of the last steps, because a stall of the host counts as the thread's time."""
        if rays != account.rays:
            account.cost_ns *= relative_cost(rays) / relative_cost(account.rays)
            account.costs_ns.clear()
        elif account.render_thread is render_thread and account.cpu_ns > 0 and fresh >= _ENOUGH_PACKETS:
            account.costs_ns.append((cpu_ns - account.cpu_ns) / fresh)
            account.cost_ns = median(account.costs_ns)
        account.render_thread, account.rays, account.cpu_ns = render_thread, rays, cpu_ns

    def _schedule(self, streams: Mapping[str, Streaming], loads: Sequence[SensorLoad], now_ns: int) -> None:
        former = self._fifo.names
        of_kernels = [
            load for load in loads if streams[load.name].render_thread.renderer is None
        ]  # Python waits for the GIL, which a lower thread may hold
        fifo = frozenset[str]() if self._is_braked else frozenset(streams) if self.requested == "fifo" else self._fifo.step(of_kernels, now_ns)
        fifo_share = total_share([load for load in loads if load.name in fifo])
        nice = nice_for(len(streams) - len(fifo), self.cores, fifo_share)
        if self.requested == "auto" and fifo != (frozenset(streams) if former is None else former):
            others = sorted(set(streams) - fifo)
            keys = {"real_time": sorted(fifo), "ordinary": others, "nice": nice, "rendering_cores": round(total_share(loads), 2), "cores": self.cores}
            self.say("rendering.rescheduled", keys)
        for name, streaming in streams.items():
            is_fifo = name in fifo
            self._reschedule(streaming, self._settings(is_fifo=is_fifo, nice=0 if is_fifo else nice))

    def _reschedule(self, streaming: Streaming, settings: ThreadSettings) -> None:
        if streaming.render_thread.settings == settings:
            return
        try:
            streaming.render_thread.reschedule(settings)
        except TransmitError as error:
            self.say("rendering.reschedule_refused", {"sensor": streaming.spec.name, "reason": str(error)})
            if settings.scheduling == "slice":  # this kernel has none
                self._ordinary = "plain"
                streaming.render_thread.reschedule(replace(settings, scheduling="plain"))

    def _settings(self, *, is_fifo: bool, nice: int) -> ThreadSettings:
        is_ordinary = self._is_braked or (self.requested == "auto" and not is_fifo)
        choice = self._ordinary if is_ordinary else self.requested
        return ThreadSettings(scheduling=choice, priority=self.priority, slice_us=RENDERING_SLICE_US, nice=nice)

    def _set_rays(self, streaming: Streaming, rays: int, reason: str) -> None:
        former = streaming.rays
        try:
            streaming.set_rays(rays)
        except TransmitError as error:
            self.say("rays.change_refused", {"sensor": streaming.spec.name, "reason": str(error)})
            return
        event = "rays.given_up" if rays < former else "rays.restored"
        self.say(event, {"sensor": streaming.spec.name, "rays": rays, "former_rays": former, "wanted_rays": streaming.wanted_rays, "reason": reason})
