"""Houses of the demo street: walls with recessed windows and doors, flat roofs behind parapets, gables."""

from collections.abc import Callable
from dataclasses import dataclass

from hilsim.world.assets.street.shapes import Dice, Point, Shape
from hilsim.world.scene.mesh import Mesh

GROUND_FLOOR_M = 3.4
_PLINTH_M = 0.15
_RECESS_M = 0.08
_EAVES_M = 0.4
_PARAPET_M = 0.5
_PARAPET_WIDTH_M = 0.3
_DOOR_M = 2.3

Place = Callable[[float, float, float], Point]


@dataclass(frozen=True, kw_only=True)
class Style:
    """Appearance of a building.

    Attributes:
        wall: Material of the walls.
        floors: Number of floors with the ground floor.
        floor_m: Height of an upper floor.
        window_m: Width and height of an upper window.
        spacing_m: Approximate distance between windows.
        shop: Whether the ground floor has wide panes.
        gable: Whether the roof is tiled with gables rather than flat.
    """

    wall: str
    floors: int
    floor_m: float
    window_m: tuple[float, float]
    spacing_m: float
    shop: bool
    gable: bool

    @property
    def height_m(self) -> float:
        """Height of the eaves or of the flat roof."""
        return _PLINTH_M + GROUND_FLOOR_M + (self.floors - 1) * self.floor_m


def town_house(dice: Dice) -> Style:
    """Style with two to four floors, small windows, mostly gabled."""
    return Style(
        wall=dice.choice(("plaster", "brick", "brick", "sandstone")),
        floors=dice.whole(2, 4),
        floor_m=dice.number(2.8, 3.2),
        window_m=(dice.number(1.0, 1.3), dice.number(1.3, 1.6)),
        spacing_m=dice.number(2.6, 3.4),
        shop=dice.chance(0.4),
        gable=dice.chance(0.75),
    )


def office(dice: Dice) -> Style:
    """Style with four to eight floors, wide panes, a flat roof."""
    return Style(
        wall=dice.choice(("concrete", "concrete", "plaster", "sandstone")),
        floors=dice.whole(4, 8),
        floor_m=dice.number(3.2, 3.6),
        window_m=(dice.number(1.9, 2.6), dice.number(1.6, 2.0)),
        spacing_m=dice.number(3.2, 4.2),
        shop=dice.chance(0.7),
        gable=False,
    )


def building(style: Style, low: tuple[float, float], high: tuple[float, float], street_sides: str, door: float) -> Mesh:
    """Mesh of a building over the rectangle ``low`` to ``high``.

    Args:
        style: Appearance of the building.
        low: South-west corner.
        high: North-east corner.
        street_sides: Sides with windows, among ``s e n w``; the first has the door.
        door: Position of the door along that side, 0 to 1.
    """
    (x0, y0), (x1, y1) = low, high
    sides = {"s": ((x0, y0), (1, 0), x1 - x0), "e": ((x1, y0), (0, 1), y1 - y0), "n": ((x1, y1), (-1, 0), x1 - x0), "w": ((x0, y1), (0, -1), y1 - y0)}
    shape = Shape()
    top = style.height_m if style.gable else style.height_m + _PARAPET_M
    for name, (corner, along, width) in sides.items():
        place = _placing(corner, along)
        if name in street_sides:
            _windowed_wall(shape, place, width, style, top, door if name == street_sides[0] else None)
        else:
            _wall(shape, place, style.wall, (0.0, width), (0.0, top))
    (_gable_roof if style.gable else _flat_roof)(shape, style, low, high)
    return shape.mesh()


def _placing(corner: tuple[float, float], along: tuple[int, int]) -> Place:
    """Transformation from (along the wall, out of it, up) to the scene."""
    (x, y), (ux, uy) = corner, along
    return lambda a, out, z: (x + ux * a + uy * out, y + uy * a - ux * out, z)


def _wall(shape: Shape, place: Place, material: str, span: tuple[float, float], heights: tuple[float, float], out: float = 0.0) -> None:
    (a, b), (low, high) = span, heights
    shape.polygon(material, place(a, out, low), place(b, out, low), place(b, out, high), place(a, out, high))


def _opening(shape: Shape, place: Place, span: tuple[float, float], heights: tuple[float, float], wall: str, pane: str) -> None:
    """Add a recess of four reveals and a pane."""
    (a, b), (low, high) = span, heights
    front = [place(a, 0.0, low), place(b, 0.0, low), place(b, 0.0, high), place(a, 0.0, high)]
    back = [place(a, -_RECESS_M, low), place(b, -_RECESS_M, low), place(b, -_RECESS_M, high), place(a, -_RECESS_M, high)]
    shape.bands(wall, [front, back])
    shape.polygon(pane, *back)


