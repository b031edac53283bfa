"""The demo street: nine blocks of a town, generated from a seed without recorded or downloaded data.

Traffic drives on the right. Every block has its own clockwise loop in the lane along its kerb, so cars only turn right and loops
do not touch. The platform's loop is around the middle block.

Along a road, from the kerb of one block to that of the next: parked cars, a lane each way, parked cars.
"""

from collections.abc import Iterator
from enum import IntEnum
from functools import cache

import numpy as np

from hilsim.geometry.poses import mounting
from hilsim.geometry.tracks import PoseTrack
from hilsim.scene.mesh import Mesh
from hilsim.scene.object_specs import Vector
from hilsim.scene.specs import SceneSpec
from hilsim.scene.street.buildings import building, office, town_house
from hilsim.scene.street.cars import MODELS, PAINTS, car
from hilsim.scene.street.furniture import SIGN_SIDES, lamp_post, person, traffic_sign, tree
from hilsim.scene.street.ground import BLOCK_M, BLOCKS, PARKING_M, PAVEMENT_M, PAVEMENT_TOP_M, block_centre, grid_half_m, ground, pavement
from hilsim.scene.street.shapes import Dice
from hilsim.scene.street.tracks import Loop, loop_track
from hilsim.scene.world import SceneObject

LANE_M = 4.0
"""Distance from a block's kerb to the middle of its lane."""
LANE_RADIUS_M = 10.0
_PARK = 8
_TREE_SHAPES = 8
"""Number of different trees: generating each anew would take most of the street's time."""
_HOUSE_EVERY_M = 21.0


class StreetLabel(IntEnum):
    """Classes in the ground truth of the demo street."""

    GROUND = 1
    PAVEMENT = 2
    BUILDING = 3
    TREE = 4
    LAMP_POST = 5
    TRAFFIC_SIGN = 6
    CAR = 7
    PERSON = 8


class _Stream(IntEnum):
    """Random streams by kind of object; the object's number is added."""

    BLOCK = 1000
    OUTSKIRTS = 2000
    TREE = 3000
    PARKED = 4000
    TRAFFIC = 5000
    PEOPLE = 6000


def street_objects(spec: SceneSpec) -> list[SceneObject]:
    """All objects in the demo street of ``spec.generator_seed``, static ones first."""
    seed, origin = spec.generator_seed, spec.origin_m
    objects = [_standing(ground(), StreetLabel.GROUND, "ground", origin)]
    for number in range(len(BLOCKS)):
        objects.extend(_block(seed, number, origin))
    objects.extend(_outskirts(seed, origin))
    cars = {(model, paint): car(MODELS[model], paint) for model in range(len(MODELS)) for paint in PAINTS}
    objects.extend(_parked_cars(seed, origin, cars))
    objects.extend(_traffic(seed, spec.generator_moving_cars, origin, cars))
    objects.extend(_people(seed, spec.generator_pedestrians, origin))
    return objects


def street_platform_track(spec: SceneSpec) -> PoseTrack:
    """Periodic track of the platform around the middle block: on the road surface, about 8 m/s, slower in corners; no other track crosses it."""
    return loop_track(_lane(0), 0.0, spec.origin_m)


def _lane(number: int) -> Loop:
    """Loop of the cars around a block."""
    half_x, half_y = 0.5 * BLOCK_M[0] + LANE_M, 0.5 * BLOCK_M[1] + LANE_M
    return Loop(
        centre=block_centre(number),
        half_x_m=half_x,
        half_y_m=half_y,
        radius_m=LANE_RADIUS_M,
        clockwise=True,
        speed_mps=8.5 if number == 0 else 7.0 + 0.5 * (number % 5),
        corner_mps=5.0,
    )


def _standing(mesh: Mesh, label: StreetLabel, name: str, origin: Vector, position: Vector = (0.0, 0.0, 0.0), yaw_deg: float = 0.0) -> SceneObject:
    place = (origin[0] + position[0], origin[1] + position[1], origin[2] + position[2])
    return SceneObject(mesh=mesh, placement=mounting(place, (0.0, 0.0, yaw_deg)), label=int(label), name=name)


def _block(seed: int, number: int, origin: Vector) -> Iterator[SceneObject]:
    centre = block_centre(number)
    yield _standing(pavement(centre, inside="grass" if number == _PARK else "gravel"), StreetLabel.PAVEMENT, f"block {number}", origin)
    if number == _PARK:
        yield from _park(seed, centre, origin)
    else:
        yield from _houses(seed, number, origin)
    yield from _furniture(seed, number, origin)


