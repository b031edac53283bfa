"""Cost of the live view's page: processor time and memory of the view with ten scans a second and three clients, of which one never reads.

Usage: ``python bench/bench_view_page.py [--seconds 40]``. It takes twice that long, and 10 s. Everything is on loopback.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import aiohttp
import msgspec
import numpy as np

from hilsim.api.points import DECODED_DTYPE
from hilsim.read.scans.scan import Scan

_PERIOD_S = 0.1
_SCANS = 4
_SETTLE_S = 5.0
_TICKS_HZ = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_CASES = (100_000, 300_000)


class SteadyFeed:
    """A new scan of so many points every 0.1 s."""

    title = "bench"

    def __init__(self, count):
        made = np.zeros(count, DECODED_DTYPE)
        turn = np.linspace(0.0, 2 * np.pi, count)
        scans = []
        for number in range(_SCANS):
            away = 20.0 + 5.0 * np.sin(5 * turn + number)
            made["x"], made["y"], made["z"] = away * np.sin(turn), away * np.cos(turn), np.sin(40 * turn)
            made["range"], made["intensity"] = away, np.arange(count) % 256
            scans.append(Scan(sensor="roof", number=number, stamp_ns=0, points=made.copy()))
        self._scans, self._begun_s = scans, time.monotonic()

    def sensors(self):
        """Give the only sensor."""
        return ("roof",)

    def scans_since(self, sensor, number):
        """Give the newest scan, if it is new."""
        now = int((time.monotonic() - self._begun_s) / _PERIOD_S)
        return () if now < number else (replace(self._scans[now % _SCANS], sensor=sensor, number=now, stamp_ns=now * 100_000_000),)

    def status(self):
        """Give none."""
        return

    def close(self):
        """Have nothing to close."""
        return


def serve(count):
    """Be the view."""
    from hilsim.show.view.gate import Gate, listen, new_token  # noqa: PLC0415
    from hilsim.show.view.serving import serve_view  # noqa: PLC0415

    gate = Gate(listen("127.0.0.1", 0), new_token())
    print(gate.url, flush=True)
    asyncio.run(serve_view(gate, lambda: SteadyFeed(count)))


def _camera():
    from viser import _messages  # noqa: PLC0415

    return msgspec.msgpack.encode(
        _messages.ViewerCameraMessage(
            wxyz=(1.0, 0.0, 0.0, 0.0),
            position=(0.0, 0.0, 3.0),
            fov=0.9,
            near=0.1,
            far=100.0,
            image_height=480,
            image_width=640,
            look_at=(0.0, 0.0, 0.0),
            up_direction=(0.0, 0.0, 1.0),
        ).as_serializable_dict()
    )


def _used(pid):
    """Processor seconds and resident bytes of a process."""
    words = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / _TICKS_HZ, int(words[21]) * _PAGE_BYTES


async def _read(session, url, frames, large):
    """A client that reads, and counts messages with a whole scan."""
    root = url.partition("?")[0]
    async with session.ws_connect(root, protocols=("viser-v1.1.1",), origin=root.rstrip("/"), max_msg_size=0) as stream:
        await stream.send_bytes(_camera())
        async for message in stream:
            if len(message.data) > large:
                frames.append(time.monotonic())


async def _measure(count, seconds):
    process = subprocess.Popen([sys.executable, __file__, "--serve", str(count)], stdout=subprocess.PIPE, text=True)  # noqa: ASYNC220 - at once
    try:
        url = process.stdout.readline().strip()
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            while True:
                async with session.get(url) as answer:
                    if "is starting" not in await answer.text():
                        break
                await asyncio.sleep(0.1)
            root = url.partition("?")[0]
            stalled = await session.ws_connect(root, protocols=("viser-v1.1.1",), origin=root.rstrip("/"), max_msg_size=0)
            await stalled.send_bytes(_camera())
            frames = [[], []]
            readers = [asyncio.create_task(_read(session, url, mine, 12 * count)) for mine in frames]
            await asyncio.sleep(_SETTLE_S)
            (before_s, first), begun_s = _used(process.pid), time.monotonic()
            for mine in frames:
                mine.clear()
            sizes = [first]
            while time.monotonic() - begun_s < seconds:
                await asyncio.sleep(1.0)
                sizes.append(_used(process.pid)[1])
            took_s = time.monotonic() - begun_s
            used_s = _used(process.pid)[0] - before_s
            for reader in readers:
                reader.cancel()
            await asyncio.gather(*readers, return_exceptions=True)
            await stalled.close()
    finally:
        process.terminate()
        process.wait()
    rates = ", ".join(f"{len(mine) / took_s:.1f}" for mine in frames)
    third = max(len(sizes) // 3, 1)
    memory = f"{np.mean(sizes[:third]) / 1e6:.0f} MB in the first third, {np.mean(sizes[-third:]) / 1e6:.0f} MB in the last, at most {max(sizes) / 1e6:.0f} MB"
    print(f"{count:,} points: {100 * used_s / took_s:.0f} % of a core; scans a second of the reading clients {rates}; {memory}")


def main():
    """Run all cases."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--serve", type=int)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve)
        return
    print(f"three clients, one of which never reads; {options.seconds:g} s each; load {os.getloadavg()[0]:.1f}")
    for count in _CASES:
        asyncio.run(_measure(count, options.seconds))


if __name__ == "__main__":
    main()
