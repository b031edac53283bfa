"""Measure what a rig's rendering costs on this machine before anything is sent, and decide whether the rig fits."""

import os
from dataclasses import dataclass, replace

from hilsim.assembly.build import Scenery, build_lidar
from hilsim.config.rig import Rig
from hilsim.config.tables.render import REAL_TIME_SHARE
from hilsim.daemon.streaming.flow_specs import render_settings
from hilsim.daemon.streaming.pacing import FULL_SHARE, SensorLoad, fit_rays, fits, total_share
from hilsim.protocols.ethernet import HEADER_SIZE
from hilsim.streaming.render_state import RenderCounter
from hilsim.streaming.render_thread import RenderThread
from hilsim.transmit.ring import allocate_rings

_SCRATCH_SLOTS = 4
_STEPS_AGAIN = 2
"""Number of repeated measurements; the smallest counts, because disturbances only make a packet look more expensive."""


@dataclass(frozen=True, kw_only=True)
class Capacity:
    """Processor time that a rig's sensors take on this machine.

    Attributes:
        loads: Load of each sensor with the rays a beam that the rig requests.
        cores: Number of cores that this process may use.
        real_time_share: Share of the cores that the rig allows for rendering under SCHED_FIFO.
    """

    loads: tuple[SensorLoad, ...]
    cores: int
    real_time_share: float = REAL_TIME_SHARE

    @property
    def needed_cores(self) -> float:
        """Cores that rendering takes."""
        return total_share(self.loads)

    @property
    def fits(self) -> bool:
        """Whether every packet can be rendered with the rays that the rig requests."""
        return fits(self.loads, self.cores)

    @property
    def is_civil(self) -> bool:
        """Whether all packets can be rendered under real-time scheduling while other processes keep a quarter of each core."""
        return self.fits and self.needed_cores <= self.real_time_share * self.cores

    @property
    def sentence(self) -> str:
        """Sentence for the operator: cores needed, cores present, and what will be given up."""
        sensors = f"{len(self.loads)} sensor(s)" if len(self.loads) != 1 else self.loads[0].name
        text = f"rendering {sensors} needs {self.needed_cores:.2f} of a core, {self.cores} available (measured)"
        if self.is_civil:
            return text
        if self.fits:
            return f"{text}: it fits, but not under real-time scheduling, so packets are less punctual on a busy machine"
        fitted = fit_rays(self.loads, self.cores)
        rays = ", ".join(f"{load.name}: {load.rays} of {load.wanted_rays}" for load in fitted if load.rays < load.wanted_rays)
        fewer = f"; with fewer rays a beam ({rays}) it needs {total_share(fitted):.2f}" if rays else ""
        if fits(fitted, self.cores):
            return f"{text}: it does not fit{fewer}, and is rendered with these"
        return f"{text}: it does not fit{fewer}, and packets will be missing: use fewer sensors or more cores"


def measure_capacity(rig: Rig, scenery: Scenery, *, seconds: float = 0.0) -> Capacity:
    """Render some packets of each of a rig's sensors, and compile kernels where they are not compiled yet.

    Args:
        rig: The rig.
        scenery: Its scene.
        seconds: Length of each sensor's stream to render, from its beginning; 0: some packets from all directions, which takes some tens of milliseconds.
    """
    loads = tuple(_load(rig, number, scenery, seconds) for number in range(len(rig.lidars)))
    return Capacity(loads=loads, cores=len(os.sched_getaffinity(0)), real_time_share=rig.spec.render.real_time_share)


def carried(load: SensorLoad, cores: int, *, share: float = FULL_SHARE) -> int:
    """Number of sensors with one load that the cores can render with at most this share of all cores, and of one core for each sensor."""
    if not fits((load,), 1, share=max(share, FULL_SHARE)):
        return 0
    return int(share * cores / load.share)


def carried_sentence(load: SensorLoad, cores: int, real_time_share: float = REAL_TIME_SHARE) -> str:
    """Sentence for the operator: what one sensor with this load takes, and how many such sensors the cores carry."""
    rays = f"{load.rays} ray{'s' if load.rays > 1 else ''} a beam"
    return (
        f"{load.share:.2f} of a core with {rays} ({carried(load, cores, share=real_time_share)} of them fit under real-time scheduling,"
        f" {carried(load, cores)} if nothing else runs)"
    )


def with_one_ray(rig: Rig) -> Rig:
    """Copy of the rig with a single ray a beam, to measure what it would cost then."""
    return replace(rig, lidars=tuple(lidar.with_sub_rays(1) for lidar in rig.lidars))


def _load(rig: Rig, number: int, scenery: Scenery, seconds: float) -> SensorLoad:
    setting = rig.lidars[number]
    lidar = build_lidar(rig, number, scenery, utc_epoch_ns=0, frames=rig.spec.sensor[number].network.mode == "ethernet")
    rings = allocate_rings(1, _SCRATCH_SLOTS, HEADER_SIZE + max(lidar.plan.data_size, lidar.plan.info_size))
    render_thread = RenderThread(lidar=lidar, rings=rings, data_flow=0, position_flow=0, epoch_ns=0, lead_ns=0, settings=render_settings(rig))
    render_thread.warm()
    cost_ns = render_thread.measure_stretch(seconds) if seconds else min(_measured_ns(render_thread) for _ in range(_STEPS_AGAIN))
    return SensorLoad(name=setting.name, rate_hz=setting.packet_rate_hz, cost_ns=cost_ns, rays=setting.sub_rays, wanted_rays=setting.sub_rays)


def _measured_ns(render_thread: RenderThread) -> float:
    render_thread.measure()
    return float(render_thread.state.counters[RenderCounter.ESTIMATE_NS])
