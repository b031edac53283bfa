"""Files of a map of returns: PLY and LAS for viewers of point clouds, NPZ for NumPy."""

from pathlib import Path

import numpy as np

from hilsim.errors import ConfigError
from hilsim.read.analysis.returns_map import Cells

SUFFIXES = (".ply", ".las", ".npz")
_LAS_UNIT_M = 0.0001
_LAS_SPAN_M = 200_000.0  # 2^31 units


def check_map_path(path: Path) -> None:
    """Raise an error for a file that cannot be written as a map.

    Raises:
        ConfigError: the suffix is unknown or needs a package that is missing, or there is no such folder.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise ConfigError(f"output must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}, got {path}")
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"{path}: the folder must exist")
    if path.suffix.lower() == ".las":
        try:
            import laspy  # noqa: F401, PLC0415 - an extra
        except ImportError as error:
            raise ConfigError(f"{path}: writing LAS requires the package laspy (pip install 'hilsim-lidar[las]')") from error


def write_map(path: Path, cells: Cells, cell_m: float) -> None:
    """Write cells to a file, whose suffix gives its type.

    Raises:
        ConfigError: the type is unknown, needs a package that is missing, or cannot hold the cells.
        OSError: the file cannot be written.
    """
    check_map_path(path)
    match path.suffix.lower():
        case ".npz":
            np.savez_compressed(path, position_m=cells.position_m, count=cells.returns, cell_m=cell_m)
        case ".ply":
            _write_ply(path, cells)
        case _:
            _write_las(path, cells)


def _write_ply(path: Path, cells: Cells) -> None:
    vertices = np.zeros(cells.returns.size, [("x", "<f8"), ("y", "<f8"), ("z", "<f8"), ("count", "<u4")])
    vertices["x"], vertices["y"], vertices["z"] = cells.position_m.T
    vertices["count"] = np.minimum(cells.returns, np.iinfo(np.uint32).max)
    header = (
        "ply\nformat binary_little_endian 1.0\ncomment hilsim map of returns: mean position and number of returns of each cell\n"
        f"element vertex {vertices.size}\nproperty double x\nproperty double y\nproperty double z\nproperty uint count\nend_header\n"
    )
    path.write_bytes(header.encode() + vertices.tobytes())


def _write_las(path: Path, cells: Cells) -> None:
    import laspy  # noqa: PLC0415 - an extra

    header = laspy.LasHeader(point_format=6, version="1.4")
    header.add_extra_dim(laspy.ExtraBytesParams(name="count", type=np.uint32, description="returns in the cell"))
    header.scales = np.full(3, _LAS_UNIT_M)
    if cells.returns.size:
        low, high = cells.position_m.min(axis=0), cells.position_m.max(axis=0)
        if float((high - low).max()) > _LAS_SPAN_M:
            raise ConfigError(f"{path}: extent of a LAS file must be at most {_LAS_SPAN_M:.0f} m, got {float((high - low).max()):.0f}")
        header.offsets = np.floor(low)
    file = laspy.LasData(header)
    file.x, file.y, file.z = cells.position_m.T
    file["count"] = np.minimum(cells.returns, np.iinfo(np.uint32).max).astype(np.uint32)
    file.write(str(path))
