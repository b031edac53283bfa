"""Random timed changes that can be made one after the other of a rig."""

from hilsim.faults.catalogue import FAULTS, Effect, Place


def random_replay_change(rng, replays, longest_s):
    """A change that can be made of one of these replays, whose captures have this length, or of all."""
    keys = rng.choice([{"pause": True}, {"pause": False}, {}, {"pause": False}])
    seek = {"seek_s": rng.uniform(0.0, longest_s)} if not keys or rng.random() < 0.5 else {}
    return {"kind": "replay", "replay": rng.choice(["", *replays]), **keys, **seek}


def random_fault(rng, sensors, kinds=None):
    """A fault with random keys that can befall a VLP-16 without a receiver that sees the whole turn, or the end of some."""
    if rng.random() < 0.25:
        return {"kind": "clear", "name": rng.choice(["*", *(row.kind for row in FAULTS)])}
    row = rng.choice(
        [row for row in FAULTS if row.kind in kinds]
        if kinds
        else [row for row in FAULTS if row.place == Place.SENSOR and row.effect not in _RARE and row.kind not in _OF_EDGES]
    )
    table = {"kind": row.kind, "on": rng.choice(["*", *sensors])}
    if rng.random() < 0.7:
        table["for_s"] = round(rng.uniform(0.05, 3.0), 3)
        table |= rng.choice([{}, {"ramp_out_s": 0.5 * table["for_s"]}])
    table |= rng.choice([{}, {"ramp_s": rng.uniform(0.01, 1.0)}, {"ramp_s": rng.uniform(0.01, 1.0), "ramp": "exponential"}])
    for key in row.keys:
        if key.name == "channels":
            table["channels"] = rng.sample(range(16), rng.randrange(1, 8))
        elif key.name == "azimuth_deg":
            table["azimuth_deg"] = [rng.uniform(0.0, 179.0), rng.uniform(180.0, 360.0)]
        elif key.name in {"share", "transmission"}:
            table[key.name] = rng.random()
    return {"kind": "fault", "fault": table}


_RARE = {Effect.SENTENCE, Effect.TURN, Effect.MASTER}
"""Effects on what a sensor may not have: a receiver, a view of the whole turn, a master of its clock."""
_OF_EDGES = {"pps_noisy", "pps_doubled"}
"""Faults that a clock which a change has set free is refused."""


def random_change(rng, names, sensors):
    """A change that can be made of a rig with these objects and sensors."""
    place = [rng.uniform(-8.0, 8.0), rng.uniform(-5.0, 5.0), rng.uniform(-0.5, 2.0)]
    kind = rng.choice(["add", "move", "move", "travel", "remove", "weather", "sensor"])
    match kind:
        case "add":
            names.append(f"object {len(names)} {rng.random()}")
            shape = {"name": names[-1], "position_m": place, "material": rng.choice(["brick", "glass", "metal"]), "label": rng.randrange(200)}
            return {
                "kind": "add",
                **rng.choice([{"box": {**shape, "size_m": [0.5, 1.0, 1.5]}}, {"sphere": {**shape, "radius_m": 0.6, "tolerance_m": 0.02}}]),
            }
        case "move" if names:
            return {"kind": "move", "name": rng.choice(names), "position_m": place, "rotation_deg": [0.0, 0.0, rng.uniform(-180.0, 180.0)]}
        case "travel" if names:
            waypoints = [{"time_s": float(second), "position_m": [rng.uniform(-8.0, 8.0), place[1], place[2]]} for second in range(0, 30, 3)]
            return {"kind": "travel", "name": rng.choice(names), "motion": {"waypoints": waypoints}}
        case "remove" if len(names) > 2:
            return {"kind": "remove", "name": names.pop(rng.randrange(len(names)))}
        case "weather":
            return {"kind": "weather", "weather": {"fog_visibility_m": rng.uniform(10.0, 200.0)}}
    setting = rng.choice(
        [
            {"return_mode": rng.choice(["strongest", "last", "dual"])},
            {"laser": rng.random() < 0.5},
            {"rotation_rate_rpm": rng.choice([300, 600, 1200])},
            rng.choice([{"phase_lock": True, "phase_lock_deg": rng.uniform(0.0, 359.0)}, {"phase_lock": False}]),
            {"window": {"soiling_transmission": rng.uniform(0.3, 1.0)}},
            {"field_of_view_deg": rng.choice([[0, 359], [rng.randrange(360), rng.randrange(360)]])},
        ]
    )
    clock = {"kind": "clock", "pps": rng.choice(["locked", "absent", "error"])}
    return {"sensor": rng.choice(sensors), **(clock if rng.random() < 0.15 else {"kind": "sensor", **setting})}
