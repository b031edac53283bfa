"""Replaying a capture: hilsim beside tcpreplay, in one run, over two network namespaces, with kernel stamps taken at the receiver.

    python bench/bench_replay.py [--seconds 12] [--rounds 2] [--memory] [--json FILE]

The capture is a VLP-16's data and position packets, recorded by hilsim. Lateness is a packet's arrival minus its capture time, for every tool counted
from the fastest packet of the first second of that file, so that one late first packet does not flatter the rest. Drift is the slope of a least-squares line
through arrivals over capture times. Variants are shuffled within each load, loads within each round. ``ten``: ten captures at once, by one process of
hilsim and by ten of tcpreplay. ``cpu``: of the whole process from its start, per second of capture; ``sending``: between its first and last packet.
``wrong``: altered, repeated, or behind a later packet of its flow.
``--memory`` replays a 5 GB capture and watches the process's memory. Needs root for the namespaces; what cannot be run is left out with a reason.
"""

import argparse
import contextlib
import json
import math
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
from bench_timing import burners, describe_machine
from replay_captures import record_streams
from replay_memory import measure_memory, print_memory
from replay_processes import run_senders
from replay_wire import DESTINATION, DESTINATION_MAC, SENDING, NoWireError, wire

from hilsim.families.velodyne.protocol.data import DATA_PORT

SENDERS = {
    "tcpreplay": [],
    "tcpreplay gtod": ["--timer=gtod"],
    "tcpreplay nano": ["--timer=nano"],
    "tcpreplay select": ["--timer=select"],
    "hilsim": [],
    "hilsim slice": ["--scheduling", "slice"],
    "hilsim abreast": [],
}
"""Options of each variant. ``hilsim`` plays several captures as far apart as they were recorded; ``hilsim abreast`` begins them all at one instant, so that
packets of ten sensors are due together for the whole replay."""

PLAN = {
    "idle": ("tcpreplay", "tcpreplay gtod", "tcpreplay nano", "tcpreplay select", "hilsim", "hilsim slice"),
    "cpu": ("tcpreplay", "hilsim", "hilsim slice"),
    "ten": ("tcpreplay", "hilsim", "hilsim abreast"),
}
SENSORS = 10
BASE_NS = 1_000_000_000
END_NS = 100_000_000
WARM_UP_S = 0.5
START_LIMIT_S = 20.0
AIM_DRIFT_PPM, AIM_P99_US, AIM_CPU_RATIO = 1.0, 80.0, 0.1


def commands_of(variant, streams, names, hilsim):
    """The processes that replay ``streams``."""
    files = [stream.path for stream in streams]
    if variant.startswith("tcpreplay"):
        return [names.send_by(["tcpreplay", "--quiet", f"--intf1={SENDING}", *SENDERS[variant], file]) for file in files]
    options = ["--to", DESTINATION, "--from", "recorded", "--pace", "capture", "--retime", "none", "--json", "--metrics", "none", *SENDERS[variant]]
    if variant != "hilsim abreast":
        first_ns = min(stream.stamp_ns[0] for stream in streams)
        options += [word for stream in streams for word in ("--offset-s", f"{(stream.stamp_ns[0] - first_ns) / 1e9:.9f}")]
    return [names.send_by([*hilsim, "replay", *files, *options])]


def matched(stream, table):
    """What became of one capture's packets.

    Returns:
        ``(place, arrival_ns, faults)``: ``int64[m]`` place in the capture and arrival of each packet that came, in order of arrival; and how many of them
        were lost, altered (in no capture), repeated, or behind a later one of their flow.
    """
    order = np.argsort(stream.digest)
    found = np.searchsorted(stream.digest, table[:, 3], sorter=order).clip(max=order.size - 1)
    place = order[found]
    known = (stream.digest[place] == table[:, 3]) & (stream.port[place] == table[:, 2])
    kept, first = np.unique(place[known], return_index=True)
    first.sort()
    place, arrival_ns, port = place[known][first], table[known, 0][first], table[known, 2][first]
    behind = sum(int((np.diff(place[port == each]) < 0).sum()) for each in np.unique(port))
    faults = {"lost": stream.digest.size - kept.size, "altered": int((~known).sum()), "repeated": int(known.sum()) - kept.size, "behind": behind}
    sequence = np.argsort(arrival_ns, kind="stable")
    return place[sequence], arrival_ns[sequence], faults


