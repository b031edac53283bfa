"""Objects in recorded data packets of a Velodyne: where its firings look, and the records that are rewritten."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, kernel, signed, with_kernels
from hilsim.emulator.insertion.part import InsertionPart, RecordedRanges, RecordedSensor
from hilsim.emulator.insertion.unit import RETURNS, RecordedFirings, RecordedUnit, build_recorded_unit
from hilsim.emulator.truth import Truth
from hilsim.families.velodyne.points import geometry_of_packets
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, RECORDS_PER_BLOCK, RETURNS_BY_MODE_BYTE, ReturnMode
from hilsim.families.velodyne.protocol.firing import (
    RecordFirings,
    block_azimuth_cdeg,
    build_record_firings,
    data_stamp_us,
    fired_cdeg,
    first_step_cdeg,
    packet_step_cdeg,
    step_between,
)
from hilsim.families.velodyne.protocol.geometry import FiringGeometry
from hilsim.families.velodyne.protocol.models import BY_NAME
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.sensor.echoes import EchoChoice
from hilsim.sensor.optics.beam import Beam
from hilsim.sensor.response import Response, calibrated_ratios
from hilsim.world.geometry.poses import Pose

_BLOCKS, _RECORDS, _RETURNS, _NO_PLACE = constant(BLOCKS), constant(RECORDS_PER_BLOCK), constant(RETURNS), constant(-1)
_SIZE = constant(DATA_PACKET_SIZE)
_LAST_MODE, _DUAL_MODE, _CONFIDENCE_MODE = constant(ReturnMode.LAST), constant(ReturnMode.DUAL), constant(ReturnMode.DUAL_CONFIDENCE)
_STRONGEST, _LAST, _STRONGEST_BESIDE_LAST = constant(EchoChoice.STRONGEST), constant(EchoChoice.LAST), constant(EchoChoice.STRONGEST_BESIDE_LAST)
_LASERS = 128
_MAX_DIFFUSE = 100
_SURVEYED_PACKETS = 200
_PROFILES = {"HDL-32E": "hdl32e"}
_OTHER_PROFILE = "vlp16"


@kernel
def _read_firings(own: "RecordedBlocks", payload: npt.NDArray[np.uint8], size: int, recorded: RecordedFirings) -> int:
    if size != _SIZE:
        return 0
    firings = own.firings
    returns = RETURNS_BY_MODE_BYTE[payload[1204]]
    group_blocks = firings.blocks * returns
    stamp_us, first_cdeg, state = data_stamp_us(payload), block_azimuth_cdeg(payload, 0), recorded.state
    step_cdeg = float(first_step_cdeg(payload, group_blocks))
    if step_cdeg < 0.0:
        step_cdeg = max(step_between(firings, state[0], state[1], first_cdeg, stamp_us), 0.0) if state[2] != 0 else 0.0
    state[0], state[1], state[2] = first_cdeg, stamp_us, 1
    groups = _BLOCKS // group_blocks
    group_ns = -((groups - 1) * firings.group_ns + firings.time_ns[firings.time_ns.size - 1]) if own.stamps_last_firing else 0
    # Taken out of the loop: each look into a tuple inside would count references with an atomic instruction.
    share, offset_cdeg, laser_rad, offset_ns, unit_m = (
        firings.share,
        firings.offset_cdeg,
        firings.elevation_rad,
        firings.time_ns,
        firings.unit_mm * 1e-3,
    )
    record_channel, origin_height_m = own.record_channel, own.origin_height_m
    azimuth_of, elevation_rad, height_m, time_ns = recorded.azimuth_cdeg, recorded.elevation_rad, recorded.height_m, recorded.time_ns
    channel, places, range_m, byte = recorded.channel, recorded.place, recorded.range_m, recorded.byte
    count = 0
    for group in range(groups):
        first = group * group_blocks
        read_step_cdeg = packet_step_cdeg(payload, first, group_blocks)
        step_cdeg = float(read_step_cdeg) if read_step_cdeg >= 0 else step_cdeg
        for record in range(share.size):
            block = first + record // _RECORDS * returns
            azimuth_cdeg = float(block_azimuth_cdeg(payload, block))
            azimuth_of[count] = fired_cdeg(azimuth_cdeg, step_cdeg, share[record], offset_cdeg[record])
            elevation_rad[count], height_m[count] = laser_rad[record], origin_height_m[record]
            time_ns[count], channel[count] = group_ns + offset_ns[record], record_channel[record]
            for number in range(_RETURNS):
                place = 100 * (block + number) + 4 + 3 * (record % _RECORDS) if number < returns else _NO_PLACE
                raw = signed(payload[place]) | signed(payload[place + 1]) << 8 if place >= 0 else 0
                places[count, number] = place
                range_m[count, number] = raw * unit_m if raw > 0 else np.inf
                byte[count, number] = payload[place + 2] if place >= 0 else 0
            count += 1
        group_ns += firings.group_ns
    return count


@kernel
def _choose_returns(own: "RecordedBlocks", payload: npt.NDArray[np.uint8], choice: npt.NDArray[np.int64]) -> None:  # noqa: ARG001 - as of any family
    mode = signed(payload[1204])
    is_dual = mode in (_DUAL_MODE, _CONFIDENCE_MODE)
    choice[0] = _LAST if is_dual or mode == _LAST_MODE else _STRONGEST
    choice[1] = _STRONGEST_BESIDE_LAST


@kernel
def _write_return(
    own: "RecordedBlocks",
    recorded: RecordedFirings,
    firing: int,
    code: int,
    byte: int,
    marked: int,  # noqa: ARG001 - as of any family
    payload: npt.NDArray[np.uint8],
    place: int,
) -> None:
    payload[place], payload[place + 1] = code & 0xFF, code >> 8
    payload[place + 2] = byte if code > 0 else own.no_return[recorded.channel[firing]]


@kernel
def _note_return(
    own: "RecordedBlocks", recorded: RecordedFirings, firing: int, place: int, packet: int, payload: npt.NDArray[np.uint8], truth: Truth, row: int
) -> None:
    truth.block[row], truth.record[row] = place // 100, (place % 100 - 4) // 3
    truth.sequence[row] = (packet * recorded.state[3] + firing) // own.lasers
    truth.distance[row] = signed(payload[place]) | signed(payload[place + 1]) << 8
    truth.reflectivity[row] = payload[place + 2]


@with_kernels(read_firings=_read_firings, choose_returns=_choose_returns, write_return=_write_return, note_return=_note_return)
class RecordedBlocks(NamedTuple):
    """Kernel-side part of a recorded Velodyne.

    Attributes:
        firings: Directions and times of the records.
        lasers: Number of its lasers.
        record_channel: ``int64[r]``, laser of each record of a group.
        origin_height_m: ``float64[r]``, height of each record's laser above the sensor's origin.
        stamps_last_firing: A data packet's stamp is the time of its last firing.
        no_return: ``uint8[128]``, reflectivity byte of a record without a return, by laser.
    """

    firings: RecordFirings
    lasers: int
    record_channel: npt.NDArray[np.int64]
    origin_height_m: npt.NDArray[np.float64]
    stamps_last_firing: bool
    no_return: npt.NDArray[np.uint8]


def build_velodyne_unit(
    geometry: FiringGeometry,
    response: Response,
    beam: Beam,
    mount: Pose,
    noise_m: npt.NDArray[np.float64],
    *,
    stamps_last_firing: bool,
    no_return: npt.NDArray[np.uint8],
) -> RecordedUnit:
    """Build the kernel-side unit of a Velodyne; arguments as of ``build_recorded_unit`` and ``RecordedBlocks``, ``no_return`` by the model's own lasers."""
    firings, lasers = build_record_firings(geometry), len(geometry.elevation_deg)
    channel = np.arange(firings.share.size, dtype=np.int64) % lasers
    height_m = 1e-3 * np.array(geometry.vertical_offset_mm or (0.0,) * lasers)
    own = RecordedBlocks(firings, lasers, channel, height_m[channel], stamps_last_firing, np.pad(no_return, (0, _LASERS - no_return.size)))
    highest_m = float(np.abs(height_m).max())
    return build_recorded_unit(
        own, response, beam, mount, noise_m, ratio=calibrated_ratios(), byte_offset=2, most_diffuse=_MAX_DIFFUSE, highest_m=highest_m
    )


