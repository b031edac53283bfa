"""Memory of a daemon and of the live view on it, minute by minute, with three browsers of which one never reads.

    python bench/bench_view_memory.py [--minutes 10] [--json FILE]

The demo is sent by ``hilsim run``, and ``hilsim view`` follows it, with objects once a second. Two browsers read; the third one reads nothing, is disconnected
by the view after 30 s, and connects again 10 s later. It takes as long as it measures, and half a minute.

On two cores beside other work (load 6 to 13), the view had 282 MB at the beginning, 336 MB after one minute, 284 to 325 MB in the following nine, without a
trend, and the daemon 250 to 255 MB; each reading browser got 1.1 scans a second, because the view has a low priority. Without
``hilsim.show.view.memory.return_large_arrays`` the view had 455 MB at the beginning, and 509 to 529 MB in the minutes from the first to the eighth (load 2 to 7).
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
from bench_timing import describe_machine
from bench_view_page import _camera, _read, _used

import hilsim
from hilsim.limits import VIEW_STALLED_S

SETTLE_S, AGAIN_S, LARGE_BYTES = 15.0, 10.0, 100_000


async def _opened(url):
    """Session with the cookie of a view, once its page has started."""
    session = aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))
    while True:
        async with session.get(url) as answer:
            if "is starting" not in await answer.text():
                return session
        await asyncio.sleep(0.1)


async def _stall(session, root):
    """A client that reads nothing until the view has disconnected it, and connects again."""
    while True:
        stream = await session.ws_connect(root, protocols=("viser-v1.1.1",), origin=root.rstrip("/"), max_msg_size=0)
        await stream.send_bytes(_camera())
        await asyncio.sleep(VIEW_STALLED_S.bound + AGAIN_S)
        await stream.close()


async def _measure(url, pids, minutes):
    """Resident megabytes of each process at the beginning and after each minute, and figures of the browsers."""
    session, root = await _opened(url), url.partition("?")[0]
    frames = [[], []]
    browsers = [asyncio.create_task(_read(session, url, mine, LARGE_BYTES)) for mine in frames]
    browsers.append(asyncio.create_task(_stall(session, root)))
    await asyncio.sleep(SETTLE_S)
    begun_s = time.monotonic()
    for mine in frames:
        mine.clear()
    sizes = {name: [] for name in pids}
    for minute in range(minutes + 1):
        await asyncio.sleep(max(begun_s + 60.0 * minute - time.monotonic(), 0.0))
        for name, pid in pids.items():
            sizes[name].append(round(_used(pid)[1] / 1e6, 1))
        print(f"{minute:3} min: " + ", ".join(f"{name} {mine[-1]:.1f} MB" for name, mine in sizes.items()), flush=True)
    took_s = time.monotonic() - begun_s
    for browser in browsers:
        browser.cancel()
    await asyncio.gather(*browsers, return_exceptions=True)
    await session.close()
    return {"resident_mb": sizes, "scans_a_second": [round(len(mine) / took_s, 1) for mine in frames]}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=int, default=10)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    print(describe_machine())
    with hilsim.Daemon("demo", to="127.0.0.1:9") as daemon:
        command = [sys.executable, "-m", "hilsim", "view", daemon.control.address, "--at", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as view:
            try:
                url = view.stdout.readline().strip()
                found = asyncio.run(_measure(url, {"daemon": daemon.pid, "view": view.pid}, options.minutes))
            finally:
                view.terminate()
    found["load"] = round(os.getloadavg()[0], 1)
    print(f"scans a second of the reading browsers: {found['scans_a_second']}; load {found['load']}")
    if options.json:
        options.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