def timing_of(stream, place, arrival_ns):
    """Lateness (us) of each packet, drift, lateness at the end, intervals of data packets, and the base it is all counted from."""
    capture_ns = stream.stamp_ns[place]
    delay_ns = arrival_ns - capture_ns
    base_ns = delay_ns[capture_ns < capture_ns.min() + BASE_NS].min()
    lateness_us = (delay_ns - base_ns) / 1000
    elapsed_ns = (capture_ns - capture_ns[0]).astype(float)
    return {
        "lateness_us": lateness_us,
        "drift_ppm": float(np.polyfit(elapsed_ns, lateness_us * 1000, 1)[0] * 1e6),
        "end_us": float(np.median(lateness_us[capture_ns > capture_ns.max() - END_NS])),
        "interval_us": np.diff(arrival_ns[stream.port[place] == DATA_PORT]) / 1000,
        "base_ns": int(base_ns),
    }


def lost_seconds(stream, place):
    """Where in the capture packets are missing, to a tenth of a second."""
    missing = np.setdiff1d(np.arange(stream.stamp_ns.size), place)
    return np.unique(((stream.stamp_ns[missing] - stream.stamp_ns[0]) / 1e9).round(1)).tolist()


def measure(variant, streams, names, hilsim, limit_s, directory):
    """One replay of ``streams``; returns its figures, or None where it could not run."""
    path = directory / "received.npy"
    with names.receive(path):
        senders = run_senders(commands_of(variant, streams, names, hilsim), directory, limit_s)
    table = np.load(path)
    faults = sorted({sender.fault() for sender in senders if sender.fault()})
    if faults:
        print(f"{variant}: {'; '.join(faults)}", file=sys.stderr)
    results = [(stream, *matched(stream, table[table[:, 1] == stream.source])) for stream in streams]
    if any(arrival_ns.size < 2 for _, _, arrival_ns, _ in results):
        return None
    first_ns, last_ns = int(table[:, 0].min()), int(table[:, 0].max())
    return {
        "timing": [timing_of(stream, place, arrival_ns) for stream, place, arrival_ns, _ in results],
        "faults": [faults for _, _, _, faults in results],
        "lost_at_s": sorted({second for stream, place, _, _ in results for second in lost_seconds(stream, place)}),
        "strangers": int((~np.isin(table[:, 1], [stream.source for stream in streams])).sum()),
        "cpu_s": sum(sender.cpu_s for sender in senders),
        "cpu_sending": sum(sender.cpu_share(first_ns, last_ns) for sender in senders),
        "wall_s": max(sender.wall_s for sender in senders),
        "first_s": (first_ns - min(sender.started_ns for sender in senders)) / 1e9,
        "ended": not faults,
        "said": [sender.summary() for sender in senders],
    }


