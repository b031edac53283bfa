"""Arguments of the flight loop: constants, its own state, message buffers, and data shared with the rest of the daemon."""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference
from hilsim.faults.table import FaultTable
from hilsim.parts.vehicle.autopilot.change_table import VehicleChanges
from hilsim.parts.vehicle.autopilot.send_queue import Outbox, Pace
from hilsim.parts.vehicle.autopilot.session import Session
from hilsim.parts.vehicle.autopilot.vehicle_sensors import Instruments
from hilsim.parts.vehicle.physics.hold import Hold, HoldState
from hilsim.parts.vehicle.physics.multirotor import Multirotor, MultirotorState
from hilsim.parts.vehicle.physics.surroundings import Surroundings
from hilsim.parts.vehicle.physics.touching import Touch
from hilsim.protocols.mavlink.frames import ByteStream
from hilsim.protocols.mavlink.messages import Draft, Origin
from hilsim.transmit.links.descriptors import Waits
from hilsim.transmit.packet_queue import PacketQueue
from hilsim.world.geometry.tracks import PoseTrack
from hilsim.world.platforms.wind import Wind, WindState


class FlightCount(IntEnum):
    """Columns of ``SharedTelemetry.counts``; they only increase."""

    RECEIVED_FRAMES = 0
    RECEIVED_BYTES = 1
    SENSOR_FRAMES = 2
    """HIL_SENSOR frames made; ``OutboxCount`` counts those replaced before they were sent."""
    GPS_FRAMES = 3
    ACTUATOR_FRAMES = 4
    SKIPPED_SENSORS = 5
    """Sensor frames not made because the machine stalled."""
    STALLS = 6
    """Number of stalls too long to be made up."""
    UNFORWARDED_FRAMES = 7
    """Frames of the controller not forwarded to ground stations, because their packet queue was full."""
    LINK_LOSSES = 8
    LOOKS = 9
    LOCKSTEP_TIMEOUTS = 10
    OBSERVATIONS = 11
    """OBSTACLE_DISTANCE and DISTANCE_SENSOR frames sent to the controller."""
    FOREIGN_DATAGRAMS = 12
    """ArduPilot's link: datagrams other than servo packets."""
    LOST_FRAMES = 13
    """ArduPilot's link: lost servo packets."""
    UNANSWERED = 14
    """ArduPilot's link: answers that could not be sent."""
    UNSENT_OBSTACLES = 15
    """OBSTACLE_DISTANCE and DISTANCE_SENSOR frames not sent: the controller was silent, or its link was congested."""
    UNTAKEN_OBSTACLES = 16
    """OBSTACLE_DISTANCE and DISTANCE_SENSOR frames that the loop was too slow to take; the only column written by another thread, the producer."""


class Line(NamedTuple):
    """The line to the controller.

    Attributes:
        pace: Rate limit of the line.
        is_stream: False for UDP, where each frame is a datagram.
        is_simulator: Whether it is PX4's simulator link, without a real aircraft: no heartbeats are sent, and the HIL flag is not required.
    """

    pace: Pace
    is_stream: bool
    is_simulator: bool


@by_reference
class LoopContext(NamedTuple):
    """The vehicle, its sensors and its line to the controller; constants.

    Attributes:
        multirotor: The vehicle.
        wind: Wind around the vehicle.
        instruments: Sensors of the vehicle.
        line: Line to the controller.
        is_held: Whether the built-in position hold controls the vehicle.
        hold: The position hold.
        track: Track of the position hold.
        is_lockstep: Whether the physics wait for the controller's answers, so that the controller's clock equals the sensors' time.
        no_faults: Table of faults until changes bring another one.
    """

    multirotor: Multirotor
    wind: Wind
    instruments: Instruments
    line: Line
    is_held: bool
    hold: Hold
    track: PoseTrack
    is_lockstep: bool
    no_faults: FaultTable


class FlightWord(IntEnum):
    """Columns of ``Flight.word``; times are rig times."""

    NEXT_STEP_NS = 0
    NEXT_SENSOR_NS = 1
    NEXT_GPS_NS = 2
    NEXT_SECOND_NS = 3
    """Due time of the next heartbeat and time of day."""
    NEXT_LOOK_NS = 4
    FRAMES = 5
    SAMPLE_DUE_NS = 6
    """Due time of the sensor frame in the outbox."""
    SENT_NS = 7
    """Departure time of the sensor frame whose motor command is awaited."""
    IS_AWAITED = 8
    IS_OPEN = 9
    RECEIVED_NS = 10
    """Arrival time of the last bytes."""
    SEEN_STATE = 12
    """Session state at the loop's last turn."""
    DRAINING_NS = 13
    """Time of the latest late answer (to a sensor frame other than the newest); sensor frames wait until a controller in lockstep sends no more of them."""
    ASKED_NS = 14
    """Time of the last request for the controller's heartbeat."""
    UNSENT_FIELDS = 11
    """Bits of ``HIL_SENSOR.fields_updated`` not sent yet: those of replaced frames are added to the next."""


@by_reference
class Flight(NamedTuple):
    """State of the flight, used by the loop alone.

    Attributes:
        state: State of the vehicle, in its own time, which stops with it.
        start: ``float64[13]``, initial motion, also after a controller's restart.
        wind_state: State of the gusts.
        hold_state: State of the position hold.
        command: ``float64[n]``, rotor commands.
        imu_sums: ``float64[8]``, sums of specific force and rates since the previous sensor frame, and their number.
        around: Surfaces that the vehicle can touch.
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
    """Buffers of the link: messages to fill in, received bytes, frames to send; used by the loop alone except for the counts of ``stream`` and ``outbox``.

    Attributes:
        origin: Sender of hilsim's frames.
        heartbeat: HEARTBEAT to send.
        system_time: SYSTEM_TIME to send.
        sensor: HIL_SENSOR to send.
        gps: HIL_GPS to send.
        timesync: TIMESYNC to send.
        request: Request for a heartbeat to send.
        received_heartbeat: Received HEARTBEAT.
        received_controls: Received HIL_ACTUATOR_CONTROLS.
        received_timesync: Received TIMESYNC.
        frame: ``uint8[280]``, working array.
        stream: Received bytes.
        outbox: Frames to send.
        waits: Memory for waiting.
        nothing: A packet queue that is always empty, used when frames of ground stations are blocked.
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
    """Descriptor of the link, -1 for none. The daemon writes a descriptor where there is none; the loop writes -1 when the link is gone, and the daemon may then close it."""
    CLOSES = 2
    """1 asks the loop to release the link."""


@by_reference
class SharedTelemetry(NamedTuple):
    """Data shared between the loop and the rest of the daemon; histograms have the bins of ``transmit.statistics``.

    Attributes:
        control: ``int64[n]``, columns by ``ControlWord``.
        wakes: ``int64[8]``, column 0: eventfd that wakes the loop; column 1: eventfd that the loop writes when frames are on ``to_stations``; -1 for none.
        session: Session, written by the loop.
        counts: ``int64[n]``, columns by ``FlightCount``.
        lateness: ``int64[BINS]``, time from a sensor frame's due time to its departure.
        round_trip: ``int64[BINS]``, time from a sensor frame to the next motor command.
        gap: ``int64[BINS]``, time between motor commands.
        sums_ns: ``int64[8]``, sums of the values in the three histograms.
        to_stations: Frames of the controller.
        to_controller: Frames of ground stations.
        observations: OBSTACLE_DISTANCE and DISTANCE_SENSOR frames.
        touch: Contacts of the vehicle.
        changes: Timed changes of the vehicle.
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
    changes: VehicleChanges
