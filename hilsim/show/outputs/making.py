"""Output of a format by its name; packages that are missing are reported before anything is rendered."""

from collections.abc import Callable
from pathlib import Path

from hilsim.errors import ConfigError
from hilsim.show.outputs.bag import RosBag, Storage
from hilsim.show.outputs.clouds import CloudFiles
from hilsim.show.outputs.events import Output, SourceInfo
from hilsim.show.outputs.formats import CLOUDS
from hilsim.show.outputs.foxglove_log import McapFile
from hilsim.show.outputs.kitti import KittiFolder
from hilsim.show.outputs.nuscenes import NuscenesFolder
from hilsim.show.outputs.ros import Layout, topic_name


def make_output(
    kind: str,
    path: Path,
    info: SourceInfo,
    *,
    layout: Layout = "xyzirt",
    storage: Storage = "mcap",
    in_one: bool = False,
    with_packets: bool = True,
    with_laser_scans: bool = False,
    layout_file: Path | None = None,
) -> Output:
    """Make an output.

    Args:
        kind: One of ``FORMATS``.
        path: File or folder.
        info: Description of the source.
        layout: Points of a bag.
        storage: Storage of a bag.
        in_one: Whether all scans of a point cloud go into one file.
        with_packets: Whether packets are written where the format has them.
        with_laser_scans: Whether laser scans are written where the format has them.
        layout_file: File for Foxglove's layout; None: none.

    Raises:
        ConfigError: a package is missing, or the place cannot be used.
        KeyError: the format does not exist.
    """
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: the folder {path.absolute().parent} must exist")
    topics: dict[str, str] = {}
    for sensor in info.mounts if kind in {"mcap", "ros2"} else ():
        if (other := topics.setdefault(topic_name(sensor), sensor)) != sensor:
            raise ConfigError(f"{path}: sensors must have names that differ in a letter or digit, for their topics, got {other} and {sensor}")
    makers: dict[str, Callable[[], Output]] = {
        "mcap": lambda: McapFile(path, info, with_packets=with_packets, with_laser_scans=with_laser_scans, layout_file=layout_file),
        "ros2": lambda: RosBag(path, info, storage=storage, layout=layout, with_packets=with_packets, with_laser_scans=with_laser_scans),
        "kitti": lambda: KittiFolder(path, classes=info.classes, sensors=tuple(info.mounts)),
        "nuscenes": lambda: NuscenesFolder(path, info),
        **{name: _clouds(path, name, in_one=in_one) for name in CLOUDS},
    }
    return makers[kind]()


def _clouds(path: Path, kind: str, *, in_one: bool) -> Callable[[], Output]:
    return lambda: CloudFiles(path, f".{kind}", in_one=in_one)