def summarise(samples, seconds):
    """Figures of one variant under one load, pooled over its rounds and files; drift and lateness at the end are the worst of them."""
    timing = [each for sample in samples for each in sample["timing"]]
    lateness_us = np.concatenate([each["lateness_us"] for each in timing])
    p50, p99, p999 = np.quantile(lateness_us, [0.5, 0.99, 0.999])
    faults = [each for sample in samples for each in sample["faults"]]
    return {
        "n": int(lateness_us.size),
        "p50_us": round(float(p50), 1),
        "p99_us": round(float(p99), 1),
        "p99.9_us": round(float(p999), 1),
        "max_us": round(float(lateness_us.max()), 1),
        "min_us": round(float(lateness_us.min()), 1),
        "end_us": round(max((each["end_us"] for each in timing), key=abs), 1),
        "drift_ppm": round(max((each["drift_ppm"] for each in timing), key=abs), 2),
        "interval_p50_us": round(float(np.median(np.concatenate([each["interval_us"] for each in timing]))), 1),
        "apart_us": round(max(float(np.ptp([each["base_ns"] for each in sample["timing"]])) for sample in samples) / 1000, 1),
        "lost": sum(each["lost"] for each in faults),
        "lost_at_s": [sample["lost_at_s"] for sample in samples],
        "wrong": sum(sample["strangers"] for sample in samples) + sum(each["altered"] + each["repeated"] + each["behind"] for each in faults),
        "cpu_percent": round(100 * sum(sample["cpu_s"] for sample in samples) / (seconds * len(samples)), 1),
        "sending_percent": round(100 * float(np.mean([sample["cpu_sending"] for sample in samples])), 1),
        "wall_s": round(float(np.mean([sample["wall_s"] for sample in samples])), 2),
        "first_s": round(float(np.mean([sample["first_s"] for sample in samples])), 2),
        "ended": all(sample["ended"] for sample in samples),
        "rounds_p99_us": [
            round(float(np.quantile(np.concatenate([each["lateness_us"] for each in sample["timing"]]), 0.99)), 1) for sample in samples
        ],
        "rounds_drift_ppm": [round(max((each["drift_ppm"] for each in sample["timing"]), key=abs), 2) for sample in samples],
        "said": [sample["said"] for sample in samples],
    }


COLUMNS = {
    "p50_us": "p50 us",
    "p99_us": "p99 us",
    "max_us": "max us",
    "end_us": "at end us",
    "drift_ppm": "drift ppm",
    "interval_p50_us": "interval us",
    "lost": "lost",
    "wrong": "wrong",
    "cpu_percent": "cpu %",
    "sending_percent": "sending %",
    "first_s": "first s",
    "wall_s": "wall s",
}


def print_table(rows):
    """One line a load and variant."""
    print(f"{'load':6}{'variant':18}" + "".join(f"{name:>12}" for name in COLUMNS.values()) + "   p99 of each round")
    for (load, variant), row in rows.items():
        figures = "".join(f"{row[name]:>12}" for name in COLUMNS)
        print(f"{load:6}{variant:18}{figures}   {' '.join(map(str, row['rounds_p99_us']))}{'' if row['ended'] else '   (killed or failed)'}")
    for (load, variant), row in rows.items():
        if any(row["lost_at_s"]):
            print(
                f"{load}, {variant}: lost at second {' and '.join(', '.join(map(str, each)) or 'none' for each in row['lost_at_s'])} of the capture, by rounds"
            )
        if load == "ten":
            print(f"ten, {variant}: the ten files run at most {row['apart_us']} us apart, by their capture times")


def print_aims(rows):
    """What hilsim should reach by its default settings, and whether it did."""
    theirs = rows.get(("idle", "tcpreplay"))
    for (load, variant), row in rows.items():
        if variant not in {"hilsim", "hilsim abreast"}:
            continue
        aims = [
            (f"|drift| {abs(row['drift_ppm'])} ppm (aim {AIM_DRIFT_PPM:g})", abs(row["drift_ppm"]) <= AIM_DRIFT_PPM),
            (f"p99 {row['p99_us']} us (aim {AIM_P99_US:g})", row["p99_us"] <= AIM_P99_US),
            (f"lost or wrong {row['lost'] + row['wrong']} (aim 0)", row["lost"] + row["wrong"] == 0),
        ]
        if theirs and load != "ten":
            for key, words in (("sending_percent", "while sending"), ("cpu_percent", "with its start")):
                limit = AIM_CPU_RATIO * theirs[key]
                aims.append((f"cpu {words} {row[key]} % (aim below {limit:.1f}, a tenth of tcpreplay's)", row[key] < limit))
        print(f"aims, {load}, {variant}: " + ", ".join(f"{text} {'met' if met else 'MISSED'}" for text, met in aims))