def _windowed_wall(shape: Shape, place: Place, width: float, style: Style, top: float, door: float | None) -> None:
    columns = max(1, round(width / style.spacing_m))
    cell = width / columns
    floor = _PLINTH_M + GROUND_FLOOR_M
    _ground_floor(shape, place, style, columns, cell, None if door is None else min(columns - 1, int(door * columns)))
    window = min(style.window_m[0], 0.8 * cell)
    heads = floor
    for _ in range(1, style.floors):
        sill = floor + 0.5 * (style.floor_m - style.window_m[1])
        _wall(shape, place, style.wall, (0.0, width), (heads, sill))
        heads = sill + style.window_m[1]
        edges = [0.0] + [(column + 0.5) * cell + side * 0.5 * window for column in range(columns) for side in (-1.0, 1.0)] + [width]
        for pier in range(0, len(edges), 2):
            _wall(shape, place, style.wall, (edges[pier], edges[pier + 1]), (sill, heads))
        for pane in range(1, len(edges) - 1, 2):
            _opening(shape, place, (edges[pane], edges[pane + 1]), (sill, heads), style.wall, "window")
        floor += style.floor_m
    _wall(shape, place, style.wall, (0.0, width), (heads, top))


def _ground_floor(shape: Shape, place: Place, style: Style, columns: int, cell: float, door: int | None) -> None:
    """Add the ground floor cell by cell, because a door interrupts the sill."""
    ceiling = _PLINTH_M + GROUND_FLOOR_M
    for column in range(columns):
        a, b = column * cell, (column + 1) * cell
        half = 0.5 * (0.85 * cell if style.shop else min(style.window_m[0], 0.8 * cell))
        low, high, pane = (_PLINTH_M + 0.5, ceiling - 0.6, "window") if style.shop else (_PLINTH_M + 1.0, ceiling - 0.8, "window")
        if column == door:
            half, low, high, pane = 0.5, _PLINTH_M, _PLINTH_M + _DOOR_M, "wood"
        middle = 0.5 * (a + b)
        _wall(shape, place, style.wall, (a, middle - half), (0.0, ceiling))
        _wall(shape, place, style.wall, (middle + half, b), (0.0, ceiling))
        _wall(shape, place, style.wall, (middle - half, middle + half), (0.0, low))
        _wall(shape, place, style.wall, (middle - half, middle + half), (high, ceiling))
        _opening(shape, place, (middle - half, middle + half), (low, high), style.wall, pane)


def _flat_roof(shape: Shape, style: Style, low: tuple[float, float], high: tuple[float, float]) -> None:
    (x0, y0), (x1, y1) = low, high
    roof, top, w = style.height_m, style.height_m + _PARAPET_M, _PARAPET_WIDTH_M
    outer: list[Point] = [(x0, y0, top), (x1, y0, top), (x1, y1, top), (x0, y1, top)]
    inner: list[Point] = [(x0 + w, y0 + w, top), (x1 - w, y0 + w, top), (x1 - w, y1 - w, top), (x0 + w, y1 - w, top)]
    sunk: list[Point] = [(x, y, roof) for x, y, _ in inner]
    shape.bands(style.wall, [outer, inner, sunk])
    shape.polygon("gravel", *sunk)
    x, y = 0.65 * x0 + 0.35 * x1, 0.5 * (y0 + y1)
    shape.box("metal", (x - 1.5, y - 1.2, roof), (x + 1.5, y + 1.2, roof + 2.2))


def _gable_roof(shape: Shape, style: Style, low: tuple[float, float], high: tuple[float, float]) -> None:
    """Add a gable roof with its ridge along x."""
    (x0, y0), (x1, y1) = low, high
    eaves, middle = style.height_m, 0.5 * (y0 + y1)
    ridge = eaves + 0.42 * (y1 - y0)
    drop = _EAVES_M * (ridge - eaves) / (middle - y0)
    shape.polygon(style.wall, (x0, y1, eaves), (x0, y0, eaves), (x0, middle, ridge))
    shape.polygon(style.wall, (x1, y0, eaves), (x1, y1, eaves), (x1, middle, ridge))
    shape.polygon("tiles", (x0, y0 - _EAVES_M, eaves - drop), (x1, y0 - _EAVES_M, eaves - drop), (x1, middle, ridge), (x0, middle, ridge))
    shape.polygon("tiles", (x1, y1 + _EAVES_M, eaves - drop), (x0, y1 + _EAVES_M, eaves - drop), (x0, middle, ridge), (x1, middle, ridge))
    x = 0.7 * x0 + 0.3 * x1
    shape.box("brick", (x - 0.4, middle - 1.4, eaves + 0.4 * (ridge - eaves)), (x + 0.4, middle - 0.6, ridge + 0.8))
