"""``hilsim replay`` as a process, and what arrives from it."""

import asyncio
import json
import threading

from hilsim.capture.live import Listener
from tests import commands

START_TIMEOUT_S = 120


class Arrivals:
    """Datagrams that arrive at some ports of 127.0.0.1, gathered by a thread with a loop of its own."""

    def __init__(self, count):
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._done = None
        self.ports = ()
        self.datagrams = []
        self._thread = threading.Thread(target=self._loop.run_until_complete, args=(self._gather(count),))
        self._thread.start()
        assert self._ready.wait(60)

    async def _gather(self, count):
        self._done = asyncio.Event()
        async with Listener(host="127.0.0.1", ports=(0,) * count) as listener:
            self.ports = listener.bound_ports()
            self._ready.set()
            batches = asyncio.create_task(self._take(listener))
            await self._done.wait()
            await asyncio.sleep(0.2)  # what was sent last is on its way through the kernel
            batches.cancel()

    async def _take(self, listener):
        async for batch in listener.batches():
            self.datagrams.extend(batch)

    def close(self):
        """Stop listening; returns what arrived, in order."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._done.set)
            self._thread.join(60)
            self._loop.close()
        return self.datagrams

    def by_port(self, port):
        return [datagram for datagram in self.close() if datagram.destination_port == port]


def replay(*arguments, check=True, timeout_s=START_TIMEOUT_S):
    """Run ``hilsim replay … --json`` to its end; returns its summary (or the finished process with ``check=False``).

    What a busy machine sends late is sent all the same: these tests are about what arrives, not when.
    """
    done = commands.run("replay", "--late-policy", "send", *arguments, "--json", timeout_s=timeout_s)
    if not check:
        return done
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def rerouted(flows, ports):
    """``--flow`` options that send each recorded destination port to a port of ours."""
    options = []
    for recorded, port in zip(flows, ports, strict=True):
        options += ["--flow", f">:{recorded}=>127.0.0.1:{port}"]
    return options
