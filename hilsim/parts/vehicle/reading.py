"""Metrics of a vehicle, of its controller's link, and of ports for ground stations."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Annotated, ClassVar

from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.autopilot.passing_state import Errors, Truth
from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount
from hilsim.parts.vehicle.autopilot.session import SessionState, SessionWord
from hilsim.parts.vehicle.physics.touching import TouchWord
from hilsim.protocols.mavlink.frames import StreamCount
from hilsim.telemetry.metrics import LINK_BOUNDS_S, HistogramReading, Label, LabelValues, Sample, Samples, counter, gauge, histogram, state

NO_ERRORS = Errors()
_ENU: LabelValues = ("east", "north", "up")
_FLU: LabelValues = ("forward", "left", "up")
_ANGLES: LabelValues = ("roll", "pitch", "yaw")
_SESSION_STATES = tuple(state.name.lower() for state in SessionState)


@dataclass(frozen=True, kw_only=True)
class StationReading:
    """A port for ground stations.

    Attributes:
        station: ``protocol address:port``.
    """

    station: Annotated[str, Label("station")]
    peers: Annotated[int, gauge("hilsim_ground_station_peers", "Programs currently connected to the port for ground stations")]
    sent_frames: Annotated[int, counter("hilsim_ground_station_sent_frames_total", "Frames of the controller sent to ground stations")]
    dropped_frames: Annotated[int, counter("hilsim_ground_station_dropped_frames_total", "Frames dropped because a ground station was too slow")]
    received_frames: Annotated[int, counter("hilsim_ground_station_received_frames_total", "Frames received from ground stations")]
    refused_frames: Annotated[int, counter("hilsim_ground_station_refused_frames_total", "Frames refused by the network: no process listens")]
    unsent_frames: Annotated[
        int, counter("hilsim_ground_station_unsent_frames_total", "Frames of ground stations dropped because the link was too slow")
    ]


def _by_state(current: str) -> Iterator[Sample]:
    """1 for the state of the session, 0 for the others; no sample without a session."""
    for name in _SESSION_STATES if current else ():
        yield (name,), float(name == current)


def _where_finite(value: float) -> Iterator[Sample]:
    """Sample of a finite value; none if it is unknown."""
    if math.isfinite(value):
        yield (), value


def _tilt(truth: Truth | None) -> Iterator[Sample]:
    """Sample of a vehicle's tilt."""
    if truth is not None:
        yield (), math.radians(truth.tilt_deg)


def _vector(name: str, parts: LabelValues, scale: float = 1.0) -> Samples:
    """One sample per component of the vector in an attribute; none where it or its holder is None."""
    read = attrgetter(name)

    def samples(holder: object | None) -> Iterator[Sample]:
        values = None if holder is None else read(holder)
        for part, value in zip(parts, values or (), strict=bool(values)):
            yield (part,), scale * value

    return samples


def _angles(name: str) -> Samples:
    """Samples of roll, pitch and yaw in an attribute in degrees, as radians."""
    return _vector(name, _ANGLES, math.pi / 180.0)


