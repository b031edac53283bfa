"""Ground truth beside the packets: for each return what sent it, where from, and where the sensor was.

The rows come out of the very firings that the packets are encoded from (``render_with_truth`` runs the packet's own kernel and then looks at its
working arrays), so a row's distance and reflectivity are the packet's bytes.
"""

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.jit import constant, inlined_kernel, kernel
from hilsim.emulator.batch import DatagramBatch
from hilsim.emulator.families.own import COLUMNS, FIRINGS
from hilsim.emulator.families.packets import is_representable, order_of_returns
from hilsim.emulator.fused import render_data_packet
from hilsim.emulator.lidar import LidarEmulator
from hilsim.emulator.plan import LidarPlan
from hilsim.emulator.schedule import first_packet_from, write_deadlines
from hilsim.emulator.workspace import Returns, Workspace, allocate_workspace
from hilsim.protocols.ethernet import Framing
from hilsim.sensor.echoes import BACKGROUND_ALONE, COSINE, ECHO, ENERGY, INSTANCE, MIRRORED, RAY, RETRO, TRIANGLE, Hits, return_type
from hilsim.sensor.response import Response, brightness
from hilsim.sensor.unit.warm_up import warm_up_m
from hilsim.world.geometry.rotations import multiply, normalise, rotate
from hilsim.world.platforms.platform import Platform, platform_state
from hilsim.world.scene.world import World


class BackgroundObject(IntEnum):
    """Object ids of a captured background (Cepton's "AR simulator" note)."""

    ALONE = 888_888
    """Nothing synthetic was in the way."""
    CHOSEN = 999_999
    """Something synthetic was, and the background was chosen."""


class BackgroundLabel(IntEnum):
    """Their labels."""

    ALONE = 99
    CHOSEN = 100


class Cause(IntEnum):
    """Origin of most of an echo's energy."""

    SURFACE = 0
    WEATHER = 1
    FALSE_ALARM = 2
    MIRROR = 3
    """A surface, seen in a mirror: the return lies behind that."""
    INTERFERENCE = 4
    """A pulse of another sensor of the rig."""


_BACKGROUND_ALONE, _BACKGROUND_CHOSEN = constant(BackgroundObject.ALONE), constant(BackgroundObject.CHOSEN)
_LABEL_ALONE, _LABEL_CHOSEN = constant(BackgroundLabel.ALONE), constant(BackgroundLabel.CHOSEN)
_FOR_EVER_NS = 1 << 62
_OF_SURFACE, _IN_MIRROR = constant(Cause.SURFACE), constant(Cause.MIRROR)
_SUB_RAY = MIRRORED - 1
_ONE, _NO_ROW = constant(1), constant(0)


