"""One streaming sensor and its metrics."""

from dataclasses import dataclass, replace

import numpy as np

from hilsim.config.tables.sensor import SensorSpec
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.schedule import data_deadline_ns
from hilsim.emulator.workspace import EmulatorCount
from hilsim.streaming.render_state import LoopPlace, RenderCounter
from hilsim.streaming.render_thread import RenderThread
from hilsim.telemetry.faults import Fault, Level
from hilsim.telemetry.loop import read_histograms
from hilsim.telemetry.metrics import TIMING_BOUNDS_S, counted
from hilsim.telemetry.readings import SensorReading
from hilsim.transmit.brake import brake_reason

STALLED_S = 1.0
"""Time without progress after which a sensor is at fault."""


@dataclass(kw_only=True, eq=False)
class Streaming:
    """One streaming sensor."""

    spec: SensorSpec
    lidar: LidarEmulator
    render_thread: RenderThread
    rows: tuple[int, ...]
    """Rows of its flows in the transmitter, the data flow first."""
    wanted_rays: int = 0
    """Rays a beam that the rig requests."""

    def __post_init__(self) -> None:
        self.wanted_rays = self.wanted_rays or self.lidar.setting.sub_rays

    @property
    def rays(self) -> int:
        """Rays a beam now."""
        return self.lidar.setting.sub_rays

    def set_rays(self, rays: int) -> None:
        """Render with other rays a beam from the next packet on, without a gap.

        Raises:
            TransmitError: no other thread can be started; the sensor streams as before.
        """
        lidar = replace(self.lidar, setting=self.lidar.setting.with_sub_rays(rays))
        if self.render_thread.alive:
            successor = self.render_thread.successor(lidar)
            self.render_thread.hand_over_to(successor)
            self.render_thread = successor
        else:
            self.render_thread.lidar = lidar
        self.lidar = lidar

    def reading(self, now_ns: int) -> SensorReading:
        """Values for the metrics at CLOCK_MONOTONIC ``now_ns``; wait-free."""
        setting, state = self.lidar.setting, self.render_thread.state
        counters = state.counters.tolist()
        return SensorReading(
            **counted(SensorReading, (RenderCounter, counters), (EmulatorCount, state.emulated.tolist())),
            sensor=setting.name,
            model=setting.spec.model,
            return_mode=setting.setup.return_mode,
            rotation_rate_hz=setting.family.rotation_rate_hz,
            device_clock_offset_s=self._clock_offset_s(now_ns),
            render_skipped_packets=counters[RenderCounter.SKIPPED] + counters[RenderCounter.POSITIONS_SKIPPED],
            render_lead_s=int(state.lead[0]) / 1e9,
            rays_per_beam=self.rays,
            wanted_rays_per_beam=self.wanted_rays,
            render_backend="cpu" if self.render_thread.renderer is None else "cuda",
            render=read_histograms(TIMING_BOUNDS_S, np.atleast_2d(state.render), [counters[RenderCounter.RENDER_SUM_NS]])[0],
        )

    def fault(self, last_sent_ns: int, now_ns: int) -> Fault | None:
        """Fault of a sensor that does not stream, None if it streams; ``last_sent_ns`` is when its last data packet left, 0 for none."""
        from_ns = int(self.render_thread.state.place[LoopPlace.DATA_FROM_NS])
        first_due_ns = self.render_thread.epoch_ns + max(int(data_deadline_ns(self.lidar.plan, 0)), from_ns)
        silent_s = (now_ns - max(last_sent_ns, first_due_ns)) / 1e9
        if not self.render_thread.alive:
            return Fault(key="render_ended", subject=self.spec.name, text="the rendering thread has ended")
        if reason := brake_reason(self.render_thread.state.brake):
            return Fault(key="real_time_left", subject=self.spec.name, text=f"{reason}; the rendering thread has left real-time scheduling")
        if silent_s <= STALLED_S:
            return None
        return Fault(key="sensor_silent", subject=self.spec.name, text=f"no data packet for {silent_s:.1f} s")

    def shortfall(self) -> Fault | None:
        """Fault of a sensor that the machine renders with fewer rays than the rig requests, else None."""
        if self.rays >= self.wanted_rays:
            return None
        text = f"rendered with {self.rays} of {self.wanted_rays} rays a beam: this machine is too small for more (hilsim doctor --rig)"
        return Fault(key="rays_given_up", subject=self.spec.name, text=text, level=Level.DEGRADED)

    def _clock_offset_s(self, now_ns: int) -> float:
        """Time by which the sensor's own clock is ahead."""
        return self.lidar.setting.family.clock_offset_s(self.lidar.plan.clock, now_ns - self.render_thread.epoch_ns, self.lidar.utc_epoch_ns)