@dataclass(frozen=True, kw_only=True)
class VehicleReading:
    """A vehicle and the link to its controller.

    Attributes:
        name: Subject of its faults.
        state: State of the session; empty without a controller.
        actuator_age_s: Age of the latest motor command; None before the first.
        rotor_radps: Speed of each rotor.
        truth: True state of the vehicle; None if unknown.
        errors: Errors of the autopilot's estimates.
        obstacle: Condition that prevents arming.
        estimator_flags: Estimator flags of the autopilot; None before the first.
        warning: Latest warning of the autopilot.
        stations: Ports for ground stations.
    """

    name: ClassVar[str] = "vehicle"
    state: Annotated[
        str,
        state(
            "hilsim_link_state", "1 for the state of the session with the flight controller, 0 for the others", labels=("state",), samples=_by_state
        ),
    ]
    changes: Annotated[
        int,
        counter("hilsim_link_changes_total", "Changes of the session with the flight controller; the log contains their reasons"),
        SessionWord.CHANGES,
    ]
    losses: Annotated[
        int, counter("hilsim_link_losses_total", "Times that the link was unplugged or closed by its other end"), FlightCount.LINK_LOSSES
    ]
    sensor_rate_hz: Annotated[
        float,
        gauge("hilsim_link_sensor_rate_hertz", "Sensor frames per second: as configured, or what the line carries; 0 where it is too slow for any"),
    ]
    sent_frames: Annotated[int, counter("hilsim_link_sent_frames_total", "Frames sent to the controller"), OutboxCount.FRAMES]
    sent_bytes: Annotated[int, counter("hilsim_link_sent_bytes_total", "Bytes sent to the controller"), OutboxCount.BYTES]
    received_frames: Annotated[int, counter("hilsim_link_received_frames_total", "Frames received from the controller"), FlightCount.RECEIVED_FRAMES]
    received_bytes: Annotated[int, counter("hilsim_link_received_bytes_total", "Bytes received from the controller"), FlightCount.RECEIVED_BYTES]
    garbage_bytes: Annotated[
        int,
        counter("hilsim_link_garbage_bytes_total", "Received bytes that belong to no frame: noise, or parts of frames"),
        StreamCount.SKIPPED_BYTES,
    ]
    sensor_frames: Annotated[int, counter("hilsim_link_sensor_frames_total", "HIL_SENSOR frames sent"), OutboxCount.SAMPLES]
    actuator_frames: Annotated[int, counter("hilsim_link_actuator_frames_total", "Motor commands received"), FlightCount.ACTUATOR_FRAMES]
    replaced_frames: Annotated[
        int,
        counter("hilsim_link_replaced_frames_total", "Sensor frames not sent, because the line was full until a newer one was made"),
        OutboxCount.SAMPLES_REPLACED,
    ]
    skipped_frames: Annotated[
        int, counter("hilsim_link_skipped_frames_total", "Sensor frames not made, because the machine stalled"), FlightCount.SKIPPED_SENSORS
    ]
    stalls: Annotated[int, counter("hilsim_link_stalls_total", "Stalls of the machine, and with it of the vehicle"), FlightCount.STALLS]
    lockstep_timeouts: Annotated[
        int,
        counter(
            "hilsim_link_lockstep_timeouts_total",
            "Times that a controller in lockstep, or one that stands still on PX4's simulator link, did not answer within a second",
        ),
        FlightCount.LOCKSTEP_TIMEOUTS,
    ]
    unforwarded_frames: Annotated[
        int,
        counter("hilsim_link_unforwarded_frames_total", "Frames of the controller not forwarded to ground stations: the daemon was too slow"),
        FlightCount.UNFORWARDED_FRAMES,
    ]
    refused_frames: Annotated[
        int,
        counter("hilsim_link_refused_frames_total", "Frames of hilsim's own, HIL_SENSOR apart, that were not sent: the link was congested"),
        OutboxCount.OWN_REFUSED,
    ] = 0
    thrown_away_frames: Annotated[
        int,
        counter(
            "hilsim_link_thrown_away_frames_total",
            "Frames for the controller, including those of ground stations, discarded when it fell silent or its link was reopened: old commands must not be executed",
        ),
        OutboxCount.THROWN_AWAY,
    ] = 0
    obstacle_frames: Annotated[
        int,
        counter("hilsim_link_obstacle_frames_total", "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames sent to the controller"),
        FlightCount.OBSERVATIONS,
    ] = 0
    unsent_obstacle_frames: Annotated[
        int,
        counter(
            "hilsim_link_unsent_obstacle_frames_total",
            "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames that were not sent: the controller was silent, or its link was congested",
        ),
        FlightCount.UNSENT_OBSTACLES,
    ] = 0
    untaken_obstacle_frames: Annotated[
        int,
        counter(
            "hilsim_link_untaken_obstacle_frames_total",
            "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames that the flight loop did not fetch in time, because the machine stalled",
        ),
        FlightCount.UNTAKEN_OBSTACLES,
    ] = 0
    lateness: Annotated[
        HistogramReading, histogram("hilsim_link_lateness_seconds", LINK_BOUNDS_S, "Time a sensor frame was written minus the time it was due")
    ]
    round_trip: Annotated[
        HistogramReading, histogram("hilsim_link_round_trip_seconds", LINK_BOUNDS_S, "Time from a sensor frame to the next motor command")
    ]
    actuator_gap: Annotated[HistogramReading, histogram("hilsim_link_actuator_gap_seconds", LINK_BOUNDS_S, "Time between two motor commands")]
    is_armed: Annotated[bool, state("hilsim_vehicle_armed", "1 while the controller has armed the motors")]
    is_crashed: Annotated[bool, state("hilsim_vehicle_crashed", "1 after a crash of the vehicle, or when its blades are broken")]
    broken_rotors: Annotated[int, gauge("hilsim_vehicle_broken_rotors", "Rotors whose blades struck an obstacle")] = 0
    silences: Annotated[
        int,
        counter("hilsim_link_silences_total", "Times that motor commands stopped for 0.2 s, and the vehicle and its sensors with them"),
        SessionWord.SILENCES,
    ] = 0
    actuator_age_s: Annotated[float | None, gauge("hilsim_link_actuator_age_seconds", "Age of the latest motor command; absent before the first")] = (
        None
    )
    contacts: Annotated[int, counter("hilsim_vehicle_contacts_total", "Contacts of the vehicle other than resting on its legs"), TouchWord.COUNT] = 0
    is_touching: Annotated[bool, state("hilsim_vehicle_touching", "1 during such a contact")] = False
    is_ready: Annotated[bool, state("hilsim_vehicle_ready", "1 when the autopilot's estimator and home are ready for arming")] = False
    height_m: Annotated[float, gauge("hilsim_vehicle_height_meters", "Height of the true centre of mass above the ground", samples=_where_finite)]
    rotor_radps: tuple[float, ...] = ()
    truth: Annotated[
        Truth | None,
        gauge("hilsim_vehicle_tilt_radians", "Angle between the vehicle's true z axis and the vertical", samples=_tilt),
        gauge("hilsim_vehicle_position_meters", "True position in the world: east, north, up", labels=("axis",), samples=_vector("position_m", _ENU)),
        gauge(
            "hilsim_vehicle_velocity_meters_per_second",
            "True velocity in the world: east, north, up",
            labels=("axis",),
            samples=_vector("velocity_mps", _ENU),
        ),
        gauge(
            "hilsim_vehicle_attitude_radians",
            "True roll, pitch and yaw, in an autopilot's convention",
            labels=("angle",),
            samples=_angles("roll_pitch_yaw_deg"),
        ),
        gauge(
            "hilsim_vehicle_rates_radians_per_second",
            "True rates of the body: forward, left, up",
            labels=("axis",),
            samples=_vector("rates_radps", _FLU),
        ),
    ] = None
    errors: Annotated[
        Errors,
        gauge(
            "hilsim_estimate_position_error_meters",
            "The autopilot's GLOBAL_POSITION_INT minus the truth at its arrival: east, north, up; absent before the first",
            labels=("axis",),
            samples=_vector("position_m", _ENU),
        ),
        gauge(
            "hilsim_estimate_velocity_error_meters_per_second",
            "The autopilot's LOCAL_POSITION_NED minus the truth at its arrival: east, north, up; absent before the first",
            labels=("axis",),
            samples=_vector("velocity_mps", _ENU),
        ),
        gauge(
            "hilsim_estimate_attitude_error_radians",
            "The autopilot's ATTITUDE minus the truth at its arrival: roll, pitch, yaw; absent before the first",
            labels=("angle",),
            samples=_angles("attitude_deg"),
        ),
    ] = NO_ERRORS
    obstacle: str = ""
    estimator_flags: int | None = None
    warning: str = ""
    stations: tuple[StationReading, ...] = ()
