"""A starting rig that shows a map."""

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. "


def rig_text(name: str, profile: str, *, rate_rpm: int | None, has_pose: bool, captures: tuple[str, ...]) -> str:
    """Rig in TOML.

    Args:
        name: Name of the map's files, without a suffix.
        profile: Profile of the sensor: a shipped one's name, or a path from the rig's directory.
        rate_rpm: Rotation rate of the sensor; None for one that does not rotate.
        has_pose: Whether the map contains the pose of its sensor.
        captures: Captures of the map.
    """
    place = "" if has_pose else "height_m = 0.0                       # of the sensor above the ground: not known; and pitch_deg\n"
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


def _quoted(text: str) -> str:
    """Quote a text as a TOML basic string."""
    escaped = "".join(f"\\u{ord(letter):04x}" if letter in '"\\' or ord(letter) < 32 or ord(letter) == 127 else letter for letter in text)
    return f'"{escaped}"'