class Truth(NamedTuple):
    """``n`` returns in the order of their bytes: by packet, block, record.

    Attributes:
        packet: ``int64[n]``, index of the data packet since the sensor started.
        block: ``uint8[n]``, data block in the packet, 0 to 11; column of an Ouster's, 0 to 15; 0 in a packet without blocks.
        record: ``uint8[n]``, channel record in the block, 0 to 31; point in a Cepton-style packet, 0 to 143; pixel of an Ouster's column, the returns
            of a pixel side by side.
        sequence: ``int64[n]``, index of the firing sequence since the sensor started.
        channel: ``uint8[n]``, in firing order.
        return_type: ``uint8[n]``, a ``ReturnType``.
        time_ns: ``int64[n]``, rig time of the firing.
        distance: ``uint32[n]``, in counts of the model's range unit: a Velodyne packet's bytes.
        reflectivity: ``uint8[n]``, as in the packet.
        range_m: ``float32[n]``, of the echo, before noise, bias and rounding to a code; to 4 um at 120 m, as rays are cast.
        noise_m: ``float64[n]``, error of the range by noise and by rounding on the sensor's grid.
        bias_m: ``float64[n]``, constant error of the laser, and that of the sensor while it warms up.
        correction_m: ``float64[n]``, correction by laser and reflectivity. ``range_m``, noise, bias and correction add up to the reported range.
        byte_noise: ``int16[n]``, reported minus exact reflectivity byte.
        echo: ``uint8[n]``, which of the firing's echoes, 0 the nearest.
        echoes: ``uint8[n]``, how many the firing had, those too weak to be detected included.
        sub_rays: ``uint32[n]``, bit k set where sub-ray k met a surface of this echo; 0 for weather and false alarms alone.
        object_id: ``int32[n]``, the object that sent most of the echo's energy (the lower id of equals), its place in ``build_world``'s sequence; -1
            where weather or noise did; a ``BackgroundObject`` where a captured background did.
        label: ``int16[n]``, of the object; a ``BackgroundLabel`` for a background; -1 where ``object_id`` is.
        material: ``int32[n]``, row of the world's materials: the one that sent most of that object's energy; -1 where ``object_id`` is, and for a background.
        cause: ``uint8[n]``, a ``Cause``.
        incidence_deg: ``float32[n]``, mean over the echo's surfaces by energy, 0 along the normal; NaN without a surface, and for a captured one.
        position_m: ``float64[n, 3]``, sensor's origin in the world at ``time_ns``.
        orientation: ``float32[n, 4]``, unit quaternion ``(w, x, y, z)``, world from sensor, at ``time_ns``.
        fault: ``uint8[n]``, what changed, added or took away the return: 1 + the place in ``faults.catalogue.FAULTS``; 0: nothing. A return that is taken away
            has a row with ``distance`` 0 and what it would have been.
    """

    packet: npt.NDArray[np.int64]
    block: npt.NDArray[np.uint8]
    record: npt.NDArray[np.uint8]
    sequence: npt.NDArray[np.int64]
    channel: npt.NDArray[np.uint8]
    return_type: npt.NDArray[np.uint8]
    time_ns: npt.NDArray[np.int64]
    distance: npt.NDArray[np.uint32]
    reflectivity: npt.NDArray[np.uint8]
    range_m: npt.NDArray[np.float32]
    noise_m: npt.NDArray[np.float64]
    bias_m: npt.NDArray[np.float64]
    correction_m: npt.NDArray[np.float64]
    byte_noise: npt.NDArray[np.int16]
    echo: npt.NDArray[np.uint8]
    echoes: npt.NDArray[np.uint8]
    sub_rays: npt.NDArray[np.uint32]
    object_id: npt.NDArray[np.int32]
    label: npt.NDArray[np.int16]
    material: npt.NDArray[np.int32]
    cause: npt.NDArray[np.uint8]
    incidence_deg: npt.NDArray[np.float32]
    position_m: npt.NDArray[np.float64]
    orientation: npt.NDArray[np.float32]
    fault: npt.NDArray[np.uint8]


def allocate_truth(rows: int) -> Truth:
    """Arrays for up to ``rows`` returns."""
    return Truth(
        packet=np.zeros(rows, np.int64),
        block=np.zeros(rows, np.uint8),
        record=np.zeros(rows, np.uint8),
        sequence=np.zeros(rows, np.int64),
        channel=np.zeros(rows, np.uint8),
        return_type=np.zeros(rows, np.uint8),
        time_ns=np.zeros(rows, np.int64),
        distance=np.zeros(rows, np.uint32),
        reflectivity=np.zeros(rows, np.uint8),
        range_m=np.zeros(rows, np.float32),
        noise_m=np.zeros(rows),
        bias_m=np.zeros(rows),
        correction_m=np.zeros(rows),
        byte_noise=np.zeros(rows, np.int16),
        echo=np.zeros(rows, np.uint8),
        echoes=np.zeros(rows, np.uint8),
        sub_rays=np.zeros(rows, np.uint32),
        object_id=np.zeros(rows, np.int32),
        label=np.zeros(rows, np.int16),
        material=np.zeros(rows, np.int32),
        cause=np.zeros(rows, np.uint8),
        incidence_deg=np.zeros(rows, np.float32),
        position_m=np.zeros((rows, 3)),
        orientation=np.zeros((rows, 4), np.float32),
        fault=np.zeros(rows, np.uint8),
    )


@kernel
def _sender(world: World, hits: Hits, firing: int, at: int) -> int:
    """Object that a hit is of; ``echoes.WEATHER_RAY``, ``FALSE_ALARM_RAY`` or ``INTERFERENCE_RAY`` for what is no surface."""
    what = hits.what
    if what[firing, at, RAY] < 0:
        return int(what[firing, at, RAY])
    instance = what[firing, at, INSTANCE]
    if instance <= BACKGROUND_ALONE:
        return _BACKGROUND_ALONE if instance == BACKGROUND_ALONE else _BACKGROUND_CHOSEN
    if instance < world.tile_count:
        return int(world.owner[what[firing, at, TRIANGLE]])
    return int(world.instance_object[instance])


