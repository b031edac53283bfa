"""Lateness of a daemon with the live view's page open, and without it, in turn.

    python bench/bench_view_live.py [--seconds 10] [--turns 3]

The demo is sent while another process is the page of a view: 10 updates a second of 300,000 points, to three browsers of which one never reads, with the
priority that ``hilsim view`` has. Stretches with the page and without it take turns; lateness is the daemon's own histogram, which every stretch of a kind adds to.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
from bench_timing import describe_machine
from bench_view_page import _camera, _read

import hilsim
from hilsim.show.view.feed.series import quantile

POINTS, SETTLE_S = 300_000, 4.0
PAGE = Path(__file__).with_name("bench_view_page.py")


class Watching:
    """A view's page with three browsers."""

    async def __aenter__(self):
        command = [sys.executable, str(PAGE), "--serve", str(POINTS)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, preexec_fn=lambda: os.nice(10))  # noqa: ASYNC220, PLW1509 - a bench
        url = await asyncio.to_thread(self.process.stdout.readline)
        url, root = url.strip(), url.partition("?")[0]
        self.session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
        while True:
            async with self.session.get(url) as answer:
                if "is starting" not in await answer.text():
                    break
            await asyncio.sleep(0.1)
        self.stalled = await self.session.ws_connect(root, protocols=("viser-v1.1.1",), origin=root.rstrip("/"), max_msg_size=0)
        await self.stalled.send_bytes(_camera())
        self.frames = [[], []]
        self.readers = [asyncio.create_task(_read(self.session, url, mine, 12 * POINTS)) for mine in self.frames]
        await asyncio.sleep(SETTLE_S)
        return self

    async def __aexit__(self, *error):
        for reader in self.readers:
            reader.cancel()
        await asyncio.gather(*self.readers, return_exceptions=True)
        await self.session.close()
        self.process.terminate()
        await asyncio.to_thread(self.process.wait)


async def measure(daemon, seconds, turns):
    """Histograms of lateness, dropped packets and frames a second, with and without the page."""
    grown, dropped, frames = {True: 0, False: 0}, {True: 0, False: 0}, []

    def flow():
        return daemon.control.state()["sensors"]["roof"]["flows"]["data"]

    async def stretch(is_watched):
        before = await asyncio.to_thread(flow)
        await asyncio.sleep(seconds)
        after = await asyncio.to_thread(flow)
        new = [now - then for now, then in zip(after["lateness"]["cumulative"], before["lateness"]["cumulative"], strict=True)]
        grown[is_watched] = new if grown[is_watched] == 0 else [one + other for one, other in zip(grown[is_watched], new, strict=True)]
        dropped[is_watched] += after["dropped_packets"] - before["dropped_packets"] + after["late_packets"] - before["late_packets"]
        return after["lateness"]["bounds_s"]

    for _ in range(turns):
        bounds_s = await stretch(is_watched=False)
        async with Watching() as watching:
            begun_s = time.monotonic()
            for mine in watching.frames:
                mine.clear()
            await stretch(is_watched=True)
            frames += [len(mine) / (time.monotonic() - begun_s) for mine in watching.frames]
    return bounds_s, grown, dropped, frames


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    print(describe_machine())
    with hilsim.Daemon("demo") as daemon:
        bounds_s, grown, dropped, frames = asyncio.run(measure(daemon, options.seconds, options.turns))
    for is_watched, title in ((False, "without"), (True, "with the page")):
        late_us = [f"p{100 * q:g} {1e6 * quantile(bounds_s, grown[is_watched], q):.0f} us" for q in (0.5, 0.99, 0.999)]
        print(f"{title:14}: {grown[is_watched][-1]} packets, {dropped[is_watched]} late or dropped, lateness {', '.join(late_us)}")
    print("scans a second of the reading browsers:", ", ".join(f"{rate:.1f}" for rate in frames))


if __name__ == "__main__":
    main()
