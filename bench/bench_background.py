"""What a background map costs: decoding and counting beside what velodyne-decoder takes to decode the same capture, interleaved; one worker and two; memory.

    python bench/bench_background.py [--captures DIRECTORY] [--rounds 7] [--repeat 20] [--json FILE]

``--captures`` holds the real captures (default: beside this checkout). Each is measured as it is, and ``--repeat`` times behind itself: what is paid
once - surveying, three thirds, merging - counts most for a capture of half a second. Ratios are medians of the rounds' ratios, so that a busy machine
slows both; times are the least. Movement is not checked here, because one of the captures is of a car that creeps.
"""

import argparse
import json
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import velodyne_decoder
from bench_timing import describe_machine

from hilsim.background import job as jobs
from hilsim.background.generator import GridSetting, prepare
from hilsim.background.movement import Change
from hilsim.background.pool import map_here, map_in_processes
from hilsim.background.profiles import geometry_of
from hilsim.cli.background_files import sensor_profiles

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
NAMES = ("vlp16_dual.pcap", "vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap")
HEADER_SIZE, RECORD_SIZE = 24, 16


def repeated(source, target, times):
    """A little-endian capture that many times behind itself, each time later."""
    data = source.read_bytes()
    records, at = [], HEADER_SIZE
    while at < len(data):
        seconds, fraction, size, wire = struct.unpack_from("<IIII", data, at)
        records.append((seconds, fraction, size, wire, data[at + RECORD_SIZE : at + RECORD_SIZE + size]))
        at += RECORD_SIZE + size
    span = records[-1][0] - records[0][0] + 1
    with target.open("wb") as file:
        file.write(data[:HEADER_SIZE])
        for turn in range(times):
            for seconds, fraction, size, wire, frame in records:
                file.write(struct.pack("<IIII", seconds + turn * span, fraction, size, wire) + frame)
    return target


def seconds_of(work):
    """How long a call takes."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def compared(path, job, rounds):
    """Least times and median ratio of hilsim and velodyne-decoder on a capture."""
    packets = jobs.map_capture(job, path).partial.packets
    rows = [(seconds_of(lambda: jobs.map_capture(job, path)), seconds_of(lambda: list_scans(path))) for _ in range(rounds)]
    ours, theirs = np.array(rows).T
    return {"packets": packets, "hilsim_us": ours.min() / packets * 1e6, "decoder_us": theirs.min() / packets * 1e6, "ratio": float(np.median(theirs / ours))}


def list_scans(path):
    """Decode with velodyne-decoder, keeping nothing."""
    for _ in velodyne_decoder.read_pcap(path):
        pass


def workers(path, job, rounds, directory, count=8):
    """Median ratio of the time that one worker process takes for some copies of a capture to that of two."""
    copies = [Path(shutil.copy(path, directory / f"copy-{number}.pcap")) for number in range(count)]
    rows = []
    for _ in range(rounds):
        row = []
        for number in (1, 2):
            started = time.perf_counter()
            results = map_in_processes(job, copies, lambda _: None, number)
            next(results)  # processes have started and compiled
            warm = time.perf_counter()
            list(results)
            row.append((time.perf_counter() - warm, warm - started))
        rows.append([row[0][0], row[1][0], row[0][0] + row[0][1], row[1][0] + row[1][1]])
    one, two, whole_one, whole_two = np.array(rows).T
    return {"one_s": one.min(), "two_s": two.min(), "whole_ratio": float(np.median(whole_one / whole_two)), "copies": count}


def peak_mib(path, columns):
    """Largest memory of a process that maps a capture."""
    code = (
        "import resource, sys; from pathlib import Path; sys.path.insert(0, 'bench'); from bench_background import job_of; "
        "from hilsim.background.job import map_capture; path = Path(sys.argv[1]); map_capture(job_of(path), path); "
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    del columns
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return int(result.stdout) / 1024


def job_of(path):
    """The job for a capture, without a look at whether the sensor moved."""
    jobs.check_standing = lambda *_: Change(compared=0, nearer=0, farther=0)
    profiles = {model: geometry_of(spec) for model, spec in sensor_profiles().items()}
    return replace(prepare(path, profiles, GridSetting())[0])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=Path, default=CAPTURES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    found = {}
    print(f"{'capture':<36}{'packets':>9}{'hilsim us':>11}{'decoder us':>12}{'ratio':>8}{'peak MiB':>10}")
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for capture in NAMES:
            path = options.captures / capture
            job = job_of(path)
            long = repeated(path, directory / f"{path.stem}-x{options.repeat}.pcap", options.repeat)
            for each in (path, long):
                row = compared(each, job, options.rounds) | {"peak_mib": peak_mib(each, 0)}
                found[each.name] = row
                print(
                    f"{each.name:<36}{row['packets']:>9}{row['hilsim_us']:>11.2f}{row['decoder_us']:>12.2f}{row['ratio']:>7.2f}x{row['peak_mib']:>10.0f}"
                )
        found["workers"] = workers(long, job, 3, directory)
    print(f"workers: {found['workers']}")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "figures": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
