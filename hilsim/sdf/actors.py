"""The script of an ``<actor>``."""

from hilsim.geometry.poses import Pose
from hilsim.sdf.elements import Element
from hilsim.sdf.specs import SdfActor, SdfTrajectory, SdfWaypoint

_LONGEST_MS = 2**31 - 1
"""24 days: Gazebo stores the milliseconds of a script in 32 bits."""


def read_actor(actor: Element, name: str, pose: Pose) -> SdfActor:
    """Read an actor with its trajectories.

    Args:
        actor: Element ``<actor>``.
        name: Name in the world.
        pose: Pose in the world.
    """
    script = actor.child("script")
    if script is None:
        return SdfActor(name=name, pose=pose, where=actor.where)
    delay_s = script.number("delay_start", 0.0)
    if not 0.0 <= delay_s * 1000.0 <= _LONGEST_MS:
        script.fault(f"<delay_start> must be 0 to {_LONGEST_MS / 1000.0:.0f} s, got {delay_s:g}")
        delay_s = 0.0
    return SdfActor(
        name=name,
        trajectories=tuple(_trajectory(each) for each in script.all("trajectory")),
        is_looped=script.boolean("loop", default=True),
        delay_s=delay_s,
        pose=pose,
        where=actor.where,
    )


def _trajectory(trajectory: Element) -> SdfTrajectory:
    """Waypoints by their times: of two with the same time the later one in the file is used."""
    found: dict[int, SdfWaypoint] = {}
    for waypoint in trajectory.all("waypoint"):
        time_s = waypoint.number("time", 0.0)
        if not abs(time_s) * 1000.0 <= _LONGEST_MS:
            waypoint.fault(f"<time> must be at most {_LONGEST_MS / 1000.0:.0f} s, got {time_s:g}")
            continue
        time_ms = int(time_s * 1000.0)
        if time_ms in found:
            waypoint.unsupported(f"a <waypoint> before is at the same millisecond, {time_ms / 1000.0:g} s: this one counts")
        found[time_ms] = SdfWaypoint(time_ms=time_ms, pose=waypoint.pose())
    text = trajectory.attributes.get("tension", "0")
    try:
        tension = float(text)
    except ValueError:
        tension = -1.0
    if not 0.0 <= tension <= 1.0:
        trajectory.fault(f'tension must be 0 to 1, got "{text[:30]}"')
    return SdfTrajectory(waypoints=tuple(found[time_ms] for time_ms in sorted(found)), tension=tension)
