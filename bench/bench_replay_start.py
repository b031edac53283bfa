"""Whether replays lose anything on a busy machine: every capture several times, beside two busy processes and three other daemons that start.

    python bench/bench_replay_start.py --captures ../shared/captures --times 10

Prints one row a capture: packets played, sent and dropped over all runs, and by how much they were postponed. Exit code 1 if one packet was dropped.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

BUSY = "while True: pass"
DAEMONS = 3
LOADED_S = 2.0


def hilsim(*arguments, **options):
    """Start a command of this checkout."""
    return subprocess.Popen([sys.executable, "-m", "hilsim", *map(str, arguments)], **options)


@contextlib.contextmanager
def load(directory, *, cold):
    """Run two busy processes and some starting daemons, which compile kernels if ``cold``, during the block; end them by their process ids."""
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = [subprocess.Popen([sys.executable, "-c", BUSY], **quiet) for _ in range(2)]
    for number in range(DAEMONS):
        rig = Path(directory) / f"other-{number}.toml"
        rig.write_text(
            f'name = "other"\n[scene]\ngenerator = "street"\n[metrics]\nenabled = false\n[[sensor]]\nname = "s"\n[sensor.network]\n'
            f'source = "127.0.{50 + number}.1"\ndestination = "127.0.0.1"\ndata_port = {42_000 + 2 * number}\nposition_port = {42_001 + 2 * number}\n'
        )
        environment = os.environ | ({"XDG_CACHE_HOME": f"{directory}/cold-{number}"} if cold else {})
        running.append(hilsim("run", rig, env=environment, **quiet))
    try:
        yield
    finally:
        for process in running:
            process.terminate()
        for process in running:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def replay(capture, seconds):
    """One replay; its summary and exit code."""
    command = ["replay", capture, "--to", "127.0.0.1", "--json", "--duration-s", seconds, "--metrics", "none"]
    with hilsim(*command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate(timeout=300)
    if not out:
        sys.exit(f"{capture}: exit code {process.returncode}: {err[-500:]}")
    return json.loads(out), process.returncode


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--captures", type=Path, required=True)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each capture")
    parser.add_argument("--cold", action="store_true", help="the other daemons have kernels to compile")
    options = parser.parse_args()
    captures = sorted(options.captures.glob("*.pcap"))
    if not captures:
        sys.exit(f"--captures must hold .pcap files, got none in {options.captures}")
    print(f"{'capture':34} {'runs':>4} {'played':>8} {'sent':>8} {'dropped':>8} {'postponed':>9} {'worst':>8} {'exit codes'}")
    lost = 0
    for capture in captures:
        played = sent = dropped = postponed = 0
        worst_s, codes = 0.0, set()
        for _ in range(options.times):
            with tempfile.TemporaryDirectory() as directory, load(directory, cold=options.cold):
                time.sleep(LOADED_S)
                summary, code = replay(capture, options.seconds)
            codes.add(code)
            played += sum(one["played_packets"] for one in summary["replays"])
            sent += sum(flow["sent_packets"] for flow in summary["flows"])
            dropped += sum(flow["dropped_packets"] for flow in summary["flows"])
            moved_s = max(one["postponed_s"] for one in summary["replays"])
            postponed += moved_s > 0
            worst_s = max(worst_s, moved_s)
        lost += dropped + played - sent
        print(f"{capture.name:34} {options.times:4} {played:8} {sent:8} {dropped:8} {postponed:6} runs {worst_s:6.3f} s {sorted(codes)}", flush=True)
    sys.exit(1 if lost else 0)


if __name__ == "__main__":
    main()
