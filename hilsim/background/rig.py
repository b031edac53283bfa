"""The rig that shows a map: what to run next, as a file to start from."""

_PLAIN = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. "


def rig_text(name: str, profile: str, *, rate_rpm: int | None, captures: tuple[str, ...]) -> str:
    """A rig in TOML.

    Args:
        name: Of the map's files, without a suffix.
        profile: Of the sensor.
        rate_rpm: Its rotation rate; None for a sensor that does not turn.
        captures: What the map was made from.
    """
    turning = f"rotation_rate_rpm = {rate_rpm}\n" if rate_rpm else ""
    told = ", ".join("".join(letter if letter in _PLAIN else "?" for letter in capture) for capture in captures)
    return f"""\
# What the sensor saw of a real place, and objects put into it. The map was made by hilsim background from: {told}
name = {_quoted(name)}

[[scene.background]]
file = {_quoted(f"{name}.npz")}

[carrier]
kind = "background"                  # stands where the map was captured

[[sensor]]
name = "lidar"
profile = "{profile}"
{turning}
[sensor.network]
source = "127.0.1.201"
destination = "127.0.0.1"
source_ports = "any"

# An object in the world that the map's pose belongs to; without a pose: metres forward, left and up of the sensor.
# [[scene.box]]
# name = "car"
# position_m = [12.0, 2.0, 0.75]
# size_m = [4.2, 1.8, 1.5]
"""


def _quoted(text: str) -> str:
    """A TOML basic string."""
    escaped = "".join(f"\\u{ord(letter):04x}" if letter in '"\\' or ord(letter) < 32 or ord(letter) == 127 else letter for letter in text)
    return f'"{escaped}"'
