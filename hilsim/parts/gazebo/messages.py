"""Write messages of a rig's Gazebo lidars to files: one file for each topic, each message preceded by its size (protobuf's delimited streams)."""

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, NamedTuple

from hilsim.assembly.build import build_scenery
from hilsim.assembly.changed import seen_worlds
from hilsim.config.rig import Rig
from hilsim.config.script import Script
from hilsim.errors import CaptureError
from hilsim.offline.part_file import written_whole
from hilsim.parts.gazebo.lidar import GazeboLidar
from hilsim.parts.gazebo.lidars import gazebo_lidars
from hilsim.parts.gazebo.publishing import topics_of
from hilsim.protocols.protobuf import base128


class RecordedTopic(NamedTuple):
    """File with the messages of one topic.

    Attributes:
        path: Path of the file.
        topic: Name of the topic.
        messages: Number of messages.
    """

    path: Path
    topic: str
    messages: int


def record_messages(
    rig: Rig, folder: Path, *, duration_ns: int, progress: Callable[[int], None] = lambda _: None, script: Script | None = None
) -> tuple[RecordedTopic, ...]:
    """Write what a rig's Gazebo lidars would publish if every topic had a subscriber.

    Args:
        rig: A rig with ``[gazebo]``.
        folder: Folder of the files, created if it does not exist.
        duration_ns: End of the recording in rig time.
        progress: Callback for the rig time (ns) written so far.
        script: Timed changes of the rig, or None.

    Raises:
        AssetError: a file of the rig cannot be used.
        CaptureError: a file cannot be written.
        ConfigError: the SDF file has no lidar, or two lidars with one topic, or a change of the script cannot be made.
    """
    scenery = build_scenery(rig)
    lidars = gazebo_lidars(rig, scenery)
    later = deque((change.at_ns or 0, world) for change, world in (seen_worlds(rig, scenery, script) if script is not None else ()))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as files:
            written = [_files(lidar, folder, files) for lidar in lidars]
            counts = [0] * len(lidars)
            due = sorted((time_ns, number) for number, lidar in enumerate(lidars) for time_ns in lidar.times_ns(0, duration_ns))
            for time_ns, number in due:
                while later and later[0][0] <= time_ns:
                    from_ns, world = later.popleft()
                    for lidar in lidars:
                        lidar.see_later(from_ns, world)
                lidar, (scans, clouds) = lidars[number], written[number]
                ranges_m = lidar.ranges_m(time_ns)
                _write(scans, lidar.laser_scan(ranges_m, time_ns=time_ns, sequence=2 * counts[number]))
                _write(clouds, lidar.point_cloud(ranges_m, time_ns=time_ns, sequence=2 * counts[number] + 1))
                counts[number] += 1
                progress(time_ns)
    except OSError as error:
        raise CaptureError(f"{folder}: must be a folder that files can be written to, got {error.strerror}") from error
    return tuple(
        RecordedTopic(file_of(folder, topic, kind), topic, count)
        for lidar, count in zip(lidars, counts, strict=True)
        for topic, kind in topics_of(lidar.spec)
    )


def file_of(folder: Path, topic: str, kind: str) -> Path:
    """Path of a topic's file: ``a_b.LaserScan.pb`` for topic ``/a/b`` of type ``LaserScan``."""
    return folder / f"{topic.strip('/').replace('/', '_')}.{kind}.pb"


def _files(lidar: GazeboLidar, folder: Path, files: ExitStack) -> tuple[IO[bytes], IO[bytes]]:
    scan, cloud = (
        files.enter_context(files.enter_context(written_whole(file_of(folder, topic, kind))).open("wb")) for topic, kind in topics_of(lidar.spec)
    )
    return scan, cloud


def _write(file: IO[bytes], message: bytes) -> None:
    file.write(base128(len(message)) + message)
