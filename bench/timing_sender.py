"""One measured sender in a process of its own, with the load that belongs into its process; prints what it did as one line of JSON.

timing_sender.py --variant NAME --load NAME --port PORT --count N --flows N
"""

import argparse
import asyncio
import json
import os
import threading
import time

import asyncio_dgram
import numpy as np

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import kernel
from hilsim.transmit.libc import monotonic_ns, sleep_until
from hilsim.transmit.ring import depth, push
from hilsim.transmit.scheduling import ThreadSettings, enter
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter, quantile_ns
from hilsim.transmit.transmitter import Transmitter

PERIOD_NS = 1_327_104  # VLP-16: 24 firing sequences of 55.296 us a packet
PAYLOAD_SIZE = 1206
LEAD_NS = 40_000_000
NOBODY = 65534
VARIANTS = {
    "hilsim auto": {"scheduling": "auto"},
    "hilsim fifo, no spin": {"scheduling": "fifo", "spin_us": 0.0},
    "hilsim slice": {"scheduling": "slice"},
    "hilsim slice unprivileged": {"scheduling": "auto"},  # and the process gives up all privileges
    "hilsim plain": {"scheduling": "plain"},
}


@kernel
def feed(rings, flows, count, start_ns, period_ns, lead_ns, payload):
    """Keep every flow's ring filled ``lead_ns`` ahead; flows are evenly staggered."""
    words = payload.view(np.int64)
    for number in range(count):
        for flow in range(flows):
            deadline_ns = start_ns + number * period_ns + flow * period_ns // flows
            words[0] = flow
            words[1] = number
            words[2] = deadline_ns
            if monotonic_ns() < deadline_ns - lead_ns:
                sleep_until(deadline_ns - lead_ns + 2_000_000)  # some at a time
            while not push(rings, flow, deadline_ns, deadline_ns, payload, PAYLOAD_SIZE):
                sleep_until(monotonic_ns() + 1_000_000)


@kernel
def compute(stop, scratch):
    """Floating point work over a block of memory, as rendering does, until stopped."""
    total = 0.0
    while load_acquire(stop, (0,)) == 0:
        for i in range(scratch.size):
            scratch[i] = np.sqrt(scratch[i] * scratch[i] + 1.5) * 0.999
            total += scratch[i]
    return total


def send_hilsim(variant, port, count, flows):
    """Our own transmitter, fed by a kernel in another thread."""
    spec = TransmitSpec(late_policy="send", slots=64, **VARIANTS[variant])
    payload = np.zeros(PAYLOAD_SIZE + 2, np.uint8)
    with Transmitter(spec, flows=flows, capacity=PAYLOAD_SIZE) as transmitter:
        feed(transmitter.rings, 0, 0, 0, PERIOD_NS, LEAD_NS, payload)
        depth(transmitter.rings, 0)
        for flow in range(flows):
            target = SocketSpec(source="127.0.0.1", source_port=0, destination="127.0.0.1", destination_port=port)
            transmitter.add_flow(FlowSpec(name=f"{flow}/data", socket=target, packet_rate_hz=1e9 / PERIOD_NS))
        if variant.endswith("unprivileged") and os.getuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        transmitter.start()
        sending = next(thread for thread in threading.enumerate() if thread.name == "transmit")
        start_ns = time.monotonic_ns() + 300_000_000

        def run_render():
            enter(ThreadSettings(scheduling="auto" if spec.scheduling == "fifo" else spec.scheduling, priority=20))
            feed(transmitter.rings, flows, count, start_ns, PERIOD_NS, LEAD_NS, payload)

        render_thread = threading.Thread(target=run_render)
        render_thread.start()
        render_thread.join()
        while any(depth(transmitter.rings, flow) for flow in range(flows)):
            time.sleep(0.01)
        cpu_s = time.clock_gettime(time.pthread_getcpuclockid(sending.ident))
        counters = transmitter.statistics.counters
        return {
            "planned": count * flows,
            "sent": int(counters[:, Counter.PACKETS].sum()),
            "early": int(counters[:, Counter.EARLY].sum()),
            "own_p99_us": quantile_ns(transmitter.statistics.lateness.sum(axis=0), 0.99) / 1000,
            "cpu_s": cpu_s,
            "scheduling": transmitter.scheduling.mode.value,
        }


async def send_asyncio_dgram(port, count):
    """The usual asyncio way: sleep until the deadline, await the send."""
    stream = await asyncio_dgram.connect(("127.0.0.1", port))
    payload = bytearray(PAYLOAD_SIZE)
    words = memoryview(payload)[:24].cast("q")
    start_ns = time.monotonic_ns() + 200_000_000
    give_up_ns = start_ns + 3 * count * PERIOD_NS
    sent = 0
    for number in range(count):
        words[1] = number
        words[2] = deadline_ns = start_ns + number * PERIOD_NS
        now_ns = time.monotonic_ns()
        if now_ns > give_up_ns:
            break
        if now_ns < deadline_ns:
            await asyncio.sleep((deadline_ns - now_ns) / 1e9)
        await stream.send(bytes(payload))
        sent += 1
    stream.close()
    return {"planned": count, "sent": sent, "cpu_s": time.thread_time(), "scheduling": "plain"}


def start_load(name, stop):
    """Threads of this process that disturb the sender; returns them."""

    def hog():
        number = 0
        while not stop[0]:
            number += 1

    threads = []
    if name == "gil":
        threads = [threading.Thread(target=hog)]
    elif name == "render":
        scratch = [np.linspace(0, 1, 1 << 20) for _ in range(os.cpu_count())]
        compute(np.ones(8, np.int64), scratch[0])  # compile
        threads = [threading.Thread(target=compute, args=(stop, each)) for each in scratch]
    for thread in threads:
        thread.daemon = True
        thread.start()
    return threads


def main():
    """Send, and say what was sent."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--variant", required=True)
    parser.add_argument("--load", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--flows", type=int, required=True)
    arguments = parser.parse_args()
    stop = np.zeros(8, np.int64)
    threads = start_load(arguments.load, stop)
    try:
        if arguments.variant == "asyncio-dgram":
            result = asyncio.run(send_asyncio_dgram(arguments.port, arguments.count))
        else:
            result = send_hilsim(arguments.variant, arguments.port, arguments.count, arguments.flows)
    finally:
        stop[0] = 1
        for thread in threads:
            thread.join()
    print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
