"""The arguments of the flight loop: constants, its own state, message buffers, and what it shares with the rest of the daemon."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.autopilot.send_queue import Outbox, Pace
from hilsim.autopilot.session import Session
from hilsim.autopilot.vehicle_sensors import Instruments
from hilsim.collision.contacts import Touch
from hilsim.collision.surroundings import Surroundings
from hilsim.compilation.jit import by_reference
from hilsim.geometry.tracks import PoseTrack
from hilsim.links.descriptors import Waits
from hilsim.protocols.mavlink.frames import ByteStream
from hilsim.protocols.mavlink.messages import Draft, Origin
from hilsim.transmit.packet_queue import PacketQueue
from hilsim.vehicle.hold import Hold, HoldState
from hilsim.vehicle.multirotor import Multirotor, MultirotorState
from hilsim.vehicle.wind import Wind, WindState


class FlightCount(IntEnum):
    """Columns of ``SharedTelemetry.counts``; they only grow."""

    RECEIVED_FRAMES = 0
    RECEIVED_BYTES = 1
    SENSOR_FRAMES = 2
    """HIL_SENSOR frames made; ``OutboxCount`` counts those that were replaced before they were sent."""
    GPS_FRAMES = 3
    ACTUATOR_FRAMES = 4
    SKIPPED_SENSORS = 5
    """Sensor frames never made, because the machine stood still."""
    STALLS = 6
    """Times that the loop stood still for longer than it makes up."""
    UNFORWARDED_FRAMES = 7
    """Frames of the controller that ground stations missed, because their packet queue was full."""
    LINK_LOSSES = 8
    LOOKS = 9
    LOCKSTEP_TIMEOUTS = 10
    OBSERVATIONS = 11
    """Frames of obstacles and distances passed on to the controller."""
    FOREIGN_DATAGRAMS = 12
    """ArduPilot's link: datagrams that are no servo packets."""
    LOST_FRAMES = 13
    """ArduPilot's link: servo packets that never came."""
    UNANSWERED = 14
    """ArduPilot's link: answers that could not be sent."""
    UNSENT_OBSTACLES = 15
    """Frames of obstacles and distances that the controller did not get: it was silent, or too much waited for its link."""
    UNTAKEN_OBSTACLES = 16
    """Frames of obstacles and distances that the loop did not take in time; the only column that another thread writes, the one that makes them."""


class Line(NamedTuple):
    """The line to the controller.

    Attributes:
        pace: How fast it may be written.
        is_stream: False for UDP, where each frame is a datagram.
        is_simulator: PX4's simulator link, behind which there is no aircraft: no heartbeats are sent, and none need carry the flag of hardware in the loop.
    """

    pace: Pace
    is_stream: bool
    is_simulator: bool


@by_reference
class LoopContext(NamedTuple):
    """The vehicle, its sensors and its line to the controller; constants.

    Attributes:
        multirotor: The vehicle.
        wind: About it.
        instruments: On it.
        line: To the controller.
        is_held: The built-in position hold steers it, no controller.
        hold: The position hold.
        track: Where the hold flies.
        is_lockstep: The controller's clock is the sensors' time: physics waits for its answers.
    """

    multirotor: Multirotor
    wind: Wind
    instruments: Instruments
    line: Line
    is_held: bool
    hold: Hold
    track: PoseTrack
    is_lockstep: bool


class FlightWord(IntEnum):
    """Columns of ``Flight.word``; times are rig times."""

    NEXT_STEP_NS = 0
    NEXT_SENSOR_NS = 1
    NEXT_GPS_NS = 2
    NEXT_SECOND_NS = 3
    """When a heartbeat and the time of day are due."""
    NEXT_LOOK_NS = 4
    FRAMES = 5
    SAMPLE_DUE_NS = 6
    """When the sensor frame in the outbox was due."""
    SENT_NS = 7
    """When the sensor frame went that a motor command is awaited for."""
    IS_AWAITED = 8
    IS_OPEN = 9
    RECEIVED_NS = 10
    """When the last bytes came."""
    SEEN_STATE = 12
    """Of the session, when the loop came by last."""
    DRAINING_NS = 13
    """When an answer came that did not belong to the newest sensor frame: until a controller in lockstep has sent no more of them, no sensor frame is sent."""
    ASKED_NS = 14
    """When the controller was asked for its heartbeat last."""
    UNSENT_FIELDS = 11
    """Bits of ``HIL_SENSOR.fields_updated`` that no sent frame has carried yet: those of replaced frames go with the next."""


