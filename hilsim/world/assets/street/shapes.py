"""Shapes of the demo street: cars, people, furniture and ground from OBJ files beside this module, trees, and polygons that become a mesh.

Random numbers depend on the seed alone.
"""

import itertools
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hilsim.rng import Purpose, uniform
from hilsim.world.assets.obj import read_obj
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.specs import BUILT_IN_MATERIALS

Point = tuple[float, float, float]

LEAVES = 150
_FILES = Path(__file__).parent / "parts"
_DIGITS = 4
"""Vertices are rounded to 0.1 mm, so that the street is the same on machines whose sines differ in the last digit."""


class Dice:
    """Random numbers for one object of the street; objects have separate streams, so drawing more for one does not change another."""

    def __init__(self, seed: int, stream: int) -> None:
        self._seed = np.uint64(seed)
        self._stream = int(stream)
        self._drawn = 0

    def number(self, low: float, high: float) -> float:
        """Uniform random number in ``[low, high)``."""
        self._drawn += 1
        return low + (high - low) * float(uniform(self._seed, self._stream, self._drawn, int(Purpose.SCENE)))

    def whole(self, low: int, high: int) -> int:
        """Uniform random integer from ``low`` to ``high``, both included."""
        return low + int(self.number(0.0, high - low + 1))

    def chance(self, probability: float) -> bool:
        """True with ``probability``."""
        return self.number(0.0, 1.0) < probability

    def choice(self, names: Sequence[str]) -> str:
        """Random one of ``names``."""
        return names[self.whole(0, len(names) - 1)]


class Shape:
    """Polygons of named materials."""

    def __init__(self) -> None:
        self._vertices: list[Point] = []
        self._triangles: list[tuple[int, int, int]] = []
        self._material: list[int] = []
        self._names: dict[str, int] = {}

    def polygon(self, material: str, *points: Point) -> None:
        """Add a flat convex polygon, counter-clockwise seen from outside."""
        start = len(self._vertices)
        self._vertices.extend(points)
        row = self._names.setdefault(material, len(self._names))
        for last in range(2, len(points)):
            self._triangles.append((start, start + last - 1, start + last))
            self._material.append(row)

    def box(self, material: str, low: Point, high: Point, *, bottom: bool = False) -> None:
        """Add a box along the axes; most rest on something and need no bottom."""
        (x0, y0, z0), (x1, y1, z1) = low, high
        corners = [(x0, y0), (x1, y0), (x1, y1), (x0, y1)]
        for (ax, ay), (bx, by) in zip(corners, [*corners[1:], corners[0]], strict=True):
            self.polygon(material, (ax, ay, z0), (bx, by, z0), (bx, by, z1), (ax, ay, z1))
        self.polygon(material, *((x, y, z1) for x, y in corners))
        if bottom:
            self.polygon(material, (x0, y0, z0), (x0, y1, z0), (x1, y1, z0), (x1, y0, z0))

    def bands(self, material: str, outlines: Sequence[Sequence[Point]]) -> None:
        """Add the surface between closed outlines of equally many points, each counter-clockwise seen from the last one's side."""
        for lower, upper in itertools.pairwise(outlines):
            for k in range(len(lower)):
                j = (k + 1) % len(lower)
                self.polygon(material, lower[k], lower[j], upper[j], upper[k])

    def tube(self, material: str, start: Point, end: Point, radii: tuple[float, float], sides: int) -> None:
        """Add a straight tube, with ``radii`` at its ends, closed at ``end``."""
        axis = np.array(end) - np.array(start)
        axis /= np.linalg.norm(axis)
        across = np.cross(axis, (1.0, 0.0, 0.0) if abs(axis[0]) < 0.9 else (0.0, 1.0, 0.0))
        across /= np.linalg.norm(across)
        up = np.cross(axis, across)
        turns = [math.tau * side / sides for side in range(sides)]
        circle = np.outer([math.cos(turn) for turn in turns], across) + np.outer([math.sin(turn) for turn in turns], up)
        rings = [[(x, y, z) for x, y, z in (np.array(centre) + radius * circle).tolist()] for centre, radius in ((start, radii[0]), (end, radii[1]))]
        self.bands(material, rings)
        self.polygon(material, *rings[1])

    def mesh(self) -> Mesh:
        """Mesh of all polygons so far."""
        materials = tuple(BUILT_IN_MATERIALS[name] for name in self._names)
        vertices: npt.NDArray[np.float64] = np.array(self._vertices, dtype=np.float64).round(_DIGITS)
        return Mesh(vertices, np.array(self._triangles, dtype=np.int32), np.array(self._material, dtype=np.int32), materials)


@cache
def part(name: str, in_place_of: str = "", material: str = "") -> Mesh:
    """Mesh of a file, with its origin on the ground.

    Args:
        name: Name of the file without its suffix.
        in_place_of: Name in the file of a material to replace: ``paint`` of a car, ``inside`` of a block.
        material: Material that is used instead.
    """
    [found] = read_obj(_FILES / f"{name}.obj").parts
    materials = tuple(BUILT_IN_MATERIALS[material if known == in_place_of else known] for known in found.names)
    return Mesh(found.vertices, found.triangles.astype(np.int32), found.material.astype(np.int32), materials)


def tree(dice: Dice) -> Mesh:
    """Mesh of a tree: a trunk, three boughs and a crown of single leaves (each represents a clump), through which some pulses pass."""
    shape = Shape()
    trunk_m, radius_m, crown_m = dice.number(2.3, 3.0), dice.number(1.4, 2.1), dice.number(1.6, 2.6)
    centre = np.array([0.0, 0.0, trunk_m + 0.8 * crown_m])
    shape.tube("wood", (0.0, 0.0, 0.0), (0.0, 0.0, trunk_m), (0.17, 0.12), 8)
    for bough in range(3):
        turn = math.tau * bough / 3 + dice.number(0.0, 1.0)
        tip = (0.6 * radius_m * math.cos(turn), 0.6 * radius_m * math.sin(turn), float(centre[2]) + dice.number(-0.2, 0.6))
        shape.tube("wood", (0.0, 0.0, trunk_m - 0.1), tip, (0.09, 0.03), 5)
    for _ in range(LEAVES):
        up, turn, depth = dice.number(-1.0, 1.0), dice.number(0.0, math.tau), dice.number(0.55, 1.0)
        level = math.sqrt(1.0 - up * up)
        place = centre + depth * np.array([radius_m * level * math.cos(turn), radius_m * level * math.sin(turn), crown_m * up])
        _leaf(shape, dice, place)
    return shape.mesh()


def _leaf(shape: Shape, dice: Dice, place: np.ndarray[tuple[int], np.dtype[np.float64]]) -> None:
    spread, tilt, size = dice.number(0.0, math.tau), dice.number(-0.8, 0.8), dice.number(0.28, 0.5)
    corners: list[Point] = []
    for k in range(3):
        turn = spread + math.tau * k / 3
        x, y, z = place + size * np.array([math.cos(turn), math.sin(turn) * math.cos(tilt), math.sin(turn) * math.sin(tilt)])
        corners.append((float(x), float(y), float(z)))
    shape.polygon("leaves", *corners)
