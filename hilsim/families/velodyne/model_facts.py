"""Completion of profiles from the table of Velodyne models: a profile contains only what the table lacks."""

from typing import Any

from hilsim.families.velodyne.protocol.models import BY_NAME, Model

CHANNEL_FACTS = frozenset({"elevation_deg", "azimuth_offset_deg", "vertical_offset_mm"})
"""Keys of a profile's channels that the table of models provides."""
MODEL_FACTS = frozenset({"product", "channels", "firing_ns", "lasers_per_firing", "sequence_ns", "range_unit_mm"})
"""Keys of a profile that the table of models provides."""


def completed(table: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Complete a profile's table from the table of models; returns it with an error message for each contradicting value.

    The table of an unknown model is returned unchanged.
    """
    model = BY_NAME.get(str(table.get("model")))
    if model is None:
        return table, []
    facts = {
        "product": int(model.product),
        "firing_ns": model.geometry.firing_ns,
        "lasers_per_firing": model.geometry.lasers_per_firing,
        "sequence_ns": model.geometry.sequence_ns,
        "range_unit_mm": model.geometry.distance_unit_mm,
    }
    channels, faults = _channels(table.get("channels"), model)
    return table | facts | {"channels": channels}, _contradictions("", table, facts, model) + faults


def _contradictions(path: str, table: dict[str, Any], facts: dict[str, Any], model: Model) -> list[str]:
    return [
        f"{path}{key} must be {fact} for a {model.name}, by the table of models, got {table[key]!r}"
        for key, fact in facts.items()
        if key in table and table[key] != fact
    ]


def _channels(channels: Any, model: Model) -> tuple[Any, list[str]]:
    """Channels of a profile, each completed from its laser in the table; unchanged where they are not a list of tables, an error reported elsewhere."""
    facts = _channel_facts(model)
    if channels is None:
        return facts, []
    if not isinstance(channels, list) or not all(isinstance(channel, dict) for channel in channels):
        return channels, []
    if len(channels) != len(facts):
        return channels, [f"channels must be {len(facts)} for a {model.name}, by the table of models, got {len(channels)}"]
    faults = [
        fault
        for laser, (channel, known) in enumerate(zip(channels, facts, strict=True))
        for fault in _contradictions(f"channels[{laser}].", channel, known, model)
    ]
    return [channel | known for channel, known in zip(channels, facts, strict=True)], faults


def _channel_facts(model: Model) -> list[dict[str, float]]:
    geometry = model.geometry
    heights_mm = geometry.vertical_offset_mm or (0.0,) * model.channels
    looks = zip(geometry.elevation_deg, geometry.azimuth_offset_deg, heights_mm, strict=True)
    return [{"elevation_deg": elevation, "azimuth_offset_deg": azimuth, "vertical_offset_mm": height} for elevation, azimuth, height in looks]
