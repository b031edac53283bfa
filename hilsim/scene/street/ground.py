"""Plan and ground of the demo street: positions of blocks and roads, asphalt, markings, kerbs, pavements, grass."""

import math

from hilsim.scene.mesh import Mesh
from hilsim.scene.street.shapes import Point, Shape

BLOCK_M = (54.0, 42.0)
"""Size of a block from kerb to kerb."""
PARKING_M = 2.2
ROAD_M = 2.0 * (PARKING_M + 3.6)
PAVEMENT_M = 3.0
PAVEMENT_TOP_M = 0.12
KERB_RADIUS_M = 6.0
BLOCKS = ((0, 0), (1, 0), (0, 1), (-1, 0), (0, -1), (1, 1), (-1, 1), (-1, -1), (1, -1))
"""Column and row of each block; the platform's is the first."""
_GRASS_M = 110.0
_MARKING_M = 0.004
_DASH_M = (3.0, 0.12)
_DASH_EVERY_M = 6.0
_STRIPE_M = (2.5, 0.45)
_CORNER_STEPS = 6


def block_centre(number: int) -> tuple[float, float]:
    """Centre of a block, x and y."""
    column, row = BLOCKS[number]
    return column * (BLOCK_M[0] + ROAD_M), row * (BLOCK_M[1] + ROAD_M)


def grid_half_m() -> tuple[float, float]:
    """Half of the town's extent, with the outermost roads."""
    return 1.5 * BLOCK_M[0] + 2.0 * ROAD_M, 1.5 * BLOCK_M[1] + 2.0 * ROAD_M


def ground() -> Mesh:
    """Mesh of the asphalt under the town, its markings, and the grass around."""
    shape = Shape()
    x, y = grid_half_m()
    _rectangle(shape, "asphalt", (-x, -y), (x, y), 0.0)
    far_x, far_y = x + _GRASS_M, y + _GRASS_M
    _rectangle(shape, "grass", (-far_x, -far_y), (far_x, -y), 0.0)
    _rectangle(shape, "grass", (-far_x, y), (far_x, far_y), 0.0)
    _rectangle(shape, "grass", (-far_x, -y), (-x, y), 0.0)
    _rectangle(shape, "grass", (x, -y), (far_x, y), 0.0)
    for number in range(len(BLOCKS)):
        _centre_lines(shape, number)
    for side_x in (-1.0, 1.0):
        for side_y in (-1.0, 1.0):
            _crossing(shape, side_x, side_y)
    return shape.mesh()


def pavement(centre: tuple[float, float], inside: str) -> Mesh:
    """Mesh of a block's kerb, pavement and interior."""
    shape = Shape()
    half_x, half_y = 0.5 * BLOCK_M[0], 0.5 * BLOCK_M[1]
    edge = _rounded(centre, half_x, half_y, KERB_RADIUS_M)
    inner = _rounded(centre, half_x - PAVEMENT_M, half_y - PAVEMENT_M, KERB_RADIUS_M - PAVEMENT_M)
    foot: list[Point] = [(x, y, 0.0) for x, y in edge]
    kerb: list[Point] = [(x, y, PAVEMENT_TOP_M) for x, y in edge]
    walk: list[Point] = [(x, y, PAVEMENT_TOP_M) for x, y in inner]
    shape.bands("concrete", [foot, kerb, walk])
    shape.polygon(inside, *walk)
    return shape.mesh()


def _rectangle(shape: Shape, material: str, low: tuple[float, float], high: tuple[float, float], z: float) -> None:
    (x0, y0), (x1, y1) = low, high
    shape.polygon(material, (x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z))


def _rounded(centre: tuple[float, float], half_x: float, half_y: float, radius: float) -> list[tuple[float, float]]:
    """Rectangle with round corners, counter-clockwise."""
    points = []
    for quarter, (sx, sy) in enumerate(((1.0, 1.0), (-1.0, 1.0), (-1.0, -1.0), (1.0, -1.0))):
        for step in range(_CORNER_STEPS + 1):
            turn = 0.5 * math.pi * (quarter + step / _CORNER_STEPS)
            x = sx * (half_x - radius) + radius * math.cos(turn)
            y = sy * (half_y - radius) + radius * math.sin(turn)
            points.append((centre[0] + x, centre[1] + y))
    return points


def _centre_lines(shape: Shape, number: int) -> None:
    """Add dashes on the roads north and east of a block; for outermost blocks also south and west."""
    (cx, cy), (column, row) = block_centre(number), BLOCKS[number]
    half_x, half_y = 0.5 * BLOCK_M[0], 0.5 * BLOCK_M[1]
    for side in (1.0, -1.0) if row == -1 else (1.0,):
        count = int((BLOCK_M[0] - 8.0) / _DASH_EVERY_M)
        for dash in range(count):
            _marking(shape, (cx + (dash + 0.5 - 0.5 * count) * _DASH_EVERY_M, cy + side * (half_y + 0.5 * ROAD_M)), _DASH_M)
    for side in (1.0, -1.0) if column == -1 else (1.0,):
        count = int((BLOCK_M[1] - 8.0) / _DASH_EVERY_M)
        for dash in range(count):
            _marking(shape, (cx + side * (half_x + 0.5 * ROAD_M), cy + (dash + 0.5 - 0.5 * count) * _DASH_EVERY_M), (_DASH_M[1], _DASH_M[0]))


def _crossing(shape: Shape, side_x: float, side_y: float) -> None:
    """Add zebra crossings over the two roads of the middle block that meet at a corner."""
    half_x, half_y = 0.5 * BLOCK_M[0], 0.5 * BLOCK_M[1]
    count = int(ROAD_M / (2.0 * _STRIPE_M[1]))
    for stripe in range(count):
        across = (stripe + 0.5) * ROAD_M / count
        _marking(shape, (side_x * (half_x - 5.0), side_y * (half_y + across)), _STRIPE_M)
        _marking(shape, (side_x * (half_x + across), side_y * (half_y - 5.0)), (_STRIPE_M[1], _STRIPE_M[0]))


def _marking(shape: Shape, centre: tuple[float, float], size: tuple[float, float]) -> None:
    (x, y), (length, width) = centre, size
    _rectangle(shape, "road_marking", (x - 0.5 * length, y - 0.5 * width), (x + 0.5 * length, y + 0.5 * width), _MARKING_M)
