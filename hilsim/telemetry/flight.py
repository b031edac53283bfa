"""Reads the counters and histograms of the flight loop while it runs."""

import numpy as np

from hilsim.autopilot.ground_stations.endpoints import StationCounters
from hilsim.autopilot.loop_context import FlightCount
from hilsim.autopilot.loop_setup import LoopSetup
from hilsim.autopilot.passing_state import AutopilotStatus, Truth
from hilsim.autopilot.send_queue import OutboxCount
from hilsim.autopilot.session import SessionState, SessionWord
from hilsim.collision.contacts import TouchWord
from hilsim.protocols.mavlink.frames import StreamCount
from hilsim.telemetry.loop import read_histograms
from hilsim.telemetry.metrics import LINK_BOUNDS_S
from hilsim.telemetry.vehicle_readings import StationReading, VehicleReading


def read_flight(
    setup: LoopSetup, *, rate_hz: float, now_ns: int, truth: Truth, autopilot: AutopilotStatus, stations: tuple[StationCounters, ...] = ()
) -> VehicleReading:
    """Readings of a vehicle and its link, wait-free.

    Args:
        setup: Of its loop.
        rate_hz: Sensor frames a second.
        now_ns: Rig time.
        truth: Where the vehicle is.
        autopilot: Its controller's status.
        stations: Ports for ground stations.
    """
    counts, word = setup.shared.counts.tolist(), setup.shared.session.word.tolist()
    stream, outbox = setup.buffers.stream.counts.tolist(), setup.buffers.outbox.counts.tolist()
    bins = np.stack([setup.shared.lateness, setup.shared.round_trip, setup.shared.gap])
    lateness, round_trip, gap = read_histograms(LINK_BOUNDS_S, bins, setup.shared.sums_ns[:3].tolist())
    return VehicleReading(
        state="" if setup.context.is_held else SessionState(word[SessionWord.STATE]).name.lower(),
        changes=word[SessionWord.CHANGES],
        losses=counts[FlightCount.LINK_LOSSES],
        sensor_rate_hz=rate_hz,
        sent_frames=outbox[OutboxCount.FRAMES],
        sent_bytes=outbox[OutboxCount.BYTES],
        received_frames=counts[FlightCount.RECEIVED_FRAMES],
        received_bytes=counts[FlightCount.RECEIVED_BYTES],
        garbage_bytes=stream[StreamCount.SKIPPED_BYTES],
        sensor_frames=outbox[OutboxCount.SAMPLES],
        actuator_frames=counts[FlightCount.ACTUATOR_FRAMES],
        replaced_frames=outbox[OutboxCount.SAMPLES_REPLACED],
        skipped_frames=counts[FlightCount.SKIPPED_SENSORS],
        stalls=counts[FlightCount.STALLS],
        lockstep_timeouts=counts[FlightCount.LOCKSTEP_TIMEOUTS],
        unforwarded_frames=counts[FlightCount.UNFORWARDED_FRAMES],
        refused_frames=outbox[OutboxCount.OWN_REFUSED],
        obstacle_frames=counts[FlightCount.OBSERVATIONS],
        unsent_obstacle_frames=counts[FlightCount.UNSENT_OBSTACLES],
        lateness=lateness,
        round_trip=round_trip,
        actuator_gap=gap,
        is_armed=bool(word[SessionWord.ARMED]),
        is_crashed=bool(setup.flight.state.crashed[0]),
        height_m=float(setup.flight.around.height_m[0]),
        silences=word[SessionWord.SILENCES],
        actuator_age_s=1e-9 * max(now_ns - word[SessionWord.ACTUATOR_NS], 0) if word[SessionWord.ACTUATOR_NS] > 0 else None,
        contacts=int(setup.shared.touch.word[TouchWord.COUNT]),
        is_touching=bool(setup.shared.touch.word[TouchWord.KINDS]),
        truth=truth,
        errors=autopilot.errors,
        is_ready=autopilot.is_ready,
        obstacle=autopilot.obstacle,
        estimator_flags=autopilot.estimator_flags,
        warning=autopilot.warning,
        stations=tuple(_station(station) for station in stations),
    )


def _station(counters: StationCounters) -> StationReading:
    return StationReading(
        station=counters.name,
        peers=counters.peers,
        sent_frames=counters.frames_to_station,
        dropped_frames=counters.dropped_to_station,
        refused_frames=counters.refused,
        received_frames=counters.frames_from_station,
        unsent_frames=counters.dropped_from_station,
    )
