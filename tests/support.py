"""Rigs and scenes that several tests share."""

from pathlib import Path

ROOM = """
name = "room"
seed = 5

# A room of 20 m x 12 m x 6 m around the sensor, a pillar, and a ball that passes.
[[scene.box]]
position_m = [10.5, 0.0, 2.0]
size_m = [1.0, 14.0, 6.0]
material = "plaster"
[[scene.box]]
position_m = [-10.5, 0.0, 2.0]
size_m = [1.0, 14.0, 6.0]
material = "brick"
[[scene.box]]
position_m = [0.0, 6.5, 2.0]
size_m = [22.0, 1.0, 6.0]
material = "concrete"
[[scene.box]]
position_m = [0.0, -6.5, 2.0]
size_m = [22.0, 1.0, 6.0]
material = "wood"
[[scene.box]]
position_m = [0.0, 0.0, -1.5]
size_m = [22.0, 14.0, 1.0]
material = "asphalt"
[[scene.cylinder]]
position_m = [4.0, 3.0, 0.0]
radius_m = 0.3
height_m = 4.0
material = "metal"
[[scene.sphere]]
radius_m = 0.5
material = "retro_sign"
[scene.sphere.motion]
loop = true
waypoints = [
    { time_s = 0.0, position_m = [-6.0, -3.0, 0.0] },
    { time_s = 1.0, position_m = [6.0, -3.0, 0.0] },
    { time_s = 2.0, position_m = [-6.0, -3.0, 0.0] },
]

[[sensor]]
name = "lidar"
sub_rays = 1
unit = "ideal"
gps = { latitude_deg = 36.8, longitude_deg = -2.4 }
"""


def udp_socket_line(port: int) -> list[str] | None:
    """Columns of ``/proc/net/udp`` of the socket bound to a port; the last one is the number of datagrams that the kernel dropped there."""
    lines = Path("/proc/net/udp").read_text(encoding="ascii").splitlines()
    return next((line.split() for line in lines if f":{port:04X} " in line.split(" 00000000:0000")[0] + " "), None)


def write_rig(directory: Path, text: str = ROOM, name: str = "rig.toml", **replacements: str) -> Path:
    """A rig file in ``directory``; each replacement is ``old -> new`` text."""
    for old, new in replacements.items():
        text = text.replace(old, new)
    path = directory / name
    path.write_text(text)
    return path
