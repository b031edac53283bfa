"""``hilsim view`` as a process: its URL comes at once, it shows captures, and its end changes nothing of a daemon."""

import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.system.browsers import browser, pixels, window

pytest.importorskip("hilsim.show.view.feed.daemon_feed", reason="needs the feeds of the live view")

pytestmark = [pytest.mark.system, pytest.mark.cold, pytest.mark.timeout(600)]

_PICTURES = "HILSIM_PICTURES"
_LIGHT = ("--set", "sensor.roof.sub_rays=1")
"""A view shows points, whatever they cost: a ray a firing leaves the processor to the browser."""
_URL = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")


def _start(*arguments):
    return subprocess.Popen([sys.executable, "-m", "hilsim", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def _page(url):
    """Text of the page behind a URL, once the view has started."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar(DefaultCookiePolicy(strict_domain=False))))
    deadline_s = time.monotonic() + 120.0
    while True:
        with browser.open(url) as answer:
            text = answer.read().decode()
        if "is starting" not in text:
            return text
        assert time.monotonic() < deadline_s
        time.sleep(0.1)


def test_the_url_opens_the_page_of_a_capture_and_a_signal_ends_the_view(tmp_path):
    capture = tmp_path / "a.pcap"
    subprocess.run([sys.executable, "-m", "hilsim", "record", "demo", "-o", str(capture), "--duration-s", "0.3"], check=True, capture_output=True)
    with _start("view", str(capture), "--at", "127.0.0.1:0") as view:
        try:
            url = view.stdout.readline().strip()
            assert _URL.fullmatch(url)
            assert "<html" in _page(url)
            view.send_signal(signal.SIGTERM)
            assert view.wait(60) == 0
        finally:
            view.kill()


@pytest.mark.extended
def test_a_daemon_sends_on_when_its_view_is_killed_and_the_view_ends_with_the_daemon():
    with _start(
        "run", "demo", *_LIGHT, "--view-at", "127.0.0.1:0", "--set", "metrics.port=0", "--to", "127.0.0.1:9", "--log-level", "info"
    ) as daemon:
        try:
            lines = iter(daemon.stderr.readline, "")
            url = next(found[0] for line in lines if (found := _URL.search(line)))
            assert "<html" in _page(url)
            (view,) = _children(daemon.pid)
            os.kill(view, signal.SIGKILL)
            next(line for line in lines if "packets.left" in line)
            assert daemon.poll() is None
            daemon.send_signal(signal.SIGTERM)
            assert "daemon.stopped" in "".join(lines)
            assert daemon.wait(60) == 0
        finally:
            daemon.kill()


@pytest.mark.alone  # a browser without a graphics card takes minutes for a picture beside other tests
@pytest.mark.asyncio
async def test_a_browser_shows_what_the_demo_sends():
    """Its picture is that of docs/how-to/view.md: ``HILSIM_PICTURES=docs/images`` writes it anew."""
    async with browser() as opened:
        with _start("run", "demo", *_LIGHT, "--view-at", "127.0.0.1:0", "--set", "metrics.port=0", "--to", "127.0.0.1:9") as daemon:
            try:
                url = next(found[0] for line in iter(daemon.stderr.readline, "") if (found := _URL.search(line)))
                _page(url)
                async with window(opened, 1200, 700) as shown:
                    await shown.goto(url)
                    await shown.get_by_text("points of 1 sensor").wait_for()
                    chosen = await shown.locator("label", has_text="colour by").get_attribute("for")
                    await shown.locator(f'[id="{chosen}"]').dispatch_event("click")
                    await shown.locator("[role=option]:visible", has_text="height").first.dispatch_event("click")
                    await shown.get_by_text(re.compile(r"height: -?\d+ to \d+ m")).wait_for()
                    await shown.locator(".mantine-Notification-closeButton").first.dispatch_event("click")
                    daemon.send_signal(signal.SIGSTOP)  # a browser that draws scan after scan without a graphics card takes no pictures
                    picture = await pixels(shown)
            finally:
                daemon.kill()
                daemon.stderr.read()
    assert len(np.unique(picture[:, : picture.shape[1] * 2 // 3].reshape(-1, 3), axis=0)) > 50
    if _PICTURES in os.environ:
        Image.fromarray(picture).resize((960, 560), Image.Resampling.LANCZOS).quantize(128).save(
            Path(os.environ[_PICTURES], "view.png"), optimize=True
        )


def _children(pid):
    """Processes that show what a process sends."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            words = (process / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # no process, or one that has ended
        if b"--end-with" in words and str(pid).encode() in words:
            found.append(int(process.name))
    return found
