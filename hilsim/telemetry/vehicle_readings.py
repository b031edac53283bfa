"""What a scrape needs to know of a vehicle, its controller's link, ports for ground stations, and range sensors."""

from dataclasses import dataclass
from typing import Annotated

from hilsim.autopilot.loop_context import FlightCount
from hilsim.autopilot.passing_state import Errors, Truth
from hilsim.autopilot.send_queue import OutboxCount
from hilsim.autopilot.session import SessionWord
from hilsim.collision.contacts import TouchWord
from hilsim.protocols.mavlink.frames import StreamCount
from hilsim.telemetry.metrics import LINK_BOUNDS_S, HistogramReading, Label, counter, gauge, histogram, state
from hilsim.telemetry.samples import ENU, FLU, angles, by_state, tilt, vector, where_finite

NO_ERRORS = Errors()


@dataclass(frozen=True, kw_only=True)
class StationReading:
    """A port for ground stations.

    Attributes:
        station: ``protocol address:port``.
    """

    station: Annotated[str, Label("station")]
    peers: Annotated[int, gauge("hilsim_ground_station_peers", "Programs that use the port for ground stations now")]
    sent_frames: Annotated[int, counter("hilsim_ground_station_sent_frames_total", "Frames of the controller handed to ground stations")]
    dropped_frames: Annotated[int, counter("hilsim_ground_station_dropped_frames_total", "Frames that a ground station did not take in time")]
    received_frames: Annotated[int, counter("hilsim_ground_station_received_frames_total", "Frames that ground stations sent")]
    refused_frames: Annotated[int, counter("hilsim_ground_station_refused_frames_total", "Frames that the network refused: no process listens there")]
    unsent_frames: Annotated[
        int, counter("hilsim_ground_station_unsent_frames_total", "Frames of ground stations that came faster than the link takes them")
    ]


@dataclass(frozen=True, kw_only=True)
class SerialDeviceReading:
    """An emulated device on a serial port.

    Attributes:
        device: Its kind, numbered where there are several.
    """

    device: Annotated[str, Label("device")]
    is_open: Annotated[bool, state("hilsim_serial_device_open", "1 while the device has its serial port")]
    sent_frames: Annotated[int, counter("hilsim_serial_device_sent_frames_total", "Frames of the device written to its port")]
    dropped_frames: Annotated[
        int, counter("hilsim_serial_device_dropped_frames_total", "Frames of the device left out, because its line or the daemon was behind")
    ]


