"""Subscribers of ``hilsim publish`` for ``bench_outputs.py``, each a process of its own.

    python bench/outputs_clients.py ros2 DOMAIN TOPIC [--stall]
    python bench/outputs_clients.py foxglove URL TOPIC [--stall]

A client prints ``ready``, then ``first`` with its first message, and at the end of its input a line of JSON: stamps of what it received, in nanoseconds, and
the points of a scan. With ``--stall`` it subscribes, takes one message, and reads nothing more.
"""

import argparse
import asyncio
import contextlib
import json
import struct
import sys
import threading
import time

LONGEST_S = 3600.0


def _say(word):
    print(word, flush=True)


def _until_end_of_input():
    """An event that is set at the end of the input."""
    over = threading.Event()

    def wait():
        sys.stdin.read()
        over.set()

    threading.Thread(target=wait, daemon=True).start()
    return over


def subscribe_ros2(domain, topic, *, stalls):
    """Read a topic as rclpy delivers it; returns stamps and points of a scan."""
    import rclpy  # noqa: PLC0415 - an extra
    from sensor_msgs.msg import PointCloud2  # noqa: PLC0415

    over, stamps, sizes = _until_end_of_input(), [], [0]

    def hear(message):
        if not stamps:
            _say("first")
        stamps.append(message.header.stamp.sec * 1_000_000_000 + message.header.stamp.nanosec)
        sizes[0] = message.width * message.height

    rclpy.init(domain_id=domain)
    node = rclpy.create_node("client")
    node.create_subscription(PointCloud2, topic, hear, 10)
    _say("ready")
    while not over.is_set():
        rclpy.spin_once(node, timeout_sec=0.2)
        if stamps and stalls:
            time.sleep(LONGEST_S)
    return stamps, sizes[0]


async def subscribe_foxglove(url, topic, *, stalls):
    """Read a channel by Foxglove's WebSocket protocol; returns stamps and points of a scan."""
    import websockets  # noqa: PLC0415 - an extra

    over, stamps, channels, size, asked_s = _until_end_of_input(), [], set(), 0, 0.0
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(contextlib.suppress(websockets.ConnectionClosed))  # the publisher is gone
        socket = await stack.enter_async_context(
            websockets.connect(url, subprotocols=["foxglove.sdk.v1"], max_size=None, max_queue=1 if stalls else 16)
        )
        _say("ready")
        while not over.is_set():
            with contextlib.suppress(TimeoutError):
                message = await asyncio.wait_for(socket.recv(), 0.2)
                if isinstance(message, str):
                    text = json.loads(message)
                    channels |= {each["id"] for each in text.get("channels", ()) if text["op"] == "advertise" and each["topic"] == topic}
                elif message[0] == 1:
                    if not stamps:
                        _say("first")
                    stamps.append(struct.unpack("<Q", message[5:13])[0])
                    size = len(message)
            if stamps and stalls:
                time.sleep(LONGEST_S)  # noqa: ASYNC251 - it must not read
            if channels and not stamps and time.monotonic() > asked_s + 0.5:
                asked_s = time.monotonic()
                await socket.send(json.dumps({"op": "subscribe", "subscriptions": [{"id": each, "channelId": each} for each in channels]}))
    return stamps, size // 32


def main():
    """Subscribe and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kind", choices=("ros2", "foxglove"))
    parser.add_argument("place", help="domain or URL")
    parser.add_argument("topic")
    parser.add_argument("--stall", action="store_true")
    options = parser.parse_args()
    if options.kind == "ros2":
        stamps, points = subscribe_ros2(int(options.place), options.topic, stalls=options.stall)
    else:
        stamps, points = asyncio.run(subscribe_foxglove(options.place, options.topic, stalls=options.stall))
    _say(json.dumps({"stamps_ns": stamps, "points": points}))


if __name__ == "__main__":
    main()
