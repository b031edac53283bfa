"""How fast a program's own loop drives a rig (`hilsim.Emulator.step`): seconds of rig time a second, by the length of a step and the number of objects.

    python bench/bench_step.py [--seconds 4]

Wall time and processor time are both given: the loop renders in one thread.
"""

import argparse
import math
import time

import hilsim
from hilsim import Motion, TrackedObject

OBJECTS = (0, 50)
STEPS_MS = (100, 10, 1)


def platform(time_s):
    """A platform that drives along the street."""
    return Motion(position_m=(5.0 * time_s, 0.0, 1.8), velocity_mps=(5.0, 0.0, 0.0), rates_radps=(0.0, 0.0, 0.0))


def crowd(count, time_s):
    """Boxes that walk beside it."""
    return [
        TrackedObject(
            id=number,
            name=f"walker {number}",
            size_m=(0.5, 0.5, 1.8),
            motion=Motion(position_m=(6.0 * math.cos(number) + 5.0 * time_s, 4.0, 0.9), velocity_mps=(5.0, 0.0, 0.0), rates_radps=(0.0, 0.0, 0.0)),
        )
        for number in range(count)
    ]


def measure(step_s, objects, seconds):
    """Rig time a second of wall and of processor time."""
    emulator = hilsim.Emulator("demo")
    for number in range(3):
        emulator.step(number * step_s, platform=platform(number * step_s), objects=crowd(objects, number * step_s))
    began_s, used_s, number, packets = time.perf_counter(), time.process_time(), 2, 0
    while number * step_s < 2 * step_s + seconds:
        number += 1
        at_s = number * step_s
        packets += len(emulator.step(at_s, platform=platform(at_s), objects=crowd(objects, at_s)).packets)
    passed_s = (number - 2) * step_s
    return passed_s / (time.perf_counter() - began_s), passed_s / (time.process_time() - used_s), packets


def main():
    """Print a line for each length of step and number of objects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0)
    seconds = parser.parse_args().seconds
    measure(0.1, 0, 0.1)
    print("| step | objects | rig time a second | a second of processor time | packets |\n|---|---|---|---|---|")
    for objects in OBJECTS:
        for step_ms in STEPS_MS:
            wall, processor, packets = measure(1e-3 * step_ms, objects, seconds)
            print(f"| {step_ms} ms | {objects} | {wall:.1f} s | {processor:.1f} s | {packets} |")


if __name__ == "__main__":
    main()