@kernel
def _main_sender(world: World, hits: Hits, firing: int, echo: int) -> int:
    """The sender of most of an echo's energy, the lower of equals."""
    value, what, count = hits.value, hits.what, hits.hit_count[firing]
    best, most, known = 0, -1.0, 0
    for at in range(count):
        if what[firing, at, ECHO] != echo:
            continue
        sender = _sender(world, hits, firing, at)
        if most >= 0.0 and sender == known:
            continue  # most echoes are of one object
        known = sender
        energy = 0.0
        for other in range(count):
            if what[firing, other, ECHO] == echo and _sender(world, hits, firing, other) == sender:
                energy += value[firing, other, ENERGY]
        if energy > most or (energy == most and sender < best):
            best, most = sender, energy
    return best


@kernel
def _main_material(world: World, hits: Hits, firing: int, echo: int, sender: int) -> int:
    """The material of most of a sender's energy in an echo, the lower row of equals; -1 for what is no surface."""
    if sender < 0 or sender >= _BACKGROUND_ALONE:
        return -1
    value, what, count = hits.value, hits.what, hits.hit_count[firing]
    best, most, known = -1, -1.0, -1
    for at in range(count):
        if what[firing, at, ECHO] != echo or _sender(world, hits, firing, at) != sender:
            continue
        material = int(world.material[what[firing, at, TRIANGLE]])
        if material == known:
            continue
        known = material
        energy = 0.0
        for other in range(count):
            is_of_sender = what[firing, other, ECHO] == echo and _sender(world, hits, firing, other) == sender
            if is_of_sender and world.material[what[firing, other, TRIANGLE]] == material:
                energy += value[firing, other, ENERGY]
        if energy > most or (energy == most and material < best):
            best, most = material, energy
    return best


@inlined_kernel
def _label(world: World, sender: int) -> int:
    if sender >= _BACKGROUND_ALONE:
        return _LABEL_ALONE if sender == _BACKGROUND_ALONE else _LABEL_CHOSEN
    return int(world.object_label[sender]) if sender >= 0 else -1


@kernel
def describe_echo(world: World, hits: Hits, firing: int, echo: int, truth: Truth, row: int) -> None:
    """Write what sent an echo: everything that follows from its hits."""
    value, what = hits.value, hits.what
    sub_rays = 0
    weighted = energy = mirrored = 0.0
    echoes = 0
    for at in range(hits.hit_count[firing]):
        echoes = max(echoes, what[firing, at, ECHO] + 1)
        if what[firing, at, ECHO] == echo and what[firing, at, RAY] >= 0:
            sub_rays |= 1 << (what[firing, at, RAY] & _SUB_RAY)
            mirrored += value[firing, at, ENERGY] if what[firing, at, RAY] & MIRRORED else 0.0
            energy += value[firing, at, ENERGY]
            cosine = value[firing, at, COSINE]
            weighted += value[firing, at, ENERGY] * (np.nan if math.isnan(cosine) else math.acos(min(1.0, cosine)))
    sender = _main_sender(world, hits, firing, echo)
    truth.echo[row] = echo
    truth.echoes[row] = echoes
    truth.sub_rays[row] = sub_rays
    truth.object_id[row] = max(sender, -1)
    truth.label[row] = _label(world, sender)
    truth.material[row] = _main_material(world, hits, firing, echo, sender)
    if sender < 0:
        truth.cause[row] = -sender  # the rays of what is no surface are the causes' negatives
    else:
        truth.cause[row] = _IN_MIRROR if 2.0 * mirrored > energy else _OF_SURFACE
    truth.incidence_deg[row] = math.degrees(weighted / energy) if sub_rays else np.nan


@inlined_kernel
def _note_errors(plan: LidarPlan, returns: Returns, at: tuple[int, int, int], truth: Truth, row: int) -> None:
    """Write what was added to a return's range; after its ``sequence``, ``distance`` and ``range_m``."""
    unit_m = plan.response.unit_m
    bias_m = plan.bias_m[at[2]] + warm_up_m(plan.warm_up, truth.sequence[row] * plan.sequence_ns)
    correction_m = returns.correction[at] * unit_m
    truth.bias_m[row], truth.correction_m[row] = bias_m, correction_m
    truth.noise_m[row] = returns.distance[at] * unit_m - correction_m - bias_m - truth.range_m[row]


