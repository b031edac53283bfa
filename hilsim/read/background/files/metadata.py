"""Metadata in the files of a background map, beside its arrays: one line of JSON.

==============  =================================================================================================================================
``format``      ``"hilsim-background"``
``version``     1
``grid``        ``{"kind": "azimuth", "columns": …, "elevation_deg": […]}`` or ``{"kind": "image", "columns": …, "rows": …, …}``
``model``       Name of the sensor's model; empty if unknown.
``pose``        World from sensor: ``{"position_m": [x, y, z], "orientation": [w, x, y, z]}``, or null.
``provenance``  Origin of the map, as ``BackgroundMap.provenance``.
==============  =================================================================================================================================
"""

import json
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from pydantic_core import from_json

from hilsim.config.parse import collect_faults
from hilsim.errors import AssetError
from hilsim.limits import JSON_NESTING, MAP_CELLS, MAP_METADATA_BYTES
from hilsim.world.assets.nesting import nesting
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.background import AzimuthGrid, BackgroundMap, ImageGrid

FORMAT, VERSION = "hilsim-background", 1
MAX_CELLS = MAP_CELLS.bound
"""Largest number of cells of a map in a file."""

T = TypeVar("T")
_KINDS: dict[str, type[AzimuthGrid] | type[ImageGrid]] = {"azimuth": AzimuthGrid, "image": ImageGrid}


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """JSON as stored; the grid's own keys depend on its kind."""

    format: str
    version: int
    grid: dict[str, Any]
    model: str
    pose: Pose | None
    provenance: dict[str, Any]


def describe_map(background: BackgroundMap) -> str:
    """JSON of a map in ASCII.

    Raises:
        ValueError: the provenance contains a number that is not finite.
        TypeError: the provenance contains a value that is not a JSON value.
    """
    grid = background.grid
    kind = next(name for name, known in _KINDS.items() if isinstance(grid, known))
    stored = {
        "format": FORMAT,
        "version": VERSION,
        "grid": {"kind": kind, **asdict(grid)},
        "model": background.model,
        "pose": None if background.pose is None else asdict(background.pose),
        "provenance": background.provenance,
    }
    return json.dumps(stored, allow_nan=False)


def read_metadata(text: str, where: str) -> dict[str, Any]:
    """Parse the metadata of a map from its JSON: the fields of ``BackgroundMap`` that are no arrays.

    Args:
        text: JSON text.
        where: File and position for messages.

    Raises:
        AssetError: it is no JSON, too long, nested too deep, has another format or version, violates a rule, or has more than ``MAX_CELLS`` cells.
    """
    try:
        data = text.encode()
        MAP_METADATA_BYTES.enforce(len(data), where, AssetError)
        JSON_NESTING.enforce(nesting(data), where, AssetError)
        table = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise AssetError(f"{where}: must be JSON: {error}") from error
    found = table.get("format") if isinstance(table, dict) else None
    if found != FORMAT:
        raise AssetError(f'{where}: format must be "{FORMAT}", got {found!r}')
    if table.get("version") != VERSION:
        raise AssetError(f"{where}: version of {FORMAT} must be {VERSION}, got {table.get('version')!r}; written by a newer hilsim?")
    stored = _checked(_Stored, table, where)
    kind = stored.grid.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise AssetError(f"{where}: grid.kind must be {' or '.join(_KINDS)}, got {kind!r}")
    grid = _checked(_KINDS[kind], stored.grid, f"{where}: grid")
    check_cells(grid.rows, grid.columns, where)
    return {"grid": grid, "model": stored.model, "pose": stored.pose, "provenance": stored.provenance}


def check_cells(rows: int, columns: int, where: str) -> None:
    """Reject a map that is too large for a file.

    Raises:
        AssetError: it has more than ``MAX_CELLS`` cells.
    """
    if rows * columns > MAX_CELLS:
        raise AssetError(f"{where}: rows x columns must be at most {MAX_CELLS}, got {rows} x {columns}")


def _checked(kind: type[T], table: dict[str, Any], where: str) -> T:
    """Convert a table to a frozen dataclass.

    Raises:
        AssetError: the table violates rules; the message names every fault.
    """
    value, faults = collect_faults(kind, table)
    if value is None:
        raise AssetError(f"{where}: {'; '.join(faults)}")
    return value
