"""The demo street: nine blocks of a town, generated from a seed without recorded or downloaded data.

Traffic drives on the right. Every block has its own clockwise loop in the lane along its kerb, so cars only turn right and loops
do not touch. The platform's loop is around the middle block.

Along a road, from the kerb of one block to that of the next: parked cars, a lane each way, parked cars.
"""

from collections.abc import Iterator
from dataclasses import replace
from enum import IntEnum
from functools import cache
from typing import NamedTuple

import numpy as np

from hilsim.world.assets.street.buildings import building, office, town_house
from hilsim.world.assets.street.shapes import Dice, part, tree
from hilsim.world.assets.street.tracks import Loop, loop_track
from hilsim.world.geometry.poses import mounting
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.scene.mesh import Mesh
from hilsim.world.scene.object_specs import Vector
from hilsim.world.scene.specs import SceneSpec
from hilsim.world.scene.world import SceneObject

BLOCK_M = (54.0, 42.0)
"""Size of a block from kerb to kerb."""
PARKING_M = 2.2
ROAD_M = 2.0 * (PARKING_M + 3.6)
PAVEMENT_M = 3.0
PAVEMENT_TOP_M = 0.12
BLOCKS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
"""Column and row of each block; the platform's is the first."""
LANE_M = 4.0
"""Distance from a block's kerb to the middle of its lane."""
LANE_RADIUS_M = 10.0
_PARK = 8
_SIGNS = ("stop", "give_way", "limit", "parking")
_MODELS = ("saloon", "hatchback", "van")
_PAINTS = ("paint_white", "paint_silver", "paint_black", "paint_red", "paint_blue")
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


def _block_centre(number: int) -> tuple[float, float]:
    """Centre of a block, x and y."""
    column, row = BLOCKS[number]
    return column * (BLOCK_M[0] + ROAD_M), row * (BLOCK_M[1] + ROAD_M)


class _Kerb(NamedTuple):
    """One side of a block; as a text ``BLOCK.SIDE``.

    Attributes:
        block: Number of the block.
        side: Number of the side, counter-clockwise from the south.
        length_m: Length of the side.
        depth_m: Distance from the block's centre.
        out_deg: Direction to the road.
    """

    block: int
    side: int
    length_m: float
    depth_m: float
    out_deg: float

    def __str__(self) -> str:
        return f"{self.block}.{self.side}"


def _kerbs(block: int) -> Iterator[_Kerb]:
    for side, out_deg in enumerate((-90.0, 0.0, 90.0, 180.0)):
        yield _Kerb(block, side, BLOCK_M[side % 2], 0.5 * BLOCK_M[1 - side % 2], out_deg)


def street_objects(spec: SceneSpec) -> list[SceneObject]:
    """All objects in the demo street of ``spec.generator_seed``, static ones first."""
    street = _Street(spec)
    street.add(part("ground"), StreetLabel.GROUND, "ground")
    for block in range(len(BLOCKS)):
        street.add_block(block)
    street.add_outskirts()
    street.add_parked_cars()
    street.add_traffic(spec.generator_moving_cars)
    street.add_people(spec.generator_pedestrians)
    return street.objects


def street_platform_track(spec: SceneSpec) -> PoseTrack:
    """Periodic track of the platform around the middle block: on the road surface, about 8 m/s, slower in corners; no other track crosses it."""
    return loop_track(_lane(0), 0.0, spec.origin_m)


def _lane(block: int) -> Loop:
    """Loop of the cars around a block."""
    return Loop(
        centre=_block_centre(block),
        half_x_m=0.5 * BLOCK_M[0] + LANE_M,
        half_y_m=0.5 * BLOCK_M[1] + LANE_M,
        radius_m=LANE_RADIUS_M,
        speed_mps=8.5 if block == 0 else 7.0 + 0.5 * (block % 5),
        corner_mps=5.0,
    )


def _split(dice: Dice, start: float, end: float) -> list[tuple[float, float]]:
    """Building fronts of 9 to 16 m that fill a row."""
    edges = [start]
    while end - edges[-1] > 17.0:
        edges.append(edges[-1] + dice.number(9.0, 15.0))
    return list(zip(edges, [*edges[1:], end], strict=True))


@cache
def _tree(seed: int, number: int) -> Mesh:
    return tree(Dice(seed, _Stream.TREE + number)) if number < _TREE_SHAPES else _tree(seed, number % _TREE_SHAPES)


def _drawn_car(dice: Dice) -> Mesh:
    return part(dice.choice(_MODELS), "paint", dice.choice(_PAINTS))


