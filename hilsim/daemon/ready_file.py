"""File that exists while packets flow, for scripts that start a daemon and wait for it."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from hilsim.assembly.build import sensor_flows
from hilsim.config.rig import Rig
from hilsim.daemon.part_list import listed_parts
from hilsim.daemon.running_rig import RunningRig
from hilsim.daemon.service import Console
from hilsim.errors import ConfigError
from hilsim.telemetry.readings import Reading


@dataclass(kw_only=True, eq=False)
class ReadyFile:
    """File that exists from the first packets to the stop; it is written under another name and renamed, so that no reader sees an incomplete file.

    Attributes:
        path: Path of the file.
    """

    path: Path
    _running: RunningRig | None = field(default=None, init=False)
    _rig: Rig | None = field(default=None, init=False)
    _metrics: str = field(default="", init=False)

    @contextmanager
    def kept(self) -> Iterator[Self]:
        """Remove the file of an earlier daemon before the block, and the own file after it.

        Raises:
            ConfigError: the file cannot be created.
        """
        self._prepare()
        try:
            yield self
        finally:
            self.end()

    def console(self, console: Console) -> Console:
        """Console that also writes the file once packets flow, updates it after reloads, and removes it before anything is closed."""

        def started(running: RunningRig, metrics: str) -> None:
            self.begin(running, metrics)
            console.started(running, metrics)

        def status(reading: Reading) -> None:
            self.follow()
            console.status(reading)

        def ended(running: RunningRig) -> None:
            self.end()
            console.ended(running)

        return replace(console, started=started, status=status, ended=ended)

    def _prepare(self) -> None:
        try:
            self.path.unlink(missing_ok=True)
            self._aside.touch()  # under another name, because a waiting script would take even an empty file as ready
            self._aside.unlink()
        except OSError as error:
            raise ConfigError(f"--ready-file must be a file that can be written, got {self.path}: {error.strerror}") from error

    def begin(self, running: RunningRig, metrics: str) -> None:
        """Write the file, because packets flow.

        Args:
            running: Running rig.
            metrics: Address of the metrics; empty without metrics.

        Raises:
            ConfigError: the file cannot be written any more.
        """
        self._running, self._metrics = running, metrics
        try:
            self.follow()
        except OSError as error:
            raise ConfigError(f"--ready-file must be a file that can be written, got {self.path}: {error.strerror}") from error

    def follow(self) -> None:
        """Write the file again if a reload has changed the rig."""
        if self._running is not None and self._running.rig is not self._rig:
            self._rig = self._running.rig
            self._write(json.dumps(contents(self._running, self._metrics), indent=2) + "\n")

    def end(self) -> None:
        """Remove the file."""
        self._running = None
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _write(self, text: str) -> None:
        try:
            self._aside.write_text(text, encoding="utf-8")
            self._aside.replace(self.path)
        finally:
            self._aside.unlink(missing_ok=True)

    @property
    def _aside(self) -> Path:
        return self.path.with_name(f".{self.path.name}.{os.getpid()}")


def contents(running: RunningRig, metrics: str) -> dict[str, Any]:
    """Contents of the file: process, metrics, and destinations of each sensor's and part's packets."""
    rig = running.rig
    sensors = []
    for sensor, lidar in zip(rig.spec.sensor, rig.lidars, strict=True):
        flows = [flow.flow for flow in sensor_flows(sensor, lidar)]
        sensors.append(
            {
                "name": sensor.name,
                "model": lidar.spec.model,
                "source": sensor.network.source,
                "destination": sensor.network.destination,
                "ports": {flow.name.rpartition("/")[2]: flow.destination_port for flow in flows},
            }
        )
    sent = list(running.transmitter.flows.values())
    parts = {name: [entry for kind, each in found for entry in kind.ready(each, sent)] for name, found in listed_parts(rig.spec).items()}
    return {"pid": os.getpid(), "rig": rig.spec.name, "metrics": metrics, "sensors": sensors, **parts}
