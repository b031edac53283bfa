"""Cars of the demo street: x forward, origin on the ground under the centre; body, glass, wheels, mirrors, retro-reflecting number plates."""

import math
from dataclasses import dataclass

from hilsim.scene.mesh import Mesh
from hilsim.scene.street.shapes import Point, Shape

_WHEEL_SIDES = 12
_PLATE_M = (0.26, 0.055)
_PROUD_M = 0.005

Section = tuple[float, float, float, float, float]
Rectangle = tuple[float, float, float]


@dataclass(frozen=True, kw_only=True)
class Model:
    """Dimensions of a car in metres.

    Attributes:
        sections: Cross-sections from rear to front: x, half width, underside, belt line, top of the body.
        base: Foot of the cabin: rear x, front x, half width.
        roof: Edge of the roof: rear x, front x, half width.
        heights: Heights of the foot of the cabin and of the roof.
        side: Material of the cabin's sides (``None``: the car's paint).
        wheels: x of the rear and of the front axle, radius.
    """

    sections: tuple[Section, ...]
    base: Rectangle
    roof: Rectangle
    heights: tuple[float, float]
    side: str | None
    wheels: tuple[float, float, float]


SALOON = Model(
    sections=(
        (-2.30, 0.78, 0.45, 0.70, 0.86),
        (-2.15, 0.88, 0.28, 0.76, 0.98),
        (-0.40, 0.90, 0.22, 0.80, 0.97),
        (1.00, 0.90, 0.22, 0.78, 0.94),
        (2.00, 0.86, 0.25, 0.66, 0.77),
        (2.30, 0.76, 0.38, 0.56, 0.66),
    ),
    base=(-1.80, 1.10, 0.80),
    roof=(-1.10, 0.30, 0.60),
    heights=(0.92, 1.44),
    side="window",
    wheels=(-1.38, 1.38, 0.32),
)
HATCHBACK = Model(
    sections=(
        (-1.98, 0.76, 0.45, 0.75, 0.93),
        (-1.88, 0.84, 0.28, 0.80, 0.99),
        (0.80, 0.86, 0.22, 0.80, 0.98),
        (1.70, 0.82, 0.25, 0.68, 0.80),
        (1.95, 0.72, 0.38, 0.56, 0.68),
    ),
    base=(-1.92, 0.95, 0.77),
    roof=(-1.55, 0.20, 0.60),
    heights=(0.92, 1.50),
    side="window",
    wheels=(-1.22, 1.25, 0.30),
)
VAN = Model(
    sections=(
        (-2.60, 0.92, 0.40, 0.80, 1.10),
        (-2.50, 0.97, 0.30, 0.90, 1.15),
        (1.60, 0.97, 0.26, 0.92, 1.15),
        (2.35, 0.92, 0.28, 0.85, 1.02),
        (2.60, 0.82, 0.40, 0.70, 0.85),
    ),
    base=(-2.55, 2.00, 0.93),
    roof=(-2.45, 1.15, 0.82),
    heights=(1.10, 2.05),
    side=None,
    wheels=(-1.60, 1.70, 0.35),
)
MODELS = (SALOON, HATCHBACK, VAN)
PAINTS = ("paint_white", "paint_silver", "paint_black", "paint_red", "paint_blue")


def car(model: Model, paint: str) -> Mesh:
    """Mesh of a car with one paint."""
    shape = Shape()
    rings = [_section(section) for section in model.sections]
    shape.bands(paint, rings)
    shape.polygon(paint, *rings[-1])
    shape.polygon(paint, *reversed(rings[0]))
    _cabin(shape, model, paint)
    for x in model.wheels[:2]:
        for side in (-1.0, 1.0):
            _wheel(shape, x, side, model.sections[len(model.sections) // 2][1], model.wheels[2])
    for (x, _, _, belt, _), facing in ((model.sections[0], -1.0), (model.sections[-1], 1.0)):
        _plate(shape, x + facing * _PROUD_M, belt - 2.0 * _PLATE_M[1], facing)
    x, z = model.base[1] - 0.35, model.heights[0]
    width = model.sections[len(model.sections) // 2][1]
    for side in (-1.0, 1.0):
        near, far = sorted((side * (width - 0.1), side * (width + 0.14)))
        shape.box(paint, (x - 0.06, near, z), (x + 0.06, far, z + 0.14), bottom=True)
    return shape.mesh()


def _section(section: Section) -> list[Point]:
    """Six points of a cross-section, counter-clockwise seen from the front."""
    x, width, low, belt, top = section
    shoulder = width - 0.08
    return [(x, -width, low), (x, width, low), (x, width, belt), (x, shoulder, top), (x, -shoulder, top), (x, -width, belt)]


def _cabin(shape: Shape, model: Model, paint: str) -> None:
    """Add the cabin: glass in front and behind, sides with painted pillars, a roof with a softened edge."""
    foot, edge = _rectangle(model.base, model.heights[0]), _rectangle(model.roof, model.heights[1])
    rear, front, width = model.roof
    lid = _rectangle((rear + 0.12, front - 0.12, width - 0.10), model.heights[1] + 0.05)
    for k, material in enumerate((model.side, "window", model.side, "window")):
        j = (k + 1) % 4
        shape.polygon(material or paint, foot[k], foot[j], edge[j], edge[k])
    shape.bands(paint, [edge, lid])
    shape.polygon(paint, *lid)
    for side in (0, 2):
        a, b, c, d = foot[side], foot[side + 1], edge[side + 1], edge[side]
        for start in (0.0, 0.47, 0.94):
            _strip(shape, paint, (a, b, c, d), start, start + 0.06)


def _strip(shape: Shape, material: str, wall: tuple[Point, Point, Point, Point], start: float, end: float) -> None:
    """Add a pillar: a strip of a wall, slightly in front of it."""
    a, b, c, d = wall
    out = math.copysign(_PROUD_M, a[1])

    def along(p: Point, q: Point, s: float) -> Point:
        return (p[0] + s * (q[0] - p[0]), p[1] + s * (q[1] - p[1]) + out, p[2] + s * (q[2] - p[2]))

    shape.polygon(material, along(a, b, start), along(a, b, end), along(d, c, end), along(d, c, start))


def _rectangle(sides: Rectangle, z: float) -> list[Point]:
    rear, front, width = sides
    return [(rear, -width, z), (front, -width, z), (front, width, z), (rear, width, z)]


def _wheel(shape: Shape, x: float, side: float, width: float, radius: float) -> None:
    outside = side * (width + 0.02)
    shape.tube("rubber", (x, outside - side * 0.22, radius), (x, outside, radius), (radius, radius), _WHEEL_SIDES)
    hub = outside + side * _PROUD_M
    turns = [-side * math.tau * k / _WHEEL_SIDES for k in range(_WHEEL_SIDES)]
    shape.polygon("metal", *((x + 0.6 * radius * math.cos(turn), hub, radius + 0.6 * radius * math.sin(turn)) for turn in turns))


def _plate(shape: Shape, x: float, z: float, facing: float) -> None:
    half_width, half_height = _PLATE_M
    left, right = -facing * half_width, facing * half_width
    shape.polygon("number_plate", (x, left, z - half_height), (x, right, z - half_height), (x, right, z + half_height), (x, left, z + half_height))
