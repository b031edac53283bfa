"""Implementation of the fixture ``hilsim_lidar``: makes lidars that end with the test, and keeps their packets if it fails."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, overload

from hilsim.testing.lidars import Lidar, lidar

if TYPE_CHECKING:
    from hilsim.testing.virtual import VirtualLidar

__tracebackhide__ = True  # pytest leaves these frames out of a test's traceback


class LidarFactory:
    """Factory of lidars.

    Attributes:
        sensors: Lidars made so far.
    """

    def __init__(self, directory: Path) -> None:
        """Record the lidars' packets in ``directory``."""
        self.sensors: list[Lidar | VirtualLidar] = []
        self._directory = directory
        self._stack = ExitStack()
        self._is_kept = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._stack.close()
        if not self._is_kept:
            for path in (path for sensor in self.sensors for path in sensor.recorded):
                path.unlink(missing_ok=True)

    @overload
    def __call__(self, model: str = "vlp16", *, real_time: Literal[False], **options: Any) -> "VirtualLidar": ...
    @overload
    def __call__(self, model: str = "vlp16", *, real_time: Literal[True] = True, **options: Any) -> Lidar: ...
    def __call__(self, model: str = "vlp16", *, name: str | None = None, **options: Any) -> "Lidar | VirtualLidar":
        """Make a lidar that streams until the test ends.

        Args:
            model: Shipped sensor profile, or the path of one.
            name: Name of the sensor; None: ``lidar``, ``lidar2`` …
            options: Options of ``hilsim.testing.lidar``.

        Raises:
            ConfigError: there is no such model or scene, or the rig is invalid.
            DaemonError: the daemon did not start; the message is its output.
            TransmitError: no port is free.
        """
        given = name or f"lidar{len(self.sensors) + 1 if self.sensors else ''}"
        options.setdefault("record", self._directory / f"{given}.pcap")
        sensor: Lidar | VirtualLidar = self._stack.enter_context(lidar(model, name=given, **options))
        self.sensors.append(sensor)
        return sensor

    def reports(self) -> list[tuple[str, str]]:
        """Section of the report for each lidar; its recording is kept, and its metrics are saved beside it."""
        self._is_kept = True
        sections = []
        for sensor in self.sensors:
            text = sensor.report()
            path = self._directory / f"{sensor.name}-metrics.txt"
            path.write_text(text + "\n", encoding="utf-8")
            sections.append((f"hilsim {sensor.name}", f"{text}\nkept: {path}"))
        return sections