class _Street:
    """Objects of a street, added one after the other."""

    def __init__(self, spec: SceneSpec) -> None:
        self.objects: list[SceneObject] = []
        self._seed, self._origin_m = spec.generator_seed, spec.origin_m

    def _dice(self, stream: int) -> Dice:
        return Dice(self._seed, stream)

    def add(self, mesh: Mesh, label: StreetLabel, name: str, position: Vector = (0.0, 0.0, 0.0), yaw_deg: float = 0.0) -> None:
        """Add an object that stands still, at a position in the street."""
        x, y, z = self._origin_m
        placement = mounting((x + position[0], y + position[1], z + position[2]), (0.0, 0.0, yaw_deg))
        self.objects.append(SceneObject(mesh=mesh, placement=placement, label=int(label), name=name))

    def _add_beside(self, kerb: _Kerb, out_m: float, along_m: float, mesh: Mesh, label: StreetLabel, name: str, yaw_deg: float = 0.0) -> None:
        """Add an object ``out_m`` towards the road from a kerb and ``along_m`` to the left of its middle, turned by ``yaw_deg`` from the direction to the road."""
        turn = np.radians(kerb.out_deg)
        ahead, left = np.array([np.cos(turn), np.sin(turn)]), np.array([-np.sin(turn), np.cos(turn)])
        x, y = np.round(np.array(_block_centre(kerb.block)) + (kerb.depth_m + out_m) * ahead + along_m * left, 4)
        self.add(mesh, label, name, (float(x), float(y), PAVEMENT_TOP_M), kerb.out_deg + yaw_deg)

    def add_block(self, block: int) -> None:
        """Add a block with what is on it and along its kerbs."""
        plan = part("block", "inside", "grass" if block == _PARK else "gravel")
        vertices_m = (plan.vertices_m + np.array((*_block_centre(block), 0.0))).round(4)
        self.add(replace(plan, vertices_m=vertices_m), StreetLabel.PAVEMENT, f"block {block}")
        if block == _PARK:
            self._add_park()
        else:
            self._add_houses(block)
        self._add_furniture(block)

    def _add_houses(self, block: int) -> None:
        """Add two rows of buildings with one front each and their backs to a yard; a missing building leaves a passage."""
        dice = self._dice(_Stream.BLOCK + block)
        (cx, cy) = _block_centre(block)
        half_x, half_y = 0.5 * BLOCK_M[0] - PAVEMENT_M, 0.5 * BLOCK_M[1] - PAVEMENT_M
        modern = block % 4 == 3
        for side in ("s", "n"):
            edges = _split(dice, -half_x, half_x)
            for place, (west, east) in enumerate(edges):
                style = office(dice) if modern or dice.chance(0.2) else town_house(dice)
                depth, door = dice.number(10.5, 13.5), dice.number(0.0, 0.999)
                if len(edges) > 2 and 0 < place < len(edges) - 1 and dice.chance(0.15):
                    continue
                south, north = (-half_y, -half_y + depth) if side == "s" else (half_y - depth, half_y)
                sides = side + ("w" if place == 0 else "") + ("e" if place == len(edges) - 1 else "")
                mesh = building(style, (cx + west, cy + south), (cx + east, cy + north), sides, door)
                self.add(mesh, StreetLabel.BUILDING, f"building {block}{side}{place}")

    def _add_park(self) -> None:
        dice = self._dice(_Stream.BLOCK + _PARK)
        (cx, cy) = _block_centre(_PARK)
        for number in range(14):
            x = cx - 20.0 + 40.0 * (number % 5 + 0.5) / 5.0 + dice.number(-2.0, 2.0)
            y = cy - 13.0 + 26.0 * (number // 5 + 0.5) / 3.0 + dice.number(-2.0, 2.0)
            self.add(_tree(self._seed, number), StreetLabel.TREE, f"park tree {number}", (x, y, PAVEMENT_TOP_M))

    def _add_furniture(self, block: int) -> None:
        """Add lamp posts, trees and signs along the kerbs; traffic passes with the block on its right."""
        dice = self._dice(_Stream.BLOCK + 100 + block)
        for kerb in _kerbs(block):
            for row, along in enumerate((-0.28, 0.28)):
                self._add_beside(kerb, -0.5, along * kerb.length_m, part("lamp_post"), StreetLabel.LAMP_POST, f"lamp post {kerb}.{row}")
            for row, along in enumerate((-0.14, 0.14)):
                if dice.chance(0.55):
                    mesh, yaw_deg = _tree(self._seed, 10 * block + 2 * kerb.side + row), dice.number(0.0, 360.0)
                    self._add_beside(kerb, -0.9, along * kerb.length_m, mesh, StreetLabel.TREE, f"tree {kerb}.{row}", yaw_deg)
            # Clockwise traffic passes the south side westwards: the sign before the corner faces east.
            kind = _SIGNS[(block + kerb.side) % len(_SIGNS)]
            self._add_beside(kerb, -0.5, -0.5 * kerb.length_m + 8.0, part(f"{kind}_sign"), StreetLabel.TRAFFIC_SIGN, f"{kind} sign {kerb}", 90.0)

    def add_outskirts(self) -> None:
        """Add detached houses and trees that close every view along a road."""
        dice = self._dice(_Stream.OUTSKIRTS)
        half_x, half_y = 1.5 * BLOCK_M[0] + 2.0 * ROAD_M, 1.5 * BLOCK_M[1] + 2.0 * ROAD_M  # of the town, with the outermost roads
        number = 0
        for facing, half, reach, out in (
            ("n", half_x, half_y, (0, -1)),
            ("s", half_x, half_y, (0, 1)),
            ("e", half_y, half_x, (-1, 0)),
            ("w", half_y, half_x, (1, 0)),
        ):
            count = int(2.0 * half / _HOUSE_EVERY_M)
            for place in range(count):
                along = -half + (place + 0.5) * 2.0 * half / count + dice.number(-2.0, 2.0)
                away, wide, deep = reach + dice.number(8.0, 14.0), dice.number(4.5, 6.5), dice.number(7.0, 10.0)
                style = town_house(dice)
                x, y = zip(_outside(out, along - wide, away), _outside(out, along + wide, away + deep), strict=True)
                mesh = building(style, (min(x), min(y)), (max(x), max(y)), facing, dice.number(0.0, 0.999))
                self.add(mesh, StreetLabel.BUILDING, f"house {number}")
                if number % 2:
                    garden = _outside(out, along + 0.5 * _HOUSE_EVERY_M, away - 3.0)
                    self.add(_tree(self._seed, number), StreetLabel.TREE, f"garden tree {number}", (*garden, 0.0))
                number += 1

    def add_parked_cars(self) -> None:
        """Add parked cars at the kerbs, headed as the lane beside them, none near a corner."""
        dice = self._dice(_Stream.PARKED)
        for kerb in (kerb for block in range(len(BLOCKS)) for kerb in _kerbs(block)):
            slots = int((kerb.length_m - 22.0) / 6.5)
            for slot in range(slots):
                mesh, place = _drawn_car(dice), dice.number(-0.4, 0.4)
                if dice.chance(0.36):
                    along_m = (slot + 0.5 - 0.5 * slots) * 6.5 + place
                    self._add_beside(kerb, 0.5 * PARKING_M, along_m, mesh, StreetLabel.CAR, f"parked car {kerb}.{slot}", -90.0)

    def add_traffic(self, count: int) -> None:
        """Add cars on the blocks' loops in turn; on the platform's loop they leave room for it."""
        dice = self._dice(_Stream.TRAFFIC)
        for number in range(count):
            loop, place = number % len(BLOCKS), number // len(BLOCKS)
            sharing = len(range(loop, count, len(BLOCKS))) + (1 if loop == 0 else 0)
            share = (place + 1 + dice.number(-0.15, 0.15)) / sharing if loop == 0 else (place + dice.number(0.0, 0.3)) / sharing
            track = loop_track(_lane(loop), share, self._origin_m)
            self.objects.append(SceneObject(mesh=_drawn_car(dice), placement=track, label=int(StreetLabel.CAR), name=f"car {number}"))

    def add_people(self, count: int) -> None:
        """Add pedestrians on the pavements, in both directions, the middle block's first."""
        dice = self._dice(_Stream.PEOPLE)
        for number in range(count):
            clockwise, block = number % 2 == 0, (number // 2) % len(BLOCKS)
            inset = 1.7 if clockwise else 2.4
            half_x_m, half_y_m = 0.5 * BLOCK_M[0] - inset, 0.5 * BLOCK_M[1] - inset
            loop = Loop(_block_centre(block), half_x_m, half_y_m, radius_m=3.5, clockwise=clockwise, speed_mps=1.3, corner_mps=1.3)
            track = loop_track(loop, dice.number(0.0, 1.0), self._origin_m, PAVEMENT_TOP_M)
            mesh = part(f"person_{number % 2}")
            self.objects.append(SceneObject(mesh=mesh, placement=track, label=int(StreetLabel.PERSON), name=f"person {number}"))


def _outside(out: tuple[int, int], along_m: float, away_m: float) -> tuple[float, float]:
    """Place ``away_m`` from the town's middle in the direction ``out``, an axis, and ``along_m`` across it."""
    return (along_m, out[1] * away_m) if out[1] else (out[0] * away_m, along_m)
