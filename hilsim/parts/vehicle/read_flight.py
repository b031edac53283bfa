"""Readings of the flight loop's counters and histograms while it runs."""

import numpy as np

from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.autopilot.loop_setup import LoopSetup
from hilsim.parts.vehicle.autopilot.passing_state import AutopilotStatus, Truth
from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount
from hilsim.parts.vehicle.autopilot.session import SessionState, SessionWord
from hilsim.parts.vehicle.ground_stations.endpoints import StationCounters
from hilsim.parts.vehicle.physics.touching import TouchWord
from hilsim.parts.vehicle.reading import StationReading, VehicleReading
from hilsim.protocols.mavlink.frames import StreamCount
from hilsim.telemetry.loop import read_histograms
from hilsim.telemetry.metrics import LINK_BOUNDS_S, counted


def read_flight(
    setup: LoopSetup, *, rate_hz: float, now_ns: int, truth: Truth, autopilot: AutopilotStatus, stations: tuple[StationCounters, ...] = ()
) -> VehicleReading:
    """Readings of a vehicle and its link, wait-free.

    Args:
        setup: Setup of the loop.
        rate_hz: Sensor frames per second.
        now_ns: Current rig time.
        truth: True state of the vehicle.
        autopilot: Status of its autopilot.
        stations: Ports for ground stations.
    """
    word, touch = setup.shared.session.word.tolist(), setup.shared.touch.word.tolist()
    counts = counted(
        VehicleReading,
        (FlightCount, setup.shared.counts.tolist()),
        (SessionWord, word),
        (OutboxCount, setup.buffers.outbox.counts.tolist()),
        (StreamCount, setup.buffers.stream.counts.tolist()),
        (TouchWord, touch),
    )
    bins = np.stack([setup.shared.lateness, setup.shared.round_trip, setup.shared.gap])
    lateness, round_trip, gap = read_histograms(LINK_BOUNDS_S, bins, setup.shared.sums_ns[:3].tolist())
    return VehicleReading(
        **counts,
        state="" if setup.context.is_held else SessionState(word[SessionWord.STATE]).name.lower(),
        sensor_rate_hz=rate_hz,
        lateness=lateness,
        round_trip=round_trip,
        actuator_gap=gap,
        is_armed=bool(word[SessionWord.ARMED]),
        is_crashed=bool(setup.flight.state.crashed[0] or setup.flight.state.broken.any()),
        broken_rotors=int(setup.flight.state.broken.sum()),
        height_m=float(setup.flight.around.height_m[0]),
        rotor_radps=tuple(setup.flight.state.rotor_radps.tolist()),
        actuator_age_s=1e-9 * max(now_ns - word[SessionWord.ACTUATOR_NS], 0) if word[SessionWord.ACTUATOR_NS] > 0 else None,
        is_touching=bool(touch[TouchWord.KINDS]),
        truth=truth,
        errors=autopilot.errors,
        is_ready=autopilot.is_ready,
        obstacle="" if setup.context.is_held else autopilot.obstacle,
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