def recorded_velodyne(payloads: Sequence[bytes]) -> RecordedSensor:
    """The sensor that made data packets; its unit has the limits of the model's ranges.

    Raises:
        CaptureError: the lasers of the model are not known.
    """
    model = BY_NAME[geometry_of_packets(stacked_packets(payloads[:_SURVEYED_PACKETS])).model]
    ranges, no_return = measure_records(payloads, model.geometry)

    def unit(response: Response, beam: Beam, mount: Pose, noise_m: npt.NDArray[np.float64]) -> RecordedUnit:
        unit_m = ranges.unit_m
        response = response._replace(
            unit_m=unit_m,
            range_min_m=model.floor_raw * unit_m,
            range_max_m=model.farthest_raw * unit_m,
            code_max=model.limit_raw,
            has_linear_scale=False,
        )
        return build_velodyne_unit(model.geometry, response, beam, mount, noise_m, stamps_last_firing=model.stamps_last_firing, no_return=no_return)

    return RecordedSensor(ranges, unit, _PROFILES.get(model.name, _OTHER_PROFILE))


def measure_records(payloads: Sequence[bytes], geometry: FiringGeometry) -> tuple[RecordedRanges, npt.NDArray[np.uint8]]:
    """Ranges of the first block of each firing in data packets, in their order, and the most frequent byte of each laser's records without a return."""
    packets, lasers = stacked_packets(payloads), len(geometry.elevation_deg)
    returns_of = RETURNS_BY_MODE_BYTE[packets["return_mode"]]
    returns = int(np.bincount(returns_of).argmax())
    records = packets["blocks"]["channels"][returns_of == returns][:, ::returns]
    used = records.shape[1] * RECORDS_PER_BLOCK // lasers * lasers // RECORDS_PER_BLOCK  # a VLS-128's last blocks in dual mode are padding
    records = records[:, :used].reshape(-1, lasers)
    raw, byte = records["distance"].astype(np.int64), records["reflectivity"].astype(np.int64)
    empty = [byte[raw[:, laser] == 0, laser] for laser in range(lasers)]
    no_return = np.array([np.bincount(values).argmax() if values.size else 0 for values in empty], np.uint8)
    range_m = np.where(raw > 0, raw * geometry.distance_unit_mm * 1e-3, np.nan)
    return RecordedRanges(range_m, byte, geometry.distance_unit_mm * 1e-3), no_return


PART = InsertionPart(packets="a Velodyne's points", recorded=recorded_velodyne)
