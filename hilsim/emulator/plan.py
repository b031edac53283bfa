"""Complete description of one emulated lidar for kernels; ``emulator.planning`` builds it once, and it does not change while the lidar streams."""

from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import by_reference, placed
from hilsim.emulator.overlay import Overlay
from hilsim.faults.table import FaultTable
from hilsim.protocols.nmea import SENTENCE_CAPACITY
from hilsim.sensor.clock import DeviceClock
from hilsim.sensor.decimation import Decimation
from hilsim.sensor.field_of_view import FieldOfView
from hilsim.sensor.head import Head
from hilsim.sensor.interference.pulses import Interference
from hilsim.sensor.mirror import Mirror
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.optics.false_alarms import FalseAlarms
from hilsim.sensor.optics.weather import Weather
from hilsim.sensor.optics.window import Window
from hilsim.sensor.position_stream import PositionStream
from hilsim.sensor.response import Response
from hilsim.sensor.signal.signal import LaserSignals, Signal
from hilsim.sensor.unit.encoder import Encoder
from hilsim.sensor.unit.warm_up import WarmUp


class BeamRow(IntEnum):
    """Rows of ``LidarPlan.beam_lanes`` for each sixteen channels."""

    TURNS = 0
    """Azimuth relative to the head."""
    PHASE = 1
    """Firing time as a share of the firing sequence."""
    SINE_ELEVATION = 2
    COSINE_ELEVATION = 3
    ORIGIN_X = 4
    """Origin of the beam in the platform's body frame; metres."""
    ORIGIN_Y = 5
    ORIGIN_Z = 6
    BIAS = 7
    """The laser's constant range error; metres."""
    GAIN = 8
    """Ratio of the laser's reflectivity bytes to exact ones."""


class HeardSentences(NamedTuple):
    """The newest sentences that a sensor's input has received, written while kernels run: sentence ``k`` is in row ``k % n``.

    Attributes:
        written: ``int64[1]``, number of sentences so far.
        at_ns: ``int64[n]``, rig time from which the sensor sends the sentence.
        size: ``int64[n]``, bytes of the sentence.
        text: ``uint8[n, 128]``, the sentences.
    """

    written: npt.NDArray[np.int64]
    at_ns: npt.NDArray[np.int64]
    size: npt.NDArray[np.int64]
    text: npt.NDArray[np.uint8]


HEARD_ROWS = 8


def no_sentences(rows: int = 1) -> HeardSentences:
    """An input that has received nothing."""
    return HeardSentences(np.zeros(1, np.int64), np.zeros(rows, np.int64), np.zeros(rows, np.int64), np.zeros((rows, SENTENCE_CAPACITY), np.uint8))


class Gps(NamedTuple):
    """Kernel-side GPS input.

    Attributes:
        pps_state: State of the pulse, a ``PpsState``.
        heard: Sentences of a receiver outside.
        present: Whether there is a receiver whose sentences are made here.
        valid: Status in its sentences.
        latitude_deg: Its latitude at the world's point of ``origin_east_m`` and ``origin_north_m``.
        longitude_deg: Its longitude there.
        origin_east_m: East of that point.
        origin_north_m: North of that point.
        sentence_delay_ns: Time from a pulse to the use of its sentence.
    """

    pps_state: int
    heard: HeardSentences
    present: bool
    valid: bool
    latitude_deg: float
    longitude_deg: float
    origin_east_m: float
    origin_north_m: float
    sentence_delay_ns: int


@by_reference
class Rare(NamedTuple):
    """Physics that most rigs have none of, so that their kernels are compiled without it.

    Attributes:
        weather: Extinction and false echoes.
        window: Transmission of the sensor's window.
        interference: Pulses of the rig's other sensors.
        overlay: Captured background.
        decimation: Rule that selects the firings to report.
        is_decimated: Whether some firings are not reported.
        faults: Faults of its optics.
    """

    weather: Weather
    window: Window
    interference: Interference
    overlay: Overlay
    decimation: Decimation
    is_decimated: bool
    faults: FaultTable