@kernel
def exact_byte(response: Response, hits: Hits, firing: int, echo: int, range_m: float) -> int:
    """Reflectivity byte of an echo without noise."""
    energy = retro = 0.0
    for at in range(hits.hit_count[firing]):
        if hits.what[firing, at, ECHO] == echo:
            energy += hits.value[firing, at, ENERGY]
            retro += hits.value[firing, at, ENERGY] * hits.value[firing, at, RETRO]
    byte, _ = brightness(response, energy, range_m, retro / energy)
    return byte


@kernel
def note_returns(
    plan: LidarPlan,
    platform: Platform,
    world: World,
    mount_m: npt.NDArray[np.float64],
    first_packet: int,
    workspace: Workspace,
    truth: Truth,
    row: int,
) -> int:
    """Write a row for each return in some whole packets.

    Args:
        plan: The lidar.
        platform: Carries the lidar.
        world: World that it saw.
        mount_m: ``float64[3]``, sensor's origin in the platform's body frame.
        first_packet: Index of the first packet.
        workspace: Working arrays after ``emulator.reception.detection.respond``.
        truth: Written from ``row`` on.
        row: First row to write.

    Returns:
        The row after the last.
    """
    returns, hits = workspace.returns, workspace.hits
    distance, reported_echo = returns.distance, returns.echo
    return_count, sequences, channels = distance.shape
    order = order_of_returns(plan)
    is_interleaved = order <= 0
    sequences_per_block = _ONE if is_interleaved else max(order // channels, _ONE)
    banks = _ONE if is_interleaved else max(channels // order, _ONE)
    bank_channels = channels // banks
    outer, inner = (_ONE, return_count) if is_interleaved else (return_count, _ONE)
    sub_rays = plan.beam.share.size
    mount = (plan.mount_orientation[0], plan.mount_orientation[1], plan.mount_orientation[2], plan.mount_orientation[3])
    for begin in range(0, sequences, sequences_per_block):
        for of_group in range(banks * outer):  # in the order of a packet's blocks
            bank, block_return = of_group // outer, of_group % outer
            for sequence in range(begin, begin + sequences_per_block):
                index = workspace.sequence[sequence]
                of_packet = sequence % plan.sequences_per_packet
                for channel in range(bank * bank_channels, (bank + 1) * bank_channels):
                    for return_of_point in range(inner):
                        return_number = block_return + return_of_point
                        firing_ns = index * plan.sequence_ns + plan.firing_offset_ns[channel]
                        code = distance[return_number, sequence, channel]
                        if code == 0 or not is_representable(plan, channel, firing_ns, code):
                            continue
                        firing = channel * sequences + sequence
                        echo = int(reported_echo[return_number, sequence, channel])
                        other = int(reported_echo[return_count - 1 - return_number, sequence, channel])
                        time_ns = workspace.rays.time_ns[firing * sub_rays]
                        truth.packet[row] = first_packet + sequence // plan.sequences_per_packet
                        truth.block[row] = (
                            (of_packet if order == COLUMNS else 0)
                            if is_interleaved
                            else (of_packet // sequences_per_block * banks + bank) * return_count + return_number
                        )
                        truth.record[row] = (
                            ((of_packet if order == FIRINGS else 0) * channels + channel) * return_count + return_number
                            if is_interleaved
                            else of_packet % sequences_per_block * bank_channels + channel - bank * bank_channels
                        )
                        truth.sequence[row] = index
                        truth.channel[row] = channel
                        truth.return_type[row] = return_type(plan.choice, return_number, hits, firing, echo, other)
                        truth.time_ns[row] = time_ns
                        truth.distance[row] = distance[return_number, sequence, channel]
                        truth.reflectivity[row] = returns.reflectivity[return_number, sequence, channel]
                        truth.range_m[row] = returns.range_m[return_number, sequence, channel]
                        _note_errors(plan, returns, (return_number, sequence, channel), truth, row)
                        exact = exact_byte(plan.response, hits, firing, echo, returns.range_m[return_number, sequence, channel])
                        truth.byte_noise[row] = truth.reflectivity[row] - exact
                        describe_echo(world, hits, firing, echo, truth, row)
                        (x, y, z), body = platform_state(platform, time_ns)
                        mx, my, mz = rotate(body, (mount_m[0], mount_m[1], mount_m[2]))
                        truth.position_m[row, 0] = x + mx
                        truth.position_m[row, 1] = y + my
                        truth.position_m[row, 2] = z + mz
                        w, i, j, k = normalise(multiply(body, mount))
                        truth.orientation[row, 0] = w
                        truth.orientation[row, 1] = i
                        truth.orientation[row, 2] = j
                        truth.orientation[row, 3] = k
                        row += 1
    return row


@kernel
def render_with_truth(
    plan: LidarPlan,
    platform: Platform,
    world: World,
    framing: Framing,
    mount_m: npt.NDArray[np.float64],
    first_packet: int,
    workspace: Workspace,
    size: npt.NDArray[np.int32],
    datagrams: npt.NDArray[np.uint8],
    truth: Truth,
) -> int:
    """``fused.render_data_packets``, and a row of ``truth`` for each return; returns how many rows."""
    rows = _NO_ROW
    for at in range(size.size):
        size[at] = render_data_packet(plan, platform, world, framing, first_packet + at, workspace, datagrams[at])
        rows = note_returns(plan, platform, world, mount_m, first_packet + at, workspace, truth, rows)
    return rows


def _first_rows(truth: Truth, rows: int) -> Truth:
    return Truth._make(column[:rows].copy() for column in truth)


def _returns_max(plan: LidarPlan) -> int:
    """Returns of a packet, at most."""
    return int(plan.sequences_per_packet * plan.firing_offset_ns.size * plan.choice.size)


def packets_with_truth(lidar: LidarEmulator, first: int, count: int) -> tuple[DatagramBatch, Truth]:
    """``lidar.data_packets(first, count)``, the same bytes, and the ground truth of their returns, ``fault`` aside."""
    return _changing_packets_with_truth(lidar, first, count) if lidar.later else _packets_with_truth(lidar, first, count)


def _changing_packets_with_truth(lidar: LidarEmulator, first: int, count: int) -> tuple[DatagramBatch, Truth]:
    """The packets by all segments at once; their truth from one segment after the other, each asked for its own firings."""
    packets = lidar.data_packets(first, count)
    base, following = lidar.within(first, count)
    begins_ns = [-_FOR_EVER_NS, *(begin_ns for begin_ns, _ in following), _FOR_EVER_NS]
    found: list[Truth] = []
    for number, segment in enumerate((base, *(later.lidar for later in following))):
        begin_ns, end_ns = begins_ns[number], begins_ns[number + 1]
        start = max(first_packet_from(segment.plan, begin_ns) - 1, first) if number else first
        stop = min(first_packet_from(segment.plan, end_ns), first + count) if number < len(following) else first + count
        if start >= stop:
            continue
        _, truth = _packets_with_truth(segment, start, stop - start)
        rows = (truth.time_ns >= begin_ns) & (truth.time_ns < end_ns)
        found.append(Truth._make(column[rows] for column in truth))
    joined = Truth._make(np.concatenate(columns) for columns in zip(*found, strict=True)) if found else allocate_truth(0)
    order = np.lexsort((joined.record, joined.block, joined.packet))
    return packets, Truth._make(column[order] for column in joined)


def _packets_with_truth(lidar: LidarEmulator, first: int, count: int) -> tuple[DatagramBatch, Truth]:
    plan = lidar.plan
    datagrams = np.zeros((count, lidar.data_framing.header_size + plan.data_size), np.uint8)
    size = np.zeros(count, np.int32)
    workspace = allocate_workspace(plan, plan.sequences_per_packet, is_opaque=lidar.world.is_opaque)
    truth = allocate_truth(count * _returns_max(lidar.plan))
    rows = render_with_truth(
        plan,
        lidar.platform,
        lidar.world,
        lidar.data_framing,
        np.array(lidar.setting.setup.mount_position_m),
        first,
        workspace,
        size,
        datagrams,
        truth,
    )
    deadline = np.empty(count, np.int64)
    write_deadlines(plan, first, deadline)
    return DatagramBatch(lidar.data_flow, deadline, deadline - plan.data_latency_ns, size, datagrams), _first_rows(truth, rows)
