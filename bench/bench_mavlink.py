"""What a MAVLink frame costs: hilsim's kernels against pymavlink, on one core.

    python bench/bench_mavlink.py [--rounds 7] [--json FILE]

Frames are HIL_SENSOR of 74 bytes and HIL_ACTUATOR_CONTROLS of 93; the stream is 1000 of the latter. Times are the least of the rounds. Kernels are timed in a
kernel that calls them often, as the link's loop does; pymavlink as a program in Python would call it, without its log. "worst noise" is a stream of
0xFD 0xFF 0x00 ..., in which every third byte claims to begin a frame of the largest size. The GIL is held by pymavlink all the time and by the kernels never.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from bench_timing import describe_machine
from pymavlink.dialects.v20 import common

from hilsim.compilation.jit import kernel
from hilsim.protocols.mavlink.codec import read_payload, write_frame
from hilsim.protocols.mavlink.frames import FrameState, allocate_stream, append, make_room, next_frame
from hilsim.protocols.mavlink.messages import HIL_ACTUATOR_CONTROLS, HIL_SENSOR, build_draft, build_origin

FRAMES = 1000
NONE = int(FrameState.NONE)
CHUNK = 4096


@kernel
def write_many(message, payload, sender, frame, count):
    """Write the same message so many times; returns the bytes of all frames."""
    size = 0
    for _ in range(count):
        size += write_frame(message, payload, sender, frame)
    return size


@kernel
def read_many(stream, data, payload):
    """Find and read all frames of ``data``, given in chunks as a port gives them; returns how many there were."""
    count = 0
    for begin in range(0, data.size, CHUNK):
        append(stream, data[begin : begin + CHUNK])
        while True:
            frame = next_frame(stream)
            if frame.state == NONE:
                break
            read_payload(stream.buffer, frame, payload)
            count += 1
    make_room(stream)
    return count


def least_ns(work, rounds, count):
    """Least time of the rounds for one of ``count``."""
    best = np.inf
    for _ in range(rounds):
        begin = time.perf_counter_ns()
        work()
        best = min(best, (time.perf_counter_ns() - begin) / count)
    return float(best)


def sensor_values():
    """What a HIL_SENSOR may hold."""
    return [123456789, *np.linspace(0.5, 2.0, 13).tolist(), 0x1FFF]


def measure_writing(rounds):
    """Nanoseconds a HIL_SENSOR frame."""
    filled, sender, frame = build_draft(HIL_SENSOR), build_origin(1, 200), np.zeros(280, np.uint8)
    values = sensor_values()
    for name, value in zip(filled.record.dtype.names[:-1], values, strict=True):
        filled.record[name] = value
    packer = common.MAVLink(None, srcSystem=1, srcComponent=200)
    frame_bytes = common.MAVLink_hil_sensor_message(*values, 0).pack(packer)
    size = write_frame(HIL_SENSOR, filled.payload, sender, frame)
    if frame[:size].tobytes() != frame_bytes:
        raise ValueError("both codecs must write the same frame")
    write_many(HIL_SENSOR, filled.payload, sender, frame, 1)
    ours = least_ns(lambda: write_many(HIL_SENSOR, filled.payload, sender, frame, 100 * FRAMES), rounds, 100 * FRAMES)

    def write_theirs():
        for _ in range(FRAMES):
            common.MAVLink_hil_sensor_message(*values, 0).pack(packer)

    return {"hilsim": ours, "pymavlink": least_ns(write_theirs, rounds, FRAMES)}


def measure_reading(rounds):
    """Nanoseconds a HIL_ACTUATOR_CONTROLS frame."""
    packer = common.MAVLink(None, srcSystem=1, srcComponent=1)
    controls = np.linspace(0.1, 0.9, 16).tolist()
    said = b"".join(common.MAVLink_hil_actuator_controls_message(number, controls, 129, 1).pack(packer) for number in range(1, FRAMES + 1))
    data = np.frombuffer(said, np.uint8)
    stream, heard = allocate_stream(), build_draft(HIL_ACTUATOR_CONTROLS)
    if read_many(stream, data, heard.payload) != FRAMES:
        raise ValueError("every frame must be found")

    def read_theirs():
        parser = common.MAVLink(None)
        count = sum(len(parser.parse_buffer(said[begin : begin + CHUNK]) or ()) for begin in range(0, len(said), CHUNK))
        if count != FRAMES:
            raise ValueError(f"every frame must be found, got {count}")

    return {
        "hilsim": least_ns(lambda: read_many(stream, data, heard.payload), 10 * rounds, FRAMES),
        "pymavlink": least_ns(read_theirs, rounds, FRAMES),
        "frame_bytes": len(said) // FRAMES,
    }


def measure_noise(rounds):
    """Nanoseconds a byte of noise that holds no frame."""
    random = np.random.default_rng(1).integers(0, 256, 1 << 18).astype(np.uint8)
    worst = np.resize(np.array([0xFD, 0xFF, 0x00], np.uint8), 1 << 16)
    found = {}
    for name, data in (("random", random), ("worst", worst)):
        stream, payload = allocate_stream(), build_draft(HIL_SENSOR).payload
        found[name] = least_ns(lambda stream=stream, data=data, payload=payload: read_many(stream, data, payload), rounds, data.size)
    return found


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    report = {
        "machine": describe_machine(),
        "write_ns": measure_writing(options.rounds),
        "read_ns": measure_reading(options.rounds),
        "noise_ns_per_byte": measure_noise(options.rounds),
    }
    for what, unit in (("write_ns", "ns a HIL_SENSOR frame written"), ("read_ns", "ns a HIL_ACTUATOR_CONTROLS frame found, checked and read")):
        ours, theirs = report[what]["hilsim"], report[what]["pymavlink"]
        print(f"{unit:58s} hilsim {ours:8.0f}   pymavlink {theirs:8.0f}   {theirs / ours:6.0f} times")
    noise = report["noise_ns_per_byte"]
    print(f"{'ns a byte of noise':58s} random {noise['random']:8.1f}   worst     {noise['worst']:8.1f}")
    if options.json is not None:
        options.json.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
