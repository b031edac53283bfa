"""What a background map costs: decoding and counting beside what velodyne-decoder takes to decode the same capture, interleaved; one worker and two; memory.

And how true it is: walls at 20 m with the profiles' own noise, and real captures against the medians of their cells as velodyne-decoder decodes them.

    python bench/bench_background.py [--captures DIRECTORY] [--rounds 7] [--repeat 20] [--threads 2] [--true-only] [--json FILE]

``--captures`` holds the real captures (default: beside this checkout). Each is measured as it is, and ``--repeat`` times behind itself: what is paid
once - surveying, three thirds, merging - counts most for a capture of half a second. Ratios are medians of the rounds' ratios, so that a busy machine
slows both; times are the least. CPU: the same of the time that all threads of the process computed, which others on the machine change less. ``counting`` reads, decodes and counts; ``step`` is the whole map step, with survey, thirds, merge and SHA-256. Movement
is not checked here, because one of the captures is of a car that creeps.
"""

import argparse
import json
import multiprocessing
import resource
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import velodyne_decoder
from bench_timing import describe_machine

from hilsim.capture.batches import CaptureBatches
from hilsim.cli.background.outputs import named_profile
from hilsim.read.background import job as jobs
from hilsim.read.background.generator import generate, prepare
from hilsim.read.background.movement import Change
from hilsim.read.background.part import GridSetting
from hilsim.read.background.pool import map_here
from hilsim.read.background.surface import SurfaceRule
from tests.walls import GRIDS, PROFILES, record_wall, wall_errors_mm

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
NAMES = ("vlp16_dual.pcap", "vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap")
TRUE_NAMES = ("vlp16_dual.pcap", "vlp16_strongest_gps.pcap", "vlp32c_strongest_fov.pcap")
"""Of which velodyne-decoder takes the product byte for what it is, and whose sensors stand."""
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
    return both_seconds_of(work)[0]


def both_seconds_of(work):
    """How long a call takes, and how long this process's threads compute for it."""
    start, start_cpu = time.perf_counter(), time.process_time()
    work()
    return time.perf_counter() - start, time.process_time() - start_cpu


def accumulated(path, job, sensor):
    """Read, decode and count; no survey, no thirds, no hash."""
    maker = jobs.PartialMapMaker(job, sensor, str(path))
    for batch in CaptureBatches(path):
        maker.add(batch, 0)
    return maker.take()


def compared(path, job, rounds):
    """Least times (us a packet) and median ratios of hilsim and velodyne-decoder on a capture."""
    packets = jobs.map_capture(job, path).partial.packets
    sensor = jobs.surveyed(job, path)
    works = (lambda: accumulated(path, job, sensor), lambda: jobs.map_capture(job, path), lambda: list_scans(path))
    rows, cpu = np.array([[both_seconds_of(work) for work in works] for _ in range(rounds)]).transpose(2, 0, 1)
    counting, step, theirs = rows.T
    counting_cpu, step_cpu, theirs_cpu = cpu.T
    row = dict(zip(("counting_us", "step_us", "decoder_us"), (rows.min(axis=0) / packets * 1e6).tolist(), strict=True))
    ratios = {"counting": theirs / counting, "counting_cpu": theirs_cpu / counting_cpu, "step": theirs / step, "step_cpu": theirs_cpu / step_cpu}
    row |= {f"{name}_ratio": float(np.median(ratio)) for name, ratio in ratios.items()}
    row |= {f"{name}_ratio_span": [float(ratio.min()), float(ratio.max())] for name, ratio in ratios.items()}
    return row | {"packets": packets}


def list_scans(path):
    """Decode with velodyne-decoder, keeping nothing."""
    for _ in velodyne_decoder.read_pcap(path):
        pass


def workers(path, job, rounds, directory, count=8):
    """How much longer one worker process takes for some copies of a capture than two do, processes started and compiled."""
    copies = [Path(shutil.copy(path, directory / f"copy-{number}.pcap")) for number in range(count)]
    rows = np.array([[warm_seconds(copies, job, number) for number in (1, 2)] for _ in range(rounds)])
    return {
        "one_s": float(rows[:, 0].min()),
        "two_s": float(rows[:, 1].min()),
        "ratios": (rows[:, 0] / rows[:, 1]).round(2).tolist(),
        "copies": count,
    }


def warm_seconds(copies, job, number):
    """Seconds for copies of a capture, from when each process has done a first one."""
    with ProcessPoolExecutor(number, mp_context=multiprocessing.get_context("spawn")) as pool:
        list(pool.map(jobs.map_capture, [replace(job, stretch=jobs.Stretch(duration_s=0.2))] * 2 * number, copies[: 2 * number], chunksize=1))
        return seconds_of(lambda: list(pool.map(jobs.map_capture, [job] * len(copies), copies, chunksize=1)))


