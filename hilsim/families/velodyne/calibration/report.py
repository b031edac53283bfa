"""A calibration as a table, as the file of a unit, and as JSON."""

from typing import Any

from hilsim.families.velodyne.calibration.calibrate import Calibration
from hilsim.families.velodyne.calibration.figures import Figure


def render_lines(calibration: Calibration) -> list[tuple[str, bool]]:
    """Lines of a table for people, each with whether its figure was learned."""
    width = max(len(figure.name) for figure in calibration.figures)
    lines = [(f"{recording.name}: {described(calibration, number)}", True) for number, recording in enumerate(calibration.recordings)]
    lines += [(f"{figure.name:<{width}}  {sentence(figure)}", figure.is_learned) for figure in calibration.figures]
    return lines


def described(calibration: Calibration, number: int) -> str:
    """Contents of a recording."""
    recording = calibration.recordings[number]
    cut = "" if recording.is_whole else ", the rest is not used"
    return f"{recording.model.name}, {recording.mode.words}, {len(recording.packets):,} packets in {recording.duration_s:.2f} s{cut}"


def sentence(figure: Figure) -> str:
    """A figure with its samples, or the reason why it is not known."""
    samples = f" ({figure.samples:,} samples)" if figure.samples else ""
    if not figure.is_learned:
        return f"not learned: {figure.reason}{samples}"
    return f"{figure.text}{samples}" + (f"; {figure.note}" if figure.note else "")


def unit_toml(calibration: Calibration, version: str) -> str:
    """File of the unit, which a rig's ``[[sensor]]`` names with ``unit``; every figure is a comment too."""
    learned = calibration.learned
    lines = [f"# A {calibration.model}, as hilsim {version} has learned it with `hilsim calibrate`. What is not here is drawn from the rig's seed."]
    lines += [f"# {recording.name}: {described(calibration, number)}" for number, recording in enumerate(calibration.recordings)]
    lines += ["#", *(f"# {figure.name}: {sentence(figure)}" for figure in learned.figures), ""]
    lines += [f"{key} = {_value(value)}" for key, value in learned.keys.items()]
    if any(learned.lasers):
        lines += ["", "# The lasers in firing order.", "laser = [", *(f"    {_value(laser)}," for laser in learned.lasers), "]"]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(part)}" for key, part in value.items()) + " }" if value else "{}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)


def to_json(calibration: Calibration) -> dict[str, Any]:
    """Everything for programs: the captures, the keys of the unit's file, and the figures."""
    learned = calibration.learned
    return {
        "model": calibration.model,
        "captures": [
            {"name": recording.name, "packets": len(recording.packets), "duration_s": recording.duration_s, "is_whole": recording.is_whole}
            for recording in calibration.recordings
        ],
        "unit": learned.keys | {"laser": learned.lasers},
        "figures": [
            {
                "name": figure.name,
                "learned": figure.is_learned,
                "value": figure.text,
                "samples": figure.samples,
                "reason": figure.reason,
                "note": figure.note,
            }
            for figure in learned.figures
        ],
    }
