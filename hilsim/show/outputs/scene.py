"""Objects of a scene that are shown, and what has changed of them."""

from collections.abc import Sequence

import numpy as np

from hilsim.assembly.shapes import Shape
from hilsim.limits import VIEW_TRIANGLES
from hilsim.show.outputs.events import SceneShapes


def too_large(shapes: Sequence[Shape]) -> frozenset[str]:
    """Names of the largest objects of a scene that has too many triangles, without which it has not."""
    left, found = VIEW_TRIANGLES.bound, set()
    for shape in sorted(shapes, key=lambda shape: len(shape.triangles)):
        left -= len(shape.triangles)
        if left < 0:
            found.add(shape.name)
    return frozenset(found)


class SceneChanges:
    """The shown objects of a scene that changes."""

    def __init__(self) -> None:
        """Begin with no object."""
        self._shown: dict[str, Shape] = {}

    def event(self, shapes: Sequence[Shape], stamp_ns: int) -> SceneShapes | None:
        """Differences of the scene from the one of the last call; None without any."""
        hidden = too_large(shapes)
        now = {shape.name: shape for shape in shapes if shape.name not in hidden}
        changed = tuple(shape for name, shape in now.items() if not _is_same(self._shown.get(name), shape))
        removed = tuple(name for name in self._shown if name not in now)
        self._shown = now
        return SceneShapes(stamp_ns=stamp_ns, shapes=changed, removed=removed) if changed or removed else None


def _is_same(before: Shape | None, now: Shape) -> bool:
    """Whether an object looks as before; meshes are compared, since a scene that is built again has other arrays."""
    if before is None or (before.pose, before.label) != (now.pose, now.label):
        return False
    return before.vertices_m is now.vertices_m or (
        np.array_equal(before.vertices_m, now.vertices_m) and np.array_equal(before.triangles, now.triangles)
    )
