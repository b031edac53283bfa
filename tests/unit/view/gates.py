"""Gate in front of a page, and clients of it that are no browser."""

from contextlib import asynccontextmanager

import aiohttp
import msgspec
from viser import _messages

from hilsim.show.view.gate import Gate, listen, new_token
from hilsim.show.view.serving import server_beside

PROTOCOL = "viser-v1.1.1"


@asynccontextmanager
async def opened():
    """A gate in front of a server of viser: the gate, the server and its Unix socket."""
    gate = Gate(listen("127.0.0.1", 0), new_token())
    async with gate.serve(), server_beside("test") as (server, path):
        gate.open_to(path)
        yield gate, server, path


@asynccontextmanager
async def admitted(gate):
    """A client that has opened the printed URL."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        async with client.get(gate.url) as page:
            assert page.status == 200
        yield client


def root(gate):
    """URL of the page without the token."""
    return gate.url.partition("?")[0]


def origin(gate):
    return root(gate).rstrip("/")


def stream(gate, client, **options):
    return client.ws_connect(root(gate), **{"protocols": (PROTOCOL,), "origin": origin(gate), "max_msg_size": 0, **options})


def encoded(message):
    """Bytes of a message, as viser's client sends it."""
    return msgspec.msgpack.encode(message.as_serializable_dict())


def camera():
    """The message with which a browser reports its camera; the first one makes it a client."""
    return _messages.ViewerCameraMessage(
        wxyz=(1.0, 0.0, 0.0, 0.0),
        position=(0.0, 0.0, 3.0),
        fov=0.9,
        near=0.1,
        far=100.0,
        image_height=480,
        image_width=640,
        look_at=(0.0, 0.0, 0.0),
        up_direction=(0.0, 0.0, 1.0),
    )
