"""A lidar on a quadrotor that takes off: no autopilot, no hardware, no clock.

The rig `flight` has a built-in position hold that flies its waypoints through wind. Where it is, is known exactly; what its lidar sees below it, is measured.
With a real autopilot: docs/how-to/fly-with-an-autopilot.md.
"""

import hilsim

STEP_S = 0.5
UNTIL_S = 6.0


def lowest_point_m(emulator: hilsim.Emulator, time_s: float) -> float:
    """Height in the world of the lowest point of a tenth of a second: the ground's, as well as it is measured."""
    points = emulator.points(time_s, time_s + 0.1)
    pose = emulator.sensor_pose(time_s)
    return min(pose.transform(point)[2] for point in points[["x", "y", "z"]].tolist())


def main() -> None:
    """Print a line for each half second."""
    emulator = hilsim.Emulator("flight")
    emulator.sensor_pose(UNTIL_S)  # flies as far as will be asked for, once
    for step in range(int(UNTIL_S / STEP_S) + 1):
        time_s = step * STEP_S
        x, y, z = emulator.sensor_pose(time_s).position_m
        bar = "#" * round(4 * z)
        print(f"{time_s:4.1f} s  at ({x:6.2f}, {y:6.2f})  height {z:5.2f} m  lowest point seen {lowest_point_m(emulator, time_s):5.2f} m  {bar}")


if __name__ == "__main__":
    main()
