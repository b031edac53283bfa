"""ROS 2 topics by the environment's own rclpy: its middleware, its quality of service, its parameters.

Messages are published as the bytes that a bag has: those of ``rosbags``.
"""

import shlex
from importlib import import_module
from typing import Any

import structlog

from hilsim.api.packet import Packet
from hilsim.errors import ConfigError
from hilsim.show.outputs.events import Event, SourceInfo
from hilsim.show.outputs.ros import Layout, RosMessages, Stamped

log = structlog.get_logger("hilsim")
_DEPTH = 10


class Ros2Topics:
    """Publisher of a source's messages: the node ``hilsim``.

    Attributes:
        messages: Messages published.
    """

    def __init__(
        self, info: SourceInfo, domain: int | None = None, ros_args: str = "", *, layout: Layout = "xyzirt", with_laser_scans: bool = False
    ) -> None:
        """Create the node.

        Args:
            info: Description of the source.
            domain: ROS_DOMAIN_ID; None for that of the environment.
            ros_args: Arguments as after ``--ros-args``: remappings, parameters.
            layout: Layout of point clouds.
            with_laser_scans: As for ``RosMessages``.

        Raises:
            ConfigError: a package is missing, or the node cannot be created.
        """
        self._made = RosMessages(info, layout=layout, with_laser_scans=with_laser_scans)
        try:
            import rclpy  # noqa: PLC0415 - an extra
        except ImportError as error:
            raise ConfigError(
                f"ROS 2 topics require rclpy: source a ROS 2 of Python's own version, or pip install 'hilsim-lidar[ros2]': {error}"
            ) from error
        self._context = rclpy.Context()
        try:
            rclpy.init(
                args=["--ros-args", *shlex.split(ros_args)],
                context=self._context,
                domain_id=domain,
                signal_handler_options=rclpy.signals.SignalHandlerOptions.NO,
            )
            self._node = rclpy.create_node("hilsim", context=self._context, start_parameter_services=False)
        except (RuntimeError, ValueError) as error:  # ValueError: an open quotation
            raise ConfigError(f"--ros-args and the environment must be accepted by ROS 2, got {error}") from error
        self._publishers: dict[str, Any] = {}
        self.messages = 0

    def write(self, event: Event) -> None:
        """Publish an event's messages; packets are not published."""
        if isinstance(event, Packet):
            return
        for stamped in self._made.messages(event):
            if stamped.topic not in self._publishers:
                self._publishers[stamped.topic] = self._publisher(stamped)
            if (publisher := self._publishers[stamped.topic]) is not None:
                publisher.publish(bytes(self._made.store.serialize_cdr(stamped.message, stamped.kind)))
                self.messages += 1

    def _publisher(self, stamped: Stamped) -> Any:
        """The publisher of a topic; None where the environment lacks its type."""
        from rclpy.qos import DurabilityPolicy, QoSProfile  # noqa: PLC0415 - an extra
        from rclpy.qos_overriding_options import QoSOverridingOptions  # noqa: PLC0415

        package, _, name = stamped.kind.partition("/msg/")
        try:
            kind = getattr(import_module(f"{package}.msg"), name)
        except ImportError:
            log.warning("publish.topic_left_out", topic=stamped.topic, reason=f"this ROS 2 has no package {package}")
            return None
        qos = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL) if stamped.is_static else QoSProfile(depth=_DEPTH)  # both reliable
        return self._node.create_publisher(kind, stamped.topic, qos, qos_overriding_options=QoSOverridingOptions.with_default_policies())

    def close(self) -> None:
        """Leave the domain."""
        self._node.destroy_node()
        self._context.shutdown()