@dataclass(frozen=True, kw_only=True)
class VehicleReading:
    """What flies, and the link to who steers it.

    Attributes:
        state: Of the session; empty where there is no controller.
        actuator_age_s: None before the first.
        truth: None: not known.
        errors: Of the autopilot's estimate.
        obstacle: What keeps the autopilot from being armed.
        estimator_flags: Of the autopilot; None: not reported yet.
        warning: The autopilot's last.
        stations: Ports for ground stations.
    """

    state: Annotated[
        str,
        state("hilsim_link_state", "1 for what the session with the flight controller is in, 0 for the others", labels=("state",), samples=by_state),
    ]
    changes: Annotated[
        int, counter("hilsim_link_changes_total", "Changes of the session with the flight controller; the log has their reasons"), SessionWord.CHANGES
    ]
    losses: Annotated[
        int, counter("hilsim_link_losses_total", "Times that the link was unplugged or closed by its other end"), FlightCount.LINK_LOSSES
    ]
    sensor_rate_hz: Annotated[
        float,
        gauge("hilsim_link_sensor_rate_hertz", "Sensor frames a second: as asked for, or what the line carries; 0 where it is too slow for any"),
    ]
    sent_frames: Annotated[int, counter("hilsim_link_sent_frames_total", "Frames handed to the controller's link"), OutboxCount.FRAMES]
    sent_bytes: Annotated[int, counter("hilsim_link_sent_bytes_total", "Bytes handed to the controller's link"), OutboxCount.BYTES]
    received_frames: Annotated[int, counter("hilsim_link_received_frames_total", "Frames that the controller sent"), FlightCount.RECEIVED_FRAMES]
    received_bytes: Annotated[int, counter("hilsim_link_received_bytes_total", "Bytes that the controller sent"), FlightCount.RECEIVED_BYTES]
    garbage_bytes: Annotated[
        int,
        counter("hilsim_link_garbage_bytes_total", "Bytes that came and belong to no frame: noise, or pieces of frames"),
        StreamCount.SKIPPED_BYTES,
    ]
    sensor_frames: Annotated[int, counter("hilsim_link_sensor_frames_total", "HIL_SENSOR frames sent"), OutboxCount.SAMPLES]
    actuator_frames: Annotated[int, counter("hilsim_link_actuator_frames_total", "Motor commands received"), FlightCount.ACTUATOR_FRAMES]
    replaced_frames: Annotated[
        int,
        counter("hilsim_link_replaced_frames_total", "Sensor frames not sent, because the line was full until a newer one came"),
        OutboxCount.SAMPLES_REPLACED,
    ]
    skipped_frames: Annotated[
        int, counter("hilsim_link_skipped_frames_total", "Sensor frames never made, because the machine stood still"), FlightCount.SKIPPED_SENSORS
    ]
    stalls: Annotated[int, counter("hilsim_link_stalls_total", "Times that the machine stood still and the vehicle with it"), FlightCount.STALLS]
    lockstep_timeouts: Annotated[
        int,
        counter("hilsim_link_lockstep_timeouts_total", "Times that a controller in lockstep did not answer within a second"),
        FlightCount.LOCKSTEP_TIMEOUTS,
    ]
    unforwarded_frames: Annotated[
        int,
        counter("hilsim_link_unforwarded_frames_total", "Frames of the controller that no ground station got: the daemon was too slow"),
        FlightCount.UNFORWARDED_FRAMES,
    ]
    refused_frames: Annotated[
        int,
        counter("hilsim_link_refused_frames_total", "Frames of hilsim's own, HIL_SENSOR apart, that were not sent: too much waited for the link"),
        OutboxCount.OWN_REFUSED,
    ] = 0
    thrown_away_frames: Annotated[
        int,
        counter(
            "hilsim_link_thrown_away_frames_total",
            "Frames for the controller, of ground stations too, that waited when it fell silent or its link was opened anew, and were not sent: old commands must not be executed",
        ),
        OutboxCount.THROWN_AWAY,
    ] = 0
    obstacle_frames: Annotated[
        int,
        counter("hilsim_link_obstacle_frames_total", "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames passed to the controller's link"),
        FlightCount.OBSERVATIONS,
    ] = 0
    unsent_obstacle_frames: Annotated[
        int,
        counter(
            "hilsim_link_unsent_obstacle_frames_total",
            "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames that were not sent: the controller was silent, or too much waited for its link",
        ),
        FlightCount.UNSENT_OBSTACLES,
    ] = 0
    untaken_obstacle_frames: Annotated[
        int,
        counter(
            "hilsim_link_untaken_obstacle_frames_total",
            "OBSTACLE_DISTANCE and DISTANCE_SENSOR frames that the flight loop did not take in time, because the machine stood still",
        ),
        FlightCount.UNTAKEN_OBSTACLES,
    ] = 0
    lateness: Annotated[
        HistogramReading, histogram("hilsim_link_lateness_seconds", LINK_BOUNDS_S, "Time a sensor frame was written minus the time it was due")
    ]
    round_trip: Annotated[
        HistogramReading, histogram("hilsim_link_round_trip_seconds", LINK_BOUNDS_S, "From a sensor frame to the next motor command")
    ]
    actuator_gap: Annotated[HistogramReading, histogram("hilsim_link_actuator_gap_seconds", LINK_BOUNDS_S, "Between two motor commands")]
    is_armed: Annotated[bool, state("hilsim_vehicle_armed", "1 while the controller has armed the motors")]
    is_crashed: Annotated[bool, state("hilsim_vehicle_crashed", "1 when the vehicle has hit something and lies where it fell")]
    silences: Annotated[
        int,
        counter("hilsim_link_silences_total", "Times that motor commands stopped for 0.2 s, and the vehicle and its sensors with them"),
        SessionWord.SILENCES,
    ] = 0
    actuator_age_s: Annotated[float | None, gauge("hilsim_link_actuator_age_seconds", "Since the latest motor command; absent before the first")] = (
        None
    )
    contacts: Annotated[
        int, counter("hilsim_vehicle_contacts_total", "Times that the vehicle has touched something beyond standing on its legs"), TouchWord.COUNT
    ] = 0
    is_touching: Annotated[bool, state("hilsim_vehicle_touching", "1 while such a contact goes on")] = False
    is_ready: Annotated[bool, state("hilsim_vehicle_ready", "1 when the autopilot's estimator and home are as it wants them before it arms")] = False
    height_m: Annotated[float, gauge("hilsim_vehicle_height_meters", "Of the true centre of mass above the ground under it", samples=where_finite)]
    truth: Annotated[
        Truth | None,
        gauge("hilsim_vehicle_tilt_radians", "Between the vehicle's true up and the world's", samples=tilt),
        gauge("hilsim_vehicle_position_meters", "True position in the world: east, north, up", labels=("axis",), samples=vector("position_m", ENU)),
        gauge(
            "hilsim_vehicle_velocity_meters_per_second",
            "True velocity in the world: east, north, up",
            labels=("axis",),
            samples=vector("velocity_mps", ENU),
        ),
        gauge(
            "hilsim_vehicle_attitude_radians",
            "True roll, pitch and yaw, in an autopilot's convention",
            labels=("angle",),
            samples=angles("roll_pitch_yaw_deg"),
        ),
        gauge(
            "hilsim_vehicle_rates_radians_per_second",
            "True rates of the body: forward, left, up",
            labels=("axis",),
            samples=vector("rates_radps", FLU),
        ),
    ] = None
    errors: Annotated[
        Errors,
        gauge(
            "hilsim_estimate_position_error_meters",
            "The autopilot's GLOBAL_POSITION_INT minus the truth when it came: east, north, up; absent before the first",
            labels=("axis",),
            samples=vector("position_m", ENU),
        ),
        gauge(
            "hilsim_estimate_velocity_error_meters_per_second",
            "The autopilot's LOCAL_POSITION_NED minus the truth when it came: east, north, up; absent before the first",
            labels=("axis",),
            samples=vector("velocity_mps", ENU),
        ),
        gauge(
            "hilsim_estimate_attitude_error_radians",
            "The autopilot's ATTITUDE minus the truth when it came: roll, pitch, yaw; absent before the first",
            labels=("angle",),
            samples=angles("attitude_deg"),
        ),
    ] = NO_ERRORS
    obstacle: str = ""
    estimator_flags: int | None = None
    warning: str = ""
    stations: tuple[StationReading, ...] = ()
