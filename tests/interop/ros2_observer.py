"""A subscriber of ROS 2's own: ``python ros2_observer.py FILE FEWEST TOPIC=TYPE...`` in the environment ``.venv-ros``.

It reads each topic by a best-effort and by a reliable reader until each has so many messages, and pickles them by topic and reader, serialised again by ROS 2.
"""

import pickle
import sys
from importlib import import_module
from pathlib import Path

import rclpy
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import serialize_message


def main(output, fewest, *topics):
    """Subscribe, and write what came."""
    rclpy.init()
    node, found = rclpy.create_node("observer"), {}
    for each in topics:
        topic, _, kind = each.partition("=")
        package, _, name = kind.partition("/msg/")
        for reliability in (ReliabilityPolicy.BEST_EFFORT, ReliabilityPolicy.RELIABLE):
            found[topic, reliability.name] = messages = []
            node.create_subscription(
                getattr(import_module(f"{package}.msg"), name),
                topic,
                lambda message, messages=messages: messages.append(serialize_message(message)),
                QoSProfile(depth=10, reliability=reliability),
            )
    print("ready", flush=True)  # noqa: T201 - for the test
    while any(len(messages) < int(fewest) for messages in found.values()):
        rclpy.spin_once(node, timeout_sec=0.2)
    Path(output).write_bytes(pickle.dumps(found))


main(*sys.argv[1:])