@by_reference
class Flight(NamedTuple):
    """The state of the flight; the loop's own.

    Attributes:
        state: Of the vehicle, in its own time, which stands still with it.
        start: ``float64[13]``, motion that it begins with, also after a controller's restart.
        wind_state: Of the gusts.
        hold_state: Of the position hold.
        command: ``float64[n]``, of the rotors.
        imu_sums: ``float64[8]``: sums of specific force and rates since the sensor frame before, and how many.
        around: What it can touch.
        word: ``int64[n]``, columns by ``FlightWord``.
    """

    state: MultirotorState
    start: npt.NDArray[np.float64]
    wind_state: WindState
    hold_state: HoldState
    command: npt.NDArray[np.float64]
    imu_sums: npt.NDArray[np.float64]
    around: Surroundings
    word: npt.NDArray[np.int64]


@by_reference
class LinkBuffers(NamedTuple):
    """Buffers of the link: messages to be filled in, bytes received, frames to be sent; the loop's own but for the counts of ``stream`` and ``outbox``.

    Attributes:
        origin: hilsim.
        heartbeat: To be sent.
        system_time: To be sent.
        sensor: To be sent.
        gps: To be sent.
        timesync: To be sent.
        request: To be sent: the wish for a heartbeat.
        received_heartbeat: Received.
        received_controls: Received.
        received_timesync: Received.
        frame: ``uint8[280]``, working array.
        stream: What came.
        outbox: What goes.
        waits: For waiting.
        nothing: A packet queue that is always empty, in place of the ground stations' where they may not send.
    """

    origin: Origin
    heartbeat: Draft
    system_time: Draft
    sensor: Draft
    gps: Draft
    timesync: Draft
    request: Draft
    received_heartbeat: Draft
    received_controls: Draft
    received_timesync: Draft
    frame: npt.NDArray[np.uint8]
    stream: ByteStream
    outbox: Outbox
    waits: Waits
    nothing: PacketQueue


class ControlWord(IntEnum):
    """Columns of ``SharedTelemetry.control``."""

    ENDS = 0
    """1 ends the loop."""
    LINK = 1
    """The link's descriptor, -1 for none. Others write a descriptor where there is none; the loop writes -1 when the link is gone, and whoever opened it may then close it."""
    CLOSES = 2
    """1 asks the loop to release the link."""


@by_reference
class SharedTelemetry(NamedTuple):
    """What the loop shares with the rest of the daemon; histograms have the bins of ``transmit.statistics``.

    Attributes:
        control: ``int64[n]``, columns by ``ControlWord``.
        wakes: ``int64[8]``: column 0 an eventfd that wakes the loop, column 1 one that the loop writes when frames are on ``to_stations``; -1 for none.
        session: Written by the loop.
        counts: ``int64[n]``, columns by ``FlightCount``.
        lateness: ``int64[BINS]``, of sensor frames, from when they were due to when they were written.
        round_trip: ``int64[BINS]``, from a sensor frame to the next motor command.
        gap: ``int64[BINS]``, between motor commands.
        sums_ns: ``int64[8]``, of what is in the three histograms.
        to_stations: Frames of the controller.
        to_controller: Frames of ground stations.
        observations: Frames with what the vehicle's range sensors see.
        touch: What the vehicle touches.
    """

    control: npt.NDArray[np.int64]
    wakes: npt.NDArray[np.int64]
    session: Session
    counts: npt.NDArray[np.int64]
    lateness: npt.NDArray[np.int64]
    round_trip: npt.NDArray[np.int64]
    gap: npt.NDArray[np.int64]
    sums_ns: npt.NDArray[np.int64]
    to_stations: PacketQueue
    to_controller: PacketQueue
    observations: PacketQueue
    touch: Touch
