"""Tools for the demo street's parts: a collection of convex polygons that becomes a mesh, and random numbers that depend on the seed alone."""

import itertools
import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilsim.rng import Purpose, uniform
from hilsim.scene.mesh import Mesh
from hilsim.scene.specs import BUILT_IN_MATERIALS

Point = tuple[float, float, float]

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
        self.prism(material, [(x0, y0), (x1, y0), (x1, y1), (x0, y1)], z0, z1)
        if bottom:
            self.polygon(material, (x0, y0, z0), (x0, y1, z0), (x1, y1, z0), (x1, y0, z0))

    def prism(self, material: str, outline: Sequence[tuple[float, float]], bottom: float, top: float) -> None:
        """Add a prism: a convex outline, counter-clockwise from above, extruded up to a lid."""
        for (ax, ay), (bx, by) in zip(outline, [*outline[1:], outline[0]], strict=True):
            self.polygon(material, (ax, ay, bottom), (bx, by, bottom), (bx, by, top), (ax, ay, top))
        self.polygon(material, *((x, y, top) for x, y in outline))

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
