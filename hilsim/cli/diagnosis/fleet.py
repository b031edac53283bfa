"""Number of sensors that this machine supports: a rig's first sensor many times in its own scene, estimated from the cost of one, then tried over real sockets."""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from socket import AF_INET, SOCK_DGRAM, socket
from typing import Any

import numpy as np

from hilsim.assembly.build import Scenery, build_scenery
from hilsim.config.rig import Rig, rig_of_table
from hilsim.config.toml_file import rig_table
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.streaming.capacity import carried, measure_capacity
from hilsim.daemon.streaming.pacing import SensorLoad
from hilsim.errors import ConfigError
from hilsim.limits import SENSORS
from hilsim.transmit.statistics import Counter, quantile_ns

_WORLD = ("seed", "scene", "weather", "platform")
_OF_NETWORK = ("network", "name", "background")
_FIRST_SOURCE = "127.0.101.{}"
_COST_S = 2.0
_SETTLING_S = 2.0
_PACE_INTERVAL_S = 0.5
_LEFT_OUT_RATIO = 1e-4
"""Permitted ratio of lost packets: a shared host stalls now and then; an overloaded machine loses more than one packet in ten thousand."""
_MAX_TRIALS = 3


@dataclass(frozen=True, kw_only=True)
class FleetTrial:
    """Result of a trial with a number of sensors.

    Attributes:
        sensors: Number of sensors.
        rays_per_beam: Requested rays per beam.
        rays_given_up: Whether some sensors were rendered with fewer rays, to keep up.
        seconds: Duration of counting.
        packets: Number of data packets sent in that time.
        left_out_packets: Number of packets late, dropped, refused by the kernel, or not rendered.
        lateness_p50_us: Median lateness of data packets: time sent minus deadline.
        lateness_p99_us: Lateness of data packets, 99th percentile.
        used_cores: Cores used by the whole process.
        scheduling: Scheduling of the sending loop.
    """

    sensors: int
    rays_per_beam: int
    rays_given_up: bool
    seconds: float
    packets: int
    left_out_packets: int
    lateness_p50_us: float
    lateness_p99_us: float
    used_cores: float
    scheduling: str

    @property
    def holds(self) -> bool:
        """Whether the machine supports them: every packet with all its rays, except for stalls of the machine."""
        return not self.rays_given_up and self.left_out_packets <= _LEFT_OUT_RATIO * (self.packets + self.left_out_packets)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Number of sensors of one kind that the machine supports.

    Attributes:
        model: Model of the sensor.
        load: Cost of one sensor.
        beside_others: Estimated number that leaves other programs a third of each core.
        alone: Estimated number without other programs.
        trials: Trials: with ``beside_others``, then with fewer until one succeeded.
    """

    model: str
    load: SensorLoad
    beside_others: int
    alone: int
    trials: tuple[FleetTrial, ...]

    @property
    def carried(self) -> int:
        """Largest number tried successfully; 0 if none was."""
        return next((trial.sensors for trial in self.trials if trial.holds), 0)


def fleet_rig(path: Path, sensors: int, rays_per_beam: int, ports: tuple[int, int]) -> Rig:
    """Rig with a number of copies of a rig's first sensor, each with its own address, in the same world; all send to these ports of this machine.

    Args:
        path: Path of the rig.
        sensors: Number of sensors.
        rays_per_beam: Rays per beam of each sensor.
        ports: Destination ports of data packets and position packets.

    Raises:
        ConfigError: the rig is invalid, has no sensor, or its sensor is on a vehicle.
    """
    table = rig_table(path)
    whole = rig_of_table(table, path)
    if not whole.lidars:
        raise ConfigError(f"{path}: a rig must have a sensor to see how many of them this machine carries, got none")
    if whole.spec.platform.kind == "vehicle":
        raise ConfigError(f'{path}: platform.kind must not be "vehicle" here: sensors are counted without a flight controller')
    first: Mapping[str, Any] = table["sensor"][0]
    named = whole.lidars[0].family.effective_ports(*ports)
    entries = [
        {key: value for key, value in first.items() if key not in _OF_NETWORK}
        | {
            "name": f"sensor-{number}",
            "sub_rays": rays_per_beam,
            "network": {"source": _FIRST_SOURCE.format(number), "destination": "127.0.0.1", "source_ports": "any", **named},
        }
        for number in range(1, sensors + 1)
    ]
    world = {key: table[key] for key in _WORLD if key in table}
    return rig_of_table({"name": "fleet", **world, "metrics": {"enabled": False}, "sensor": entries}, path)


def measure_fleet(path: Path, rays_per_beam: int, seconds: float, report: Callable[[str], object], most: int = SENSORS.bound) -> Fleet:
    """Measure the cost of one sensor, and try as many as should fit.

    Args:
        path: Rig whose first sensor is used; its kernels are compiled.
        rays_per_beam: Rays per beam of each sensor.
        seconds: Duration of each trial.
        report: Called with the current step.
        most: Maximum number of sensors to try.

    Raises:
        ConfigError: as in ``fleet_rig``.
        AssetError: a file of the rig cannot be used.
        TransmitError: a socket cannot be opened.
    """
    one = fleet_rig(path, 1, rays_per_beam, (1, 2))
    rays = f"{rays_per_beam} ray{'s' if rays_per_beam > 1 else ''} a beam"
    report(f"rendering {_COST_S:g} s with {rays}")
    scenery: Scenery = build_scenery(one)
    capacity = measure_capacity(one, scenery, seconds=_COST_S)
    (load,) = capacity.loads
    beside_others, alone = (
        min(count, SENSORS.bound) for count in (carried(load, capacity.cores, share=capacity.real_time_share), carried(load, capacity.cores))
    )
    trials: list[FleetTrial] = []
    sensors = min(max(beside_others, min(alone, 1)), most)
    while sensors > 0 and len(trials) < _MAX_TRIALS and not (trials and trials[-1].holds):
        report(f"sending {seconds:g} s of {sensors} with {rays}")
        trials.append(try_fleet(path, sensors, rays_per_beam, seconds))
        sensors = sensors * 3 // 4
    return Fleet(model=one.lidars[0].spec.model, load=load, beside_others=beside_others, alone=alone, trials=tuple(trials))


def try_fleet(path: Path, sensors: int, rays_per_beam: int, seconds: float) -> FleetTrial:
    """Render and send for a time, to sockets that are not read; errors as in ``measure_fleet``."""
    with ExitStack() as stack:
        sinks = [stack.enter_context(socket(AF_INET, SOCK_DGRAM)) for _ in range(2)]
        for sink in sinks:
            sink.bind(("127.0.0.1", 0))
        running = RunningRig(rig=fleet_rig(path, sensors, rays_per_beam, (sinks[0].getsockname()[1], sinks[1].getsockname()[1])))
        running.build()
        running.open()
        stack.callback(running.stop)
        running.start()
        stack.enter_context(_Pacing(running))
        time.sleep(_SETTLING_S)
        before, begun_s, begun_cpu_s = _Counts.of(running), time.monotonic(), time.process_time()
        time.sleep(seconds)
        after, over_s, over_cpu_s = _Counts.of(running), time.monotonic(), time.process_time()
        lateness = after.lateness - before.lateness
        streams = running.streams.values()
        scheduling = running.transmitter.scheduling
        return FleetTrial(
            sensors=sensors,
            rays_per_beam=rays_per_beam,
            rays_given_up=any(streaming.rays < streaming.wanted_rays for streaming in streams),
            seconds=over_s - begun_s,
            packets=after.sent - before.sent,
            left_out_packets=after.left_out - before.left_out,
            lateness_p50_us=(quantile_ns(lateness, 0.5) or 0) / 1e3,
            lateness_p99_us=(quantile_ns(lateness, 0.99) or 0) / 1e3,
            used_cores=(over_cpu_s - begun_cpu_s) / (over_s - begun_s),
            scheduling=scheduling.mode.value if scheduling else "",
        )


@dataclass(frozen=True, kw_only=True)
class _Counts:
    """Counts of data packets since the start."""

    sent: int
    left_out: int
    lateness: "np.ndarray[Any, np.dtype[np.int64]]"

    @classmethod
    def of(cls, running: RunningRig) -> "_Counts":
        rows = [streaming.rows[0] for streaming in running.streams.values()]
        statistics, reading = running.transmitter.statistics, running.reading()
        sent, dropped = (int(statistics.counters[rows, column].sum()) for column in (Counter.PACKETS, Counter.DROPPED))
        refused = sum(sum(flow.send_errors.values()) for flow in reading.flows)
        unrendered = sum(sensor.render_skipped_packets + sensor.render_ring_full_packets for sensor in reading.sensors)
        return cls(sent=sent, left_out=dropped + refused + unrendered, lateness=np.array(statistics.lateness[rows].sum(axis=0)))


class _Pacing:
    """Paces a rig twice a second, to keep within the machine's capacity, while the block runs."""

    def __init__(self, running: RunningRig) -> None:
        self._running, self._over = running, threading.Event()
        self._thread = threading.Thread(target=self._pace, name="pace", daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _pace(self) -> None:
        while not self._over.wait(_PACE_INTERVAL_S):
            self._running.pace()