def _houses(seed: int, number: int, origin: Vector) -> Iterator[SceneObject]:
    """Two rows of buildings with their backs to a yard; a missing building leaves a passage."""
    dice = Dice(seed, _Stream.BLOCK + number)
    (cx, cy) = block_centre(number)
    half_x, half_y = 0.5 * BLOCK_M[0] - PAVEMENT_M, 0.5 * BLOCK_M[1] - PAVEMENT_M
    modern = number % 4 == 3
    for side in ("s", "n"):
        edges = _split(dice, -half_x, half_x)
        for place, (west, east) in enumerate(edges):
            style = office(dice) if modern or dice.chance(0.2) else town_house(dice)
            depth, setback, door = dice.number(10.5, 13.5), dice.number(0.0, 0.5), dice.number(0.0, 0.999)
            if len(edges) > 2 and 0 < place < len(edges) - 1 and dice.chance(0.15):
                continue
            south, north = (-half_y + setback, -half_y + depth) if side == "s" else (half_y - depth, half_y - setback)
            sides = side + ("w" if place == 0 else "") + ("e" if place == len(edges) - 1 else "")
            mesh = building(style, (cx + west, cy + south), (cx + east, cy + north), sides, door)
            yield _standing(mesh, StreetLabel.BUILDING, f"building {number}{side}{place}", origin)


def _split(dice: Dice, start: float, end: float) -> list[tuple[float, float]]:
    """Building fronts of 9 to 16 m that fill a row."""
    edges = [start]
    while end - edges[-1] > 17.0:
        edges.append(edges[-1] + dice.number(9.0, 15.0))
    return list(zip(edges, [*edges[1:], end], strict=True))


@cache
def _tree(seed: int, number: int) -> Mesh:
    return tree(Dice(seed, _Stream.TREE + number)) if number < _TREE_SHAPES else _tree(seed, number % _TREE_SHAPES)


