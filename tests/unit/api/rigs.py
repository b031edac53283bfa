"""Rigs for tests of the Python interface."""

import hilsim
from tests.support import ROOM, write_rig

SWEPT = """
[[sensor]]
name = "swept"
profile = "hr80w-like"
{keys}
[sensor.network]
source = "127.0.2.201"
"""
OPENNESS = """
[[scene.box]]
position_m = [5.0, -3.0, 0.0]
size_m = [0.02, 4.0, 3.0]
material = "paling"
label = 7
[[scene.box]]
position_m = [1.0, 4.0, 0.0]
size_m = [3.0, 0.02, 3.0]
material = "chain_link"
label = 9
"""


def room(directory, *, mode="strongest", more="", keys="sub_rays = 7"):
    """A room with a lidar, in which many beams are split, and given tables."""
    text = (
        ROOM.replace("sub_rays = 1\n", "")
        .replace('name = "lidar"', f'name = "lidar"\n{keys}\nreturn_mode = "{mode}"')
        .replace("[[sensor]]", f"{OPENNESS}\n[[sensor]]", 1)
    )
    return hilsim.load_rig(write_rig(directory, text + more))


def swept_room(directory, keys=""):
    """The same room with a Cepton-style sensor alone."""
    text = (ROOM + SWEPT.format(keys=keys)).replace(ROOM[ROOM.index("[[sensor]]") :], OPENNESS)
    return hilsim.load_rig(write_rig(directory, text))
