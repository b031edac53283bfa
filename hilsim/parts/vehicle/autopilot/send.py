"""Transmit path of the flight loop: heartbeats, sensor and GPS frames when they are due, and obstacle messages."""

import numpy as np

from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.compilation.pins import tuple_at
from hilsim.faults.catalogue import Effect
from hilsim.parts.vehicle.autopilot.breaking import END_OF_READINGS, FIRST_READING, break_fix, break_readings, gps_silence
from hilsim.parts.vehicle.autopilot.change_table import FAULTS
from hilsim.parts.vehicle.autopilot.loop_context import Flight, FlightCount, FlightWord, LinkBuffers, LoopContext, SharedTelemetry
from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount, empty, flush, offer_sample, post
from hilsim.parts.vehicle.autopilot.session import SessionState, SessionWord, wants_sensors
from hilsim.parts.vehicle.autopilot.vehicle_sensors import RESET_FIELD, fill_gps, fill_sensor
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.messages import HEARTBEAT, HEARTBEAT_PERIOD_NS, HIL_GPS, SYSTEM_TIME
from hilsim.transmit.libc import monotonic_ns
from hilsim.transmit.links.descriptors import discard_output
from hilsim.transmit.packet_queue import release, waiting
from hilsim.transmit.statistics import bin_index
from hilsim.world.platforms.live import LivePose
from hilsim.world.platforms.wind import wind_at

_CALLING = constant(SessionState.CALLING)
_RESET = constant(RESET_FIELD)
_PERIOD_NS, _SILENCE = constant(HEARTBEAT_PERIOD_NS), constant(Effect.SILENCE)