def _park(seed: int, centre: tuple[float, float], origin: Vector) -> Iterator[SceneObject]:
    dice = Dice(seed, _Stream.BLOCK + _PARK)
    for number in range(14):
        x = centre[0] - 20.0 + 40.0 * (number % 5 + 0.5) / 5.0 + dice.number(-2.0, 2.0)
        y = centre[1] - 13.0 + 26.0 * (number // 5 + 0.5) / 3.0 + dice.number(-2.0, 2.0)
        yield _standing(_tree(seed, number), StreetLabel.TREE, f"park tree {number}", origin, (x, y, PAVEMENT_TOP_M))


def _furniture(seed: int, number: int, origin: Vector) -> Iterator[SceneObject]:
    """Lamp posts, trees and signs along the kerbs; traffic passes with the block on its right."""
    dice = Dice(seed, _Stream.BLOCK + 100 + number)
    lamp = lamp_post()
    for side, (length, out_deg) in enumerate(((BLOCK_M[0], -90.0), (BLOCK_M[1], 0.0), (BLOCK_M[0], 90.0), (BLOCK_M[1], 180.0))):
        depth = (0.5 * BLOCK_M[1], 0.5 * BLOCK_M[0])[side % 2]
        for row, along in enumerate((-0.28, 0.28)):
            yield _beside(number, out_deg, depth - 0.5, along * length, 0.0, lamp, StreetLabel.LAMP_POST, f"lamp post {number}.{side}.{row}", origin)
        for row, along in enumerate((-0.14, 0.14)):
            if dice.chance(0.55):
                mesh = _tree(seed, 10 * number + 2 * side + row)
                yield _beside(
                    number,
                    out_deg,
                    depth - 0.9,
                    along * length,
                    dice.number(0.0, 360.0),
                    mesh,
                    StreetLabel.TREE,
                    f"tree {number}.{side}.{row}",
                    origin,
                )
        # Clockwise traffic passes the south side westwards: the sign before the corner faces east.
        kind = ("stop", "give_way", "limit", "parking")[(number + side) % len(SIGN_SIDES)]
        yield _beside(
            number,
            out_deg,
            depth - 0.5,
            -0.5 * length + 8.0,
            90.0,
            traffic_sign(kind),
            StreetLabel.TRAFFIC_SIGN,
            f"{kind} sign {number}.{side}",
            origin,
        )


def _beside(
    number: int,
    out_deg: float,
    depth_m: float,
    along_m: float,
    yaw_deg: float,
    mesh: Mesh,
    label: StreetLabel,
    name: str,
    origin: Vector,
    height_m: float = PAVEMENT_TOP_M,
) -> SceneObject:
    """Object at a block's kerb: ``out_deg`` is the direction to the road; ``along_m`` is measured to the left of it, ``yaw_deg`` from it."""
    turn = np.radians(out_deg)
    ahead, left = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
    x, y = np.round(np.array(block_centre(number)) + depth_m * ahead + along_m * left, 4)
    return _standing(mesh, label, name, origin, (float(x), float(y), height_m), out_deg + yaw_deg)


def _outskirts(seed: int, origin: Vector) -> Iterator[SceneObject]:
    """Detached houses and trees that close every view along a road."""
    dice = Dice(seed, _Stream.OUTSKIRTS)
    half_x, half_y = grid_half_m()
    number = 0
    for facing, half, reach in (("n", half_x, half_y), ("s", half_x, half_y), ("e", half_y, half_x), ("w", half_y, half_x)):
        count = int(2.0 * half / _HOUSE_EVERY_M)
        for place in range(count):
            along = -half + (place + 0.5) * 2.0 * half / count + dice.number(-2.0, 2.0)
            away, wide, deep = reach + dice.number(8.0, 14.0), dice.number(4.5, 6.5), dice.number(7.0, 10.0)
            style = town_house(dice)
            low, high = {
                "n": ((along - wide, -away - deep), (along + wide, -away)),
                "s": ((along - wide, away), (along + wide, away + deep)),
                "e": ((-away - deep, along - wide), (-away, along + wide)),
                "w": ((away, along - wide), (away + deep, along + wide)),
            }[facing]
            yield _standing(building(style, low, high, facing, dice.number(0.0, 0.999)), StreetLabel.BUILDING, f"house {number}", origin)
            if number % 2:
                garden = along + 0.5 * _HOUSE_EVERY_M
                x, y = {"n": (garden, 3.0 - away), "s": (garden, away - 3.0), "e": (3.0 - away, garden), "w": (away - 3.0, garden)}[facing]
                yield _standing(_tree(seed, number), StreetLabel.TREE, f"garden tree {number}", origin, (x, y, 0.0))
            number += 1


def _parked_cars(seed: int, origin: Vector, cars: dict[tuple[int, str], Mesh]) -> Iterator[SceneObject]:
    """Parked cars at the kerb, headed as the lane beside them, none near a corner."""
    dice = Dice(seed, _Stream.PARKED)
    for number in range(len(BLOCKS)):
        for side, out_deg in enumerate((-90.0, 0.0, 90.0, 180.0)):
            length, depth = (BLOCK_M[0], 0.5 * BLOCK_M[1]) if side % 2 == 0 else (BLOCK_M[1], 0.5 * BLOCK_M[0])
            slots = int((length - 22.0) / 6.5)
            for slot in range(slots):
                model, paint, place, wanted = dice.whole(0, len(MODELS) - 1), dice.choice(PAINTS), dice.number(-0.4, 0.4), dice.chance(0.36)
                along = (slot + 0.5 - 0.5 * slots) * 6.5 + place
                if wanted:
                    yield _beside(
                        number,
                        out_deg,
                        depth + 0.5 * PARKING_M,
                        along,
                        -90.0,
                        cars[model, paint],
                        StreetLabel.CAR,
                        f"parked car {number}.{side}.{slot}",
                        origin,
                    )


def _traffic(seed: int, count: int, origin: Vector, cars: dict[tuple[int, str], Mesh]) -> Iterator[SceneObject]:
    """Cars on the blocks' loops in turn; on the platform's loop they leave room for it."""
    dice = Dice(seed, _Stream.TRAFFIC)
    for number in range(count):
        loop, place = number % len(BLOCKS), number // len(BLOCKS)
        sharing = len(range(loop, count, len(BLOCKS))) + (1 if loop == 0 else 0)
        share = (place + 1 + dice.number(-0.15, 0.15)) / sharing if loop == 0 else (place + dice.number(0.0, 0.3)) / sharing
        mesh = cars[dice.whole(0, len(MODELS) - 1), dice.choice(PAINTS)]
        yield SceneObject(mesh=mesh, placement=loop_track(_lane(loop), share, origin), label=int(StreetLabel.CAR), name=f"car {number}")


def _people(seed: int, count: int, origin: Vector) -> Iterator[SceneObject]:
    """Pedestrians on the pavements, in both directions, the middle block's first."""
    dice = Dice(seed, _Stream.PEOPLE)
    strides = [person(stride_m=stride) for stride in (0.22, 0.30)]
    for number in range(count):
        clockwise, block = number % 2 == 0, (number // 2) % len(BLOCKS)
        inset = 1.7 if clockwise else 2.4
        loop = Loop(
            centre=block_centre(block),
            half_x_m=0.5 * BLOCK_M[0] - inset,
            half_y_m=0.5 * BLOCK_M[1] - inset,
            radius_m=3.5,
            clockwise=clockwise,
            speed_mps=1.3,
            corner_mps=1.3,
        )
        track = loop_track(loop, dice.number(0.0, 1.0), origin, PAVEMENT_TOP_M)
        yield SceneObject(mesh=strides[number % len(strides)], placement=track, label=int(StreetLabel.PERSON), name=f"person {number}")