def peak_mib(path):
    """Largest memory of a process that maps a capture; not ``ru_maxrss``, which a child has from its parent."""
    code = (
        "import sys; from pathlib import Path; sys.path.insert(0, 'bench'); from bench_background import job_of; "
        "from hilsim.read.background.job import map_capture; path = Path(sys.argv[1]); map_capture(job_of(path), path); "
        "print(next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    result = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True, cwd=Path(__file__).parent.parent)
    return int(result.stdout) / 1024


def wall_errors(profile, directory, distance):
    """Errors (mm) of the cells that see a wall at 20 m, of a map of 6 s with the profile's own noise: against the world, along each cell's middle."""
    path = directory / f"{profile}.pcap"
    if not path.exists():
        record_wall(path, profile, seconds=6, threads=2)
    return wall_errors_mm(map_of(path, distance, GRIDS[profile], named_profile(profile).spec))


def map_of(path, distance, setting=None, named=None):
    """A map of one capture, whether its sensor moved or not."""
    job, found = prepare(path, setting or GridSetting(), named=named)
    return generate(job, found, [path], SurfaceRule(distance=distance), map_here, lambda _: None).map


def capture_errors(path, distance, fewest=4):
    """The map's distance minus the median (mm) of the cell's returns as velodyne-decoder decodes them, where these lie within 10 cm of each other."""
    formed = map_of(path, distance)
    scans = [scan for _, scan in velodyne_decoder.read_pcap(path, velodyne_decoder.Config(min_range=0.05, max_range=300))]
    x, y, z, _, _, _, ring = np.concatenate(scans).astype(float).T[:7]
    columns = formed.grid.columns
    cell = ring.astype(int) * columns + np.minimum((np.degrees(np.arctan2(-y, x)) % 360 * columns / 360).astype(int), columns - 1)
    range_mm = np.sqrt(x * x + y * y + z * z) * 1000.0
    order = np.lexsort((range_mm, cell))
    cell, range_mm = cell[order], range_mm[order]
    borders = np.flatnonzero(np.diff(cell)) + 1
    of_cells = zip(cell[np.concatenate([[0], borders])], np.split(range_mm, borders), strict=True)
    one = [(at, np.median(some)) for at, some in of_cells if len(some) >= fewest and some[-1] - some[0] <= 100 and formed.used.flat[at]]
    return np.array([formed.distance_mm.flat[at] - median for at, median in one])


def print_truth(captures, directory):
    """How true maps are, by both distances."""
    found = {}
    print(f"{'against the world, or the median':<34}{'distance':>10}{'cells':>8}{'mean mm':>9}{'median':>8}{'sd':>7}")
    works = [(f"wall at 20 m, {profile}", lambda d, p=profile: wall_errors(p, directory, d)) for profile in PROFILES]
    works += [(name, lambda d, n=name: capture_errors(captures / n, d)) for name in TRUE_NAMES]
    for name, errors_by in works:
        for distance in ("mean", "farthest"):
            errors = errors_by(distance)
            row = {"cells": len(errors), "mean": float(errors.mean()), "median": float(np.median(errors)), "sd": float(errors.std())}
            found[f"{name}, {distance}"] = row
            print(f"{name:<34}{distance:>10}{row['cells']:>8}{row['mean']:>9.2f}{row['median']:>8.2f}{row['sd']:>7.2f}")
    return found


def threaded(path, job, threads, rounds=3):
    """Wall and CPU seconds of the map step over one capture, by one thread and by several in turn."""
    rows = [[both_seconds_of(lambda t=number: jobs.map_capture(job, path, threads=t)) for number in (1, threads)] for _ in range(rounds)]
    return {"threads": threads, "one_s_cpu_s": [row[0] for row in rows], "several_s_cpu_s": [row[1] for row in rows]}


def job_of(path):
    """The job for a capture, without a look at whether the sensor moved."""
    jobs.check_standing = lambda *_: Change(compared=0, nearer=0, farther=0)
    return replace(prepare(path, GridSetting())[0])


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=Path, default=CAPTURES)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--repeat", type=int, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--true-only", action="store_true", help="How true maps are, and no costs.")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    machine = describe_machine()
    print(", ".join(f"{key} {value}" for key, value in machine.items()))
    with tempfile.TemporaryDirectory() as name:
        found = {"truth": print_truth(options.captures, Path(name))}
    if options.true_only:
        return
    print(
        f"{'capture':<34}{'packets':>8}{'decoder us':>11}{'counting us':>12}{'ratio':>7}{'CPU':>7}{'step us':>9}{'ratio':>7}{'CPU':>7}{'peak MiB':>9}"
    )
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for capture in NAMES:
            path = options.captures / capture
            job = job_of(path)
            long = repeated(path, directory / f"{path.stem}-x{options.repeat}.pcap", options.repeat)
            for each in (path, long):
                row = compared(each, job, options.rounds) | {"peak_mib": peak_mib(each)}
                found[each.name] = row
                print(
                    f"{each.name:<34}{row['packets']:>8}{row['decoder_us']:>11.2f}{row['counting_us']:>12.2f}{row['counting_ratio']:>6.2f}x"
                    f"{row['counting_cpu_ratio']:>6.2f}x"
                    f"{row['step_us']:>9.2f}{row['step_ratio']:>6.2f}x{row['step_cpu_ratio']:>6.2f}x{row['peak_mib']:>9.0f}"
                )
        found["threads"] = threaded(long, job, options.threads)
        found["workers"] = workers(long, job, 5, directory)
    print(f"threads: {found['threads']}")
    print(f"workers: {found['workers']}")
    print(f"this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    if options.json:
        options.json.write_text(json.dumps({"machine": machine, "figures": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
