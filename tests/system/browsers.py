"""A real browser, without a screen: Debian's Chromium, driven by playwright."""

import io
import os
import shutil
from contextlib import asynccontextmanager

import numpy as np
import pytest
from PIL import Image
from playwright.async_api import async_playwright

_PROGRAMS = ("chromium-headless-shell", "chromium")
_ARGUMENTS = ("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader")
"""WebGL by the processor."""
PICTURES = "HILSIM_PICTURES"
"""Environment variable: the folder to which tests write the pictures of the documentation."""
PATIENCE_MS = 120_000
"""On a busy machine a page takes more than a minute."""


@asynccontextmanager
async def browser():
    """A browser; the test is skipped where there is none."""
    program = next((path for name in _PROGRAMS if (path := shutil.which(name))), None)
    if program is None:
        pytest.skip("needs a browser (Debian's chromium-headless-shell)")
    async with async_playwright() as playwright:
        opened = await playwright.chromium.launch(executable_path=program, args=_ARGUMENTS, timeout=PATIENCE_MS)
        try:
            yield opened
        finally:
            await opened.close()


@asynccontextmanager
async def window(opened, width=1000, height=1400):
    """A window of its own, with its own cookies. Requests to anywhere but this machine fail the test."""
    scale = 1.0 if PICTURES in os.environ else 0.5  # the processor draws each pixel
    context = await opened.new_context(viewport={"width": width, "height": height}, device_scale_factor=scale)
    context.set_default_timeout(PATIENCE_MS)
    asked = []
    context.on("request", lambda request: asked.append(request.url))
    try:
        yield await context.new_page()
    finally:
        await context.close()
    assert [url for url in asked if not url.startswith(("http://127.", "blob:http://127.", "data:"))] == []


async def pixels(page):
    """``uint8[h, w, 3]`` of a window."""
    return np.asarray(Image.open(io.BytesIO(await page.screenshot(timeout=PATIENCE_MS))).convert("RGB"))
