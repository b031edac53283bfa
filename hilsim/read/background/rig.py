"""A starting rig that shows a map."""

from hilsim.read.analysis.ground import Ground

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. "


def rig_text(name: str, profile: str, *, rate_rpm: int | None, has_pose: bool, captures: tuple[str, ...], ground: Ground | None = None) -> str:
    """Rig in TOML.

    Args:
        name: Name of the map's files, without a suffix.
        profile: Profile of the sensor: a shipped one's name, or a path from the rig's directory.
        rate_rpm: Rotation rate of the sensor; None for one that does not rotate.
        has_pose: Whether the map contains the pose of its sensor.
        captures: Captures of the map.
        ground: Ground in the map, which becomes z = 0 if the map does not contain the pose; None where none was found.
    """
    place = "" if has_pose else _place(ground)
    turning = f"rotation_rate_rpm = {rate_rpm}\n" if rate_rpm else ""
    names = ", ".join("".join(letter if letter in _PLAIN else "?" for letter in capture) for capture in captures)
    return f"""\
# What the sensor saw of a real place, and objects put into it. The map was made by hilsim background from: {names}
name = {_quoted(name)}

[[scene.background]]
file = {_quoted(f"{name}.npz")}
{place}
[platform]
kind = "background"                  # at the place where the map was captured

[[sensor]]
name = "lidar"
profile = {_quoted(profile)}
unit = "ideal"          # the errors of the unit that was captured are in the map
{turning}
[sensor.network]
source = "127.0.1.201"
destination = "127.0.0.1"
source_ports = "any"

# An object, metres in the world in which the map was captured; with no more known than a height: right of the sensor, ahead of it, and up from the ground.
# [[scene.box]]
# name = "car"
# position_m = [2.0, 12.0, 0.75]
# size_m = [1.8, 4.2, 1.5]
"""


def _place(ground: Ground | None) -> str:
    """Keys of the sensor's pose: above the ground as it was found, else a height to be given."""
    if ground is None:
        return "height_m = 0.0                       # of the sensor above the ground: not known; and pitch_deg\n"
    return (
        f"position_m = [0.0, 0.0, {ground.height_m:.3f}]      # the sensor above the ground that the map shows, which is z = 0\n"
        f"rotation_deg = [{ground.roll_deg + 0.0:.2f}, {ground.pitch_deg + 0.0:.2f}, 90.0]    # its tilt; azimuth 0 looks along y\n"
    )


def _quoted(text: str) -> str:
    """Quote a text as a TOML basic string."""
    escaped = "".join(f"\\u{ord(letter):04x}" if letter in '"\\' or ord(letter) < 32 or ord(letter) == 127 else letter for letter in text)
    return f'"{escaped}"'