def plan_round(arguments, has_tcpreplay, shuffle):
    """(load, variant) in the order of one round."""
    plan = []
    for load in shuffle.sample(arguments.loads, len(arguments.loads)):
        variants = [each for each in PLAN[load] if each in arguments.variants and (has_tcpreplay or not each.startswith("tcpreplay"))]
        plan += [(load, variant) for variant in shuffle.sample(variants, len(variants))]
    return plan


def measure_all(arguments, streams, directory):
    """Every variant under every load; returns the rows of the table, none where there can be no wire."""
    samples = {}
    shuffle = random.Random(arguments.seed)
    has_tcpreplay = shutil.which("tcpreplay") is not None
    if not has_tcpreplay:
        print("no tcpreplay (Debian package tcpreplay): its rows are left out")
    try:
        with wire(SENSORS) as names:
            warm_up(arguments, names, directory)
            for number in range(arguments.rounds):
                for load, variant in plan_round(arguments, has_tcpreplay, shuffle):
                    print(f"round {number + 1}/{arguments.rounds}: {load}, {variant}", file=sys.stderr)
                    limit_s = 2 * arguments.seconds + START_LIMIT_S
                    with burners(2 * limit_s) if load == "cpu" else contextlib.nullcontext():
                        sample = measure(variant, streams if load == "ten" else streams[:1], names, arguments.hilsim, limit_s, directory)
                    if sample is not None:
                        samples.setdefault((load, variant), []).append(sample)
    except NoWireError as error:
        print(f"replay over a wire: left out, {error}")
    return {key: summarise(samples[key], arguments.seconds) for key in ((load, variant) for load in PLAN for variant in SENDERS) if key in samples}


def warm_up(arguments, names, directory):
    """Let hilsim compile its kernels, where it has not yet."""
    if any(variant.startswith("hilsim") for variant in arguments.variants):
        short = directory / "short"
        short.mkdir()
        measure(
            "hilsim", record_streams(arguments.hilsim, short, 1, WARM_UP_S, DESTINATION, DESTINATION_MAC), names, arguments.hilsim, 120, directory
        )


def main():
    """Run every variant under every load and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=12.0, help="of the capture")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--loads", nargs="*", choices=PLAN, default=list(PLAN))
    parser.add_argument("--variants", nargs="+", choices=SENDERS, default=list(SENDERS))
    parser.add_argument("--hilsim", nargs="+", default=[sys.executable, "-m", "hilsim"], help="the command that is hilsim")
    parser.add_argument("--seed", type=int, default=1, help="of the order of runs")
    parser.add_argument("--memory", action="store_true", help="also replay a 5 GB capture")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="on a disk, for the captures")  # noqa: S108 - a fresh folder in it
    parser.add_argument("--json", type=Path, help="write everything here")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that namespaces and files are removed
    machine = describe_machine()
    print(" · ".join(f"{name} {value}" for name, value in machine.items()))
    memory = []
    with tempfile.TemporaryDirectory(dir=arguments.directory) as name:
        directory = Path(name)
        streams = record_streams(arguments.hilsim, directory, SENSORS, arguments.seconds, DESTINATION, DESTINATION_MAC)
        rows = measure_all(arguments, streams, directory) if arguments.loads else {}
        if rows:
            print_table(rows)
            print_aims(rows)
        if arguments.memory:
            memory = measure_memory(arguments.hilsim, streams[0].path, math.ceil(arguments.seconds), directory)
            print_memory(memory)
    if arguments.json:
        table = [{"load": load, "variant": variant, **row} for (load, variant), row in rows.items()]
        found = {"machine": machine, "seconds": arguments.seconds, "rounds": arguments.rounds, "rows": table, "memory": memory}
        arguments.json.write_text(json.dumps(found, indent=2), encoding="utf-8")


if __name__ == "__main__":
    main()
