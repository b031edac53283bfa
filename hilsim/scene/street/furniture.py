"""Trees, lamp posts, traffic signs and people of the demo street, each with its origin on the ground."""

import math

import numpy as np

from hilsim.scene.mesh import Mesh
from hilsim.scene.street.shapes import Dice, Point, Shape

LEAVES = 150
SIGN_SIDES = {"stop": 8, "limit": 14, "give_way": 3, "parking": 4}


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


def lamp_post() -> Mesh:
    """Mesh of a lamp post, six metres high; its arm points along +x."""
    shape = Shape()
    shape.tube("metal", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.11, 0.10), 8)
    shape.tube("metal", (0.0, 0.0, 1.0), (0.0, 0.0, 6.0), (0.07, 0.05), 8)
    shape.tube("metal", (0.0, 0.0, 5.9), (1.5, 0.0, 6.3), (0.04, 0.03), 6)
    shape.box("metal", (1.3, -0.13, 6.22), (2.0, 0.13, 6.36), bottom=True)
    return shape.mesh()


def traffic_sign(kind: str) -> Mesh:
    """Mesh of a retro-reflecting plate on a pole, facing +x; ``kind`` is one of ``SIGN_SIDES``."""
    shape = Shape()
    sides = SIGN_SIDES[kind]
    shape.tube("metal", (0.0, 0.0, 0.0), (0.0, 0.0, 2.75), (0.03, 0.03), 8)
    first = -0.5 * math.pi + math.pi / sides if sides % 2 == 0 else -0.5 * math.pi
    radius = 0.38 if sides > 4 else 0.42
    turns = [first + math.tau * k / sides for k in range(sides)]
    face: list[Point] = [(0.05, radius * math.cos(turn), 2.4 + radius * math.sin(turn)) for turn in turns]
    back: list[Point] = [(0.04, y, z) for _, y, z in face]
    shape.polygon("retro_sign", *face)
    shape.polygon("metal", *reversed(back))
    shape.bands("metal", [back, face])
    return shape.mesh()


def person(*, stride_m: float = 0.3) -> Mesh:
    """Mesh of a walking person, 1.75 m tall, facing +x."""
    shape = Shape()
    for side, step in ((-0.1, stride_m), (0.1, -stride_m)):
        shape.tube("clothing", (0.0, side, 0.88), (step, side, 0.04), (0.09, 0.06), 7)
        shape.box("rubber", (step - 0.10, side - 0.05, 0.0), (step + 0.17, side + 0.05, 0.08))
        shape.tube("clothing", (0.0, 2.2 * side, 1.42), (-0.8 * step, 2.6 * side, 0.85), (0.06, 0.04), 6)
    shape.tube("clothing", (0.0, 0.0, 0.80), (0.0, 0.0, 1.45), (0.16, 0.21), 9)
    shape.tube("skin", (0.0, 0.0, 1.45), (0.0, 0.0, 1.54), (0.07, 0.07), 7)
    rings: list[list[Point]] = []
    for height, radius in ((1.52, 0.05), (1.56, 0.09), (1.65, 0.11), (1.72, 0.08), (1.75, 0.02)):
        rings.append([(radius * math.cos(math.tau * k / 9), radius * math.sin(math.tau * k / 9), height) for k in range(9)])
    shape.bands("skin", rings)
    shape.polygon("skin", *rings[-1])
    return shape.mesh()
