"""A sensor's web interface under load: what 1,000 requests a second cost the packets of the sensor.

    python bench/bench_sensor_web.py [--seconds 60] [--rate 1000] [--busy]

One daemon sends a VLP-16 in the demo street. Stretches with ``--rate`` requests a second (documents, the page, forms with right and wrong values, four
connections) and stretches without take turns, ten seconds each. Reported for both: how late data packets left, and packets late, dropped or not rendered
(the daemon's own metrics); the answers by their status.
"""

import argparse
import asyncio
import contextlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import aiohttp
from bench_changes import COUNTERS, START_S, STRETCH_S, grown
from bench_gazebo import late_p99_us, metrics
from bench_timing import burners, describe_machine

HOST, PORT = "127.0.1.230", 24290
RIG = f"""
name = "web"
seed = 4
[scene]
generator = "street"
[platform]
kind = "street"
[metrics]
port = 0
[[sensor]]
name = "roof"
profile = "vlp16"
[sensor.network]
source = "{HOST}"
source_ports = "any"
[sensor.web]
port = {PORT}
"""
CONNECTIONS = 4


async def request(session, chance):
    """Send one request of any kind; returns the answer's status."""
    url = f"http://{HOST}:{PORT}"
    kind = chance.random()
    if kind < 0.7:
        name = chance.choice(["info.json", "settings.json", "status.json", "diag.json", "snapshot.hdl"])
        sent = session.get(f"{url}/cgi/{name}")
    elif kind < 0.8:
        sent = session.get(url)
    elif kind < 0.81:
        sent = session.post(f"{url}/cgi/setting", data={"returns": chance.choice(["Strongest", "Last"])})
    else:
        sent = session.post(f"{url}/cgi/setting", data={"rpm": "610"})
    async with sent as answer:
        await answer.read()
        return answer.status


async def load(rate_hz, seconds):
    """Send requests at a rate; returns the number of answers by their status."""
    chance, found, waiting = random.Random(2), Counter(), set()
    connector = aiohttp.TCPConnector(limit=CONNECTIONS)
    async with aiohttp.ClientSession(connector=connector) as session:
        begin_s, sent = time.monotonic(), 0
        while (now_s := time.monotonic()) - begin_s < seconds:
            while sent < rate_hz * (now_s - begin_s) and len(waiting) < 64:
                task = asyncio.create_task(request(session, chance))
                waiting.add(task)
                task.add_done_callback(waiting.discard)
                task.add_done_callback(lambda done: found.update([done.result() if done.exception() is None else type(done.exception()).__name__]))
                sent += 1
            await asyncio.sleep(0.002)
        await asyncio.gather(*waiting, return_exceptions=True)
    return found


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rate", type=float, default=1000.0)
    parser.add_argument("--busy", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, burners(600) if arguments.busy else contextlib.nullcontext():
        rig, ready = Path(name) / "web.toml", Path(name) / "ready.json"
        rig.write_text(RIG, encoding="utf-8")
        options = ["--quiet", "--ready-file", str(ready), "--end-with", str(os.getpid())]
        daemon = subprocess.Popen([sys.executable, "-m", "hilsim", "run", str(rig), *options], stderr=subprocess.DEVNULL)
        try:
            until_s = time.monotonic() + START_S
            while not ready.exists():
                if time.monotonic() > until_s or daemon.poll() is not None:
                    sys.exit("the daemon did not start")
                time.sleep(0.1)
            address = json.loads(ready.read_text())["metrics"]
            answers = Counter()
            print(describe_machine())
            for _ in range(max(round(arguments.seconds / STRETCH_S / 2), 1)):
                for rate_hz in (0.0, arguments.rate):
                    before = metrics(address)
                    if rate_hz:
                        answers.update(asyncio.run(load(rate_hz, STRETCH_S)))
                    else:
                        time.sleep(STRETCH_S)
                    after = metrics(address)
                    lost = sum(grown(before, after, each) for each in COUNTERS[1:])
                    print(
                        f"{rate_hz:6.0f} requests a second: p99 {late_p99_us(before, after):.0f} us, sent {grown(before, after, 'hilsim_sent_packets_total'):.0f}, "
                        f"late {grown(before, after, COUNTERS[0]):.0f}, lost {lost:.0f}"
                    )
            print(f"{sum(answers.values())} answers: {dict(answers)}")
        finally:
            daemon.terminate()
            daemon.wait()


if __name__ == "__main__":
    main()
