"""Metrics of the lidars published to Gazebo's subscribers."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.telemetry.metrics import Label, counter


@dataclass(frozen=True, kw_only=True)
class GazeboReading:
    """One lidar published to Gazebo's subscribers.

    Attributes:
        name: Name in the SDF file, ``model::link::sensor``.
    """

    name: Annotated[str, Label("lidar")]
    scans: Annotated[int, counter("hilsim_gazebo_scans_total", "Measurements of a lidar with a subscriber")]
    messages: Annotated[int, counter("hilsim_gazebo_messages_total", "Messages of a lidar handed to Gazebo's transport")]
    skipped_scans: Annotated[int, counter("hilsim_gazebo_skipped_scans_total", "Measurements skipped because earlier ones took too long")]