@stage_kernel
def make_sensors(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, due_ns: int) -> None:
    """Make the sensor frame that is due, to be sent next."""
    count = max(flight.imu_sums[6], 1.0)
    for part in range(6):
        flight.imu_sums[part] /= count
    wind = wind_at(context.wind, flight.wind_state, flight.state.time_ns[0])
    frame = flight.word[FlightWord.FRAMES]
    address = shared.changes.words[FAULTS]
    faults = context.no_faults if address == 0 else tuple_at(address, context.no_faults)
    reading = buffers.sensor.payload[FIRST_READING:END_OF_READINGS].view(np.float32)
    before = reading.copy() if faults.effect.size > 0 else reading
    fill_sensor(context.instruments, flight.state, wind, flight.imu_sums, frame, flight.state.time_ns[0] // 1000, buffers.sensor.record)
    if faults.effect.size > 0:
        updated = np.int64(buffers.sensor.record[0].fields_updated)
        buffers.sensor.record[0].fields_updated = updated & ~break_readings(faults, due_ns, before, reading)
    flight.word[FlightWord.UNSENT_FIELDS] |= np.int64(buffers.sensor.record[0].fields_updated)
    if shared.session.word[SessionWord.RESET] == 1:
        flight.word[FlightWord.UNSENT_FIELDS] |= _RESET
        shared.session.word[SessionWord.RESET] = 0
    buffers.sensor.record[0].fields_updated = flight.word[FlightWord.UNSENT_FIELDS]
    flight.imu_sums[:] = 0.0
    flight.word[FlightWord.FRAMES] = frame + 1
    flight.word[FlightWord.SAMPLE_DUE_NS] = due_ns
    shared.counts[FlightCount.SENSOR_FRAMES] += 1
    offer_sample(buffers.outbox, buffers.sensor.payload)


@kernel
def _make_fix(
    context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, live: LivePose, now_ns: int, utc_epoch_ns: int
) -> None:
    """Queue the fix that is due, as faults leave it."""
    address = shared.changes.words[FAULTS]
    faults = context.no_faults if address == 0 else tuple_at(address, context.no_faults)
    silence = gps_silence(faults, now_ns)
    if silence == 0:
        fill_gps(context.instruments, live, now_ns, flight.state.time_ns[0], utc_epoch_ns, buffers.gps.record)
        break_fix(faults, context.instruments.home, now_ns, buffers.gps.record)
    if silence != _SILENCE:
        post(buffers.outbox, buffers.frame, write_frame(HIL_GPS, buffers.gps.payload, buffers.origin, buffers.frame))
        shared.counts[FlightCount.GPS_FRAMES] += 1


@stage_kernel
def make_rest(
    context: LoopContext,
    flight: Flight,
    shared: SharedTelemetry,
    buffers: LinkBuffers,
    live: LivePose,
    descriptor: int,
    now_ns: int,
    utc_epoch_ns: int,
) -> None:
    """Queue heartbeats, times of day, GPS frames and observations that are due; of heartbeats not yet read, only the newest is kept in the port."""
    word, is_flying = flight.word, wants_sensors(shared.session, context.line.is_simulator, now_ns)
    if now_ns >= word[FlightWord.NEXT_SECOND_NS]:
        word[FlightWord.NEXT_SECOND_NS] = now_ns + _PERIOD_NS
        if not context.line.is_simulator:
            if shared.session.word[SessionWord.STATE] == _CALLING:
                empty(buffers.outbox, buffers.nothing)
                discard_output(descriptor)
            post(buffers.outbox, buffers.frame, write_frame(HEARTBEAT, buffers.heartbeat.payload, buffers.origin, buffers.frame))
        if is_flying:
            buffers.system_time.record[0].time_unix_usec = (utc_epoch_ns + now_ns) // 1000
            buffers.system_time.record[0].time_boot_ms = max(now_ns, 0) // 1_000_000
            post(buffers.outbox, buffers.frame, write_frame(SYSTEM_TIME, buffers.system_time.payload, buffers.origin, buffers.frame))
    seen = shared.observations
    for _ in range(waiting(seen)):
        slot = seen.head[0] % seen.size.size
        if is_flying and post(buffers.outbox, seen.payload[slot], seen.size[slot]):
            shared.counts[FlightCount.OBSERVATIONS] += 1
        else:
            shared.counts[FlightCount.UNSENT_OBSTACLES] += 1
        release(seen, 1)
    if is_flying and now_ns >= word[FlightWord.NEXT_GPS_NS]:
        _make_fix(context, flight, shared, buffers, live, now_ns, utc_epoch_ns)
        word[FlightWord.NEXT_GPS_NS] = max(word[FlightWord.NEXT_GPS_NS], now_ns - context.instruments.gps_ns) + context.instruments.gps_ns


@stage_kernel
def send_frames(context: LoopContext, flight: Flight, shared: SharedTelemetry, buffers: LinkBuffers, descriptor: int, epoch_ns: int) -> int:
    """Write the frames that the rate limit allows, and record the lateness of sensor frames.

    Until a frame of the controller has been received, only heartbeats are sent: a board starts MAVLink on USB only after reading one, and searches only a few bytes for it.

    Returns:
        An ``Outcome``.
    """
    counts, word = buffers.outbox.counts, flight.word
    samples = counts[OutboxCount.SAMPLES]
    stations = buffers.nothing if shared.session.word[SessionWord.STATE] == _CALLING else shared.to_controller
    outcome: int = flush(buffers.outbox, stations, buffers.origin, descriptor, context.line.is_stream, monotonic_ns(), context.line.pace)
    if counts[OutboxCount.SAMPLES] > samples:
        now_ns = monotonic_ns() - epoch_ns
        late_ns = max(now_ns - word[FlightWord.SAMPLE_DUE_NS], 0)
        shared.lateness[bin_index(late_ns)] += 1
        shared.sums_ns[0] += late_ns
        word[FlightWord.UNSENT_FIELDS] = 0
        if word[FlightWord.IS_AWAITED] == 0:
            word[FlightWord.IS_AWAITED] = 1
            word[FlightWord.SENT_NS] = now_ns
    return outcome
