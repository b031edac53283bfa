"""Random edits of a scene, and a rig whose scene is seen by a sensor, before a captured background, and in a replayed recording."""

import numpy as np

import hilsim
from hilsim.editing.catalogue import CATALOGUE
from hilsim.read.background.files.archive import write_archive
from hilsim.world.geometry.poses import extrinsics
from hilsim.world.scene.background import VALID, AzimuthGrid, BackgroundMap
from tests.support import write_rig

RIG = """# A rig with everything that shows objects.
name = "all three"
seed = 11

[[scene.plane]]
name = "floor"          # of asphalt
size_m = [40.0, 40.0]
material = "asphalt"

[[scene.box]]
name = "crate"
size_m = [1.0, 1.0, 1.0]
position_m = [4.0, 1.0, 0.5]
material = "wood"       # unpainted

[[scene.background]]
file = "map.npz"
sensor = "map"

# no name
[[scene.box]]
size_m = [0.3, 10.0, 3.0]
position_m = [9.0, 0.0, 1.5]

[[scene.capsule]]
name = "walker"
radius_m = 0.25
length_m = 1.2
position_m = [0.0, 0.0, 0.85]
material = "clothing"
[scene.capsule.motion]
waypoints = [{ time_s = 0.0, position_m = [3.0, -2.0, 0.0] }, { time_s = 0.1, position_m = [3.2, -1.5, 0.0] }]   # fast

[[scene.cylinder]]
name = "bin"
radius_m = 0.3
height_m = 1.0
position_m = [3.0, 3.0, 0.0]
stand_on_ground = true

[platform]
position_m = [0.0, 0.0, 1.5]

[[sensor]]
name = "plain"
unit = "ideal"
sub_rays = 1
override = { signal = {} }
[sensor.network]
source = "127.0.1.201"
data_port = 23681
position_port = 23691
[[sensor]]
name = "map"
unit = "ideal"
sub_rays = 1
override = { signal = {} }
[sensor.network]
source = "127.0.1.202"
data_port = 23682
position_port = 23692

[[replay]]
name = "recorded"
file = "recorded.pcap"
overlay = true
retime = "none"
# the end
"""
PLAIN_PORT, MAP_PORT = 23681, 23682
PLAIN_POSITION_PORT, MAP_POSITION_PORT = 23691, 23692


def write_all_three(directory):
    """The rig, its map and its recording."""
    write_archive(map_at((0.0, 0.0, 1.5)), directory / "map.npz")
    hilsim.record(write_rig(directory, name="recording.toml"), directory / "recorded.pcap", duration_s=0.3)
    return write_rig(directory, RIG)


def map_at(position_m):
    """Map of a VLP-16 at a place, whose every ray meets something after 6 m."""
    grid = AzimuthGrid(columns=360, elevation_deg=tuple(np.arange(-15.0, 16.0, 2.0)))
    cells = (grid.rows, grid.columns)
    return BackgroundMap(
        grid=grid,
        model="VLP-16",
        distance_mm=np.full(cells, 6000, np.uint32),
        intensity=np.full(cells, 300, np.uint16),
        flags=np.full(cells, VALID, np.uint8),
        hit_count=np.full(cells, 10, np.uint32),
        confidence=np.ones(cells, np.float32),
        pose=extrinsics(position_m, (0.0, 0.0, 0.0)),
    )


def random_place(rng):
    angle, distance_m = rng.uniform(-3.14, 3.14), rng.uniform(1.5, 7.0)
    return (round(distance_m * float(np.cos(angle)), 3), round(distance_m * float(np.sin(angle)), 3), rng.choice([0.0, 0.0, 0.4]))


def random_edit(rng, session):
    """One edit that can be made."""
    names = list(session.objects())
    names = [name for name in names if name != "floor"]
    name = rng.choice(names) if names else ""
    snap = rng.choice([hilsim.Snap(), hilsim.Snap(on_ground=True), hilsim.Snap(grid_m=0.5, turn_deg=15.0)])
    kind = rng.choice(["add", "library", "move", "move", "turn", "copy", "delete", "travel", "rename", "undo", "undo", "redo"])
    match kind:
        case "library":
            session.add_from_library(rng.choice(list(CATALOGUE)), position_m=random_place(rng), heading_deg=rng.uniform(-180.0, 180.0), snap=snap)
        case "move" if name:
            session.move(name, random_place(rng), (0.0, 0.0, rng.uniform(-180.0, 180.0)) if rng.random() < 0.5 else None, snap=snap)
        case "turn" if name:
            session.turn(name, (rng.choice([0.0, 5.0]), 0.0, rng.uniform(-180.0, 180.0)), snap=snap)
        case "copy" if name:
            session.copy(name, random_place(rng), snap=snap)
        case "delete" if len(names) > 2:
            session.delete(name)
        case "travel" if name:
            points = [random_place(rng) for _ in range(rng.randint(1, 3))]
            session.travel(name, points, rng.uniform(5.0, 60.0), loop=rng.random() < 0.3, smooth=rng.random() < 0.3, snap=snap)
        case "rename" if name:
            session.rename(name, f"renamed {rng.random()}")
        case "undo":
            session.undo(rng.randint(1, 3))
        case "redo":
            session.redo(rng.randint(1, 3))
        case _:
            table = rng.choice([{"size_m": [0.5, 1.0, 1.5]}, {"radius_m": 0.6, "tolerance_m": 0.02}])
            shape = "box" if "size_m" in table else "sphere"
            session.add(
                shape, position_m=random_place(rng), snap=snap, material=rng.choice(["brick", "glass", "metal"]), label=rng.randrange(200), **table
            )