@placed
class LidarPlan(NamedTuple):
    """Kernel-side lidar.

    Attributes:
        own: Values that only the kernels of its family need, in a class of theirs. A plan with another class has kernels compiled for it.
        clock: Device clock.
        head: Rotating head; ignored for a sensor without one.
        encoder: Encoder of the rotating head.
        mirror: The mirror that sweeps the beams over an image; None: a head turns. A plan with one has kernels compiled for it.
        beam: Rays of a beam and their shares.
        response: Detection, limits and noise.
        signal: Noise, grid and losses of the received signal.
        lasers: Figures of the unit's lasers.
        drop_out_ratio: ``float64[256]``, share of firings that are lost at random, by reflectivity byte.
        baseline: ``uint8[c]``, reflectivity of a record without a return.
        bias_m: ``float64[c]``, each laser's constant range error.
        warm_up: Range error of all lasers while the unit warms up.
        false_alarms: Echoes caused by noise, and where the sun is.
        rare: Physics that most rigs have none of; None: none, and no false alarms. A plan with it has kernels compiled for it.
        position: Schedule of position packets, or of a Cepton-style sensor's information packets.
        gps: GPS receiver.
        data_size: Bytes of a data packet's payload.
        info_size: Bytes of a position or information packet's payload.
        elevation_deg: ``float64[c]``, true elevation of each beam: the model's, which packets imply, with the unit's error.
        azimuth_offset_rad: ``float64[c]``, true azimuth of each beam relative to the head, with the unit's error.
        channel_origin_m: ``float64[c, 3]``, origin of each channel's beam in the platform's body frame.
        firing_offset_ns: ``int64[c]``, offset of each channel within a firing sequence.
        beam_lanes: ``float64[9 * ceil(c / 16), 16]``, parameters of the channels' beams, sixteen side by side, rows by ``BeamRow``; padded with the
            last channel.
        ripple_lanes: ``float64[p * ceil(c / 16), 16]``, ``LaserSignals.ripple_m`` likewise.
        sequence_ns: Duration of a firing sequence in device time.
        sequences_per_packet: Number of firing sequences in a data packet.
        origin_packet: Data packet that begins with ``origin_sequence``; other than 0 after what a packet holds has changed.
        origin_sequence: Index of the first firing sequence of that packet.
        field_of_view: Blocks that are produced; None in a plan without ``rare``, which leaves nothing out.
        choice: ``int64[r]``, ``EchoChoice`` of each return of a firing, in the packet's order.
        mount_orientation: ``float64[4]``, rotation from the sensor to the body frame.
        data_latency_ns: Time from the end of the last firing sequence to the wire.
        cast_range_m: Length of cast rays: the longest range plus a margin for noise.
    """

    own: Any
    clock: DeviceClock
    head: Head
    encoder: Encoder
    mirror: Mirror | None
    beam: Beam
    response: Response
    signal: Signal
    lasers: LaserSignals
    drop_out_ratio: npt.NDArray[np.float64]
    baseline: npt.NDArray[np.uint8]
    bias_m: npt.NDArray[np.float64]
    warm_up: WarmUp
    false_alarms: FalseAlarms
    rare: Rare | None
    position: PositionStream
    gps: Gps
    data_size: int
    info_size: int
    elevation_deg: npt.NDArray[np.float64]
    azimuth_offset_rad: npt.NDArray[np.float64]
    channel_origin_m: npt.NDArray[np.float64]
    firing_offset_ns: npt.NDArray[np.int64]
    beam_lanes: npt.NDArray[np.float64]
    ripple_lanes: npt.NDArray[np.float64]
    sequence_ns: int
    sequences_per_packet: int
    origin_packet: int
    origin_sequence: int
    field_of_view: FieldOfView | None
    choice: npt.NDArray[np.int64]
    mount_orientation: npt.NDArray[np.float64]
    data_latency_ns: int
    cast_range_m: float
