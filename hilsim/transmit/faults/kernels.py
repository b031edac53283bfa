"""What befalls a datagram between its sensor and the receiver: kernels for the sending loop, and for rigs without a clock, with the same bytes.

A datagram's fate is a function of its deadline in rig time and of its flow's name: what other datagrams there are changes it only in a queue that they share.
A datagram that a fault may befall is copied, changed, and held until it is due; the caller merges what is held with what is not, by time.
"""

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire
from hilsim.compilation.jit import constant, kernel, stage_kernel
from hilsim.faults.catalogue import Effect, Jitter
from hilsim.faults.table import strength
from hilsim.protocols.ethernet import add_tag, fit_headers, ip_start, spoil_checksums, write_fragment
from hilsim.rng import Purpose, uniform, uniform_pair
from hilsim.transmit.faults.arrays import LINE_BYTES, LONGEST_TAIL, NEVER_NS, NetworkCount, NetworkFaults, Pool

_FLAP, _LOSE, _CORRUPT, _CUT = constant(Effect.FLAP), constant(Effect.LOSE), constant(Effect.CORRUPT), constant(Effect.CUT)
_CHECKSUM, _TAG, _QUEUE, _DELAY = constant(Effect.CHECKSUM), constant(Effect.TAG), constant(Effect.QUEUE), constant(Effect.DELAY)
_REORDER, _REPEAT = constant(Effect.REORDER), constant(Effect.REPEAT)
_NORMAL, _PARETO = float(Jitter.NORMAL), float(Jitter.PARETO)
_FATE, _BITS = constant(Purpose.NETWORK_FATE), constant(Purpose.NETWORK_BITS)
_COUNT, _PLACE, _VALUE = constant(Purpose.NETWORK_COUNT), constant(Purpose.NETWORK_PLACE), constant(Purpose.NETWORK_VALUE)
_SHARED, _LINE_BYTES, _NEVER, _NOTHING = constant(0), constant(LINE_BYTES), constant(NEVER_NS), constant(0)
_MS = 1e6
_EVENTS = 16
"""More events than this in a cell, where one is expected, occur once in 10^14."""
_ODD = 0x9E3779B9
_strength: Any = strength  # for another table with the same columns


# -- what is held ----------------------------------------------------------------------------------------------------------------------


@kernel
def next_held_ns(faults: NetworkFaults) -> int:
    """Deadline of the held datagram that is due first; far away where none is held."""
    if faults.pool[Pool.COUNT] == 0:
        return _NEVER
    return int(faults.held.deadline_ns[0, first_held(faults)])


@kernel
def first_held(faults: NetworkFaults) -> int:
    """Slot of the held datagram that is due first."""
    return int(faults.order[faults.pool[Pool.HEAD] % faults.order.size])


@kernel
def release_held(faults: NetworkFaults) -> None:
    """Forget the held datagram that is due first."""
    slot = first_held(faults)
    faults.pool[Pool.HEAD] += 1
    faults.pool[Pool.COUNT] -= 1
    _give_back(faults, slot)


@kernel
def _give_back(faults: NetworkFaults, slot: int) -> None:
    faults.free[faults.pool[Pool.FREE]] = slot
    faults.pool[Pool.FREE] += 1


@kernel
def _take_slot(faults: NetworkFaults, flow: int) -> int:
    """A free slot for a datagram of a flow; -1 if there is none, which is counted."""
    if faults.pool[Pool.FREE] == 0:
        faults.counts[flow, NetworkCount.NOT_HELD] += 1
        return -1
    faults.pool[Pool.FREE] -= 1
    return int(faults.free[faults.pool[Pool.FREE]])


@kernel
def _hold(faults: NetworkFaults, slot: int, flow: int, due_ns: int, pose_ns: int, size: int) -> None:
    """Hold the datagram that was written into a slot until a rig time, after all that are due before it or with it."""
    held, order, head, slots = faults.held, faults.order, faults.pool[Pool.HEAD], faults.order.size
    deadline_ns, at = due_ns + faults.epoch_ns[0], head + faults.pool[Pool.COUNT]
    held.deadline_ns[0, slot], held.pose_ns[0, slot], held.size[0, slot] = deadline_ns, pose_ns, size
    faults.held_flow[slot], faults.held_serial[slot] = flow, faults.serial[flow]
    while at > head and held.deadline_ns[0, order[(at - 1) % slots]] > deadline_ns:
        order[at % slots] = order[(at - 1) % slots]
        at -= 1
    order[at % slots] = slot
    faults.pool[Pool.COUNT] += 1


@kernel
def _copied(faults: NetworkFaults, flow: int, datagram: npt.NDArray[np.uint8], size: int) -> int:
    """Copy a datagram into a free slot; -1 if there is none, which is counted."""
    slot = _take_slot(faults, flow)
    if slot >= 0:
        copy = faults.held.payload[0, slot]
        for at in range(size):
            copy[at] = datagram[at]
    return slot


@kernel
def _hold_fragments(
    faults: NetworkFaults,
    slot: int,
    flow: int,
    due_ns: int,
    pose_ns: int,
    size: int,
    mtu: int,
    is_swapped: bool,  # noqa: FBT001 - a kernel takes plain positional scalars
) -> None:
    """Hold the fragments of a frame in place of it; ``mtu`` 0: hold it whole."""
    if mtu == 0:
        _hold(faults, slot, flow, due_ns, pose_ns, size)
        return
    frame, part_size = faults.held.payload[0, slot], (mtu - 20) // 8 * 8
    number_of = -(-(size - ip_start(frame) - 20) // part_size)
    if number_of <= 1:
        _hold(faults, slot, flow, due_ns, pose_ns, size)
        return
    faults.counts[flow, NetworkCount.FRAGMENTED] += 1
    identification = int(uniform(faults.stream[flow], _SHARED, due_ns, _BITS) * 65_535.0) + 1
    for number in range(number_of):
        other = _take_slot(faults, flow)
        if other >= 0:
            chosen = number_of - 1 - number if is_swapped else number
            length = write_fragment(frame, size, part_size, chosen, identification, faults.held.payload[0, other])
            _hold(faults, other, flow, due_ns, pose_ns, length)
    _give_back(faults, slot)


# -- what befalls a datagram -----------------------------------------------------------------------------------------------------------


@kernel
def newest_draw(seed: int, rig_ns: int, mean_ns: float) -> tuple[float, float]:
    """Two uniform numbers in [0, 1) that are drawn anew at random times, a mean time apart: those in force at a rig time, whatever was asked before.

    The times are a Poisson process: each cell of the mean time has a Poisson number of them, at uniform places. A state that is drawn with its stationary
    probabilities at each such time is a Markov process in continuous time, and a jitter drawn so has an exponential correlation.
    """
    cell = math.floor(rig_ns / mean_ns)
    place = rig_ns / mean_ns - cell
    for _ in range(64):
        drawn, newest, newest_at, count = uniform(seed, _SHARED, cell, _COUNT), -1, -1.0, 0
        share = math.exp(-1.0)
        below = share
        while drawn >= below and count < _EVENTS:
            count += 1
            share /= count
            below += share
        for event in range(count):
            at = uniform(seed, _SHARED, _EVENTS * cell + event, _PLACE)
            if newest_at < at <= place:
                newest, newest_at = event, at
        if newest >= 0:
            return uniform_pair(seed, _SHARED, _EVENTS * cell + newest, _VALUE)
        cell, place = cell - 1, 1.0
    return uniform_pair(seed, _SHARED, _EVENTS * cell, _VALUE)


@kernel
def _is_lost(faults: NetworkFaults, row: int, acts: float, rig_ns: int, drawn: float) -> bool:
    value = faults.value[row]
    if faults.effect[row] == _FLAP:
        return bool((rig_ns - faults.begin_ns[row]) % (_MS * (value[0] + value[1])) < _MS * value[0])
    share = value[2]
    if value[2] != value[3]:
        state, _ = newest_draw(faults.seed[row], rig_ns, _MS * value[0] * value[1] / (value[0] + value[1]))
        share = value[3] if state < value[1] / (value[0] + value[1]) else value[2]
    return bool(drawn < acts * share)


@kernel
def _flip_bits(
    faults: NetworkFaults, row: int, acts: float, stream: int, rig_ns: int, payload: npt.NDArray[np.uint8], drawn: tuple[float, float]
) -> bool:
    """Change bits of a payload; returns whether there were any."""
    bits, is_changed = 8 * payload.size, False
    if drawn[0] < acts * faults.value[row, 1] and bits > 0:
        bit = int(drawn[1] * bits)
        payload[bit >> 3] ^= 1 << (bit & 7)
        is_changed = True
    ratio = acts * faults.value[row, 0]
    if ratio > 0.0:
        at, number = -1.0, 0
        while True:
            at += 1.0 + math.floor(math.log(1.0 - uniform(faults.seed[row] + number, stream, rig_ns, _BITS)) / math.log1p(-ratio))
            if at >= bits:
                break
            payload[int(at) >> 3] ^= 1 << (int(at) & 7)
            number, is_changed = number + 1, True
    return is_changed


@kernel
def _altered(
    faults: NetworkFaults, row: int, acts: float, slot: int, flow: int, stream: int, rig_ns: int, size: int, drawn: tuple[float, float]
) -> int:
    """Change a datagram in its slot; returns its size."""
    effect, value, header, frame = faults.effect[row], faults.value[row], faults.header[flow], faults.held.payload[0, slot]
    if effect == _CORRUPT:
        if not _flip_bits(faults, row, acts, stream, rig_ns, frame[header:size], drawn):
            return size
        faults.counts[flow, NetworkCount.CORRUPTED] += 1
    elif effect == _CUT:
        if drawn[0] >= acts * value[0] or size - header <= value[1]:
            return size
        size = header + int(value[1])
        faults.counts[flow, NetworkCount.CUT] += 1
    elif effect == _CHECKSUM:
        of_udp, of_ip = drawn[0] < acts * value[0], drawn[1] < acts * value[1]
        spoil_checksums(frame, size - header, of_udp, of_ip)
        faults.counts[flow, NetworkCount.CHECKSUM] += of_udp or of_ip
        return size
    else:
        faults.counts[flow, NetworkCount.TAGGED] += 1
        return add_tag(frame, size, int(value[1]) << 13 | int(value[0]))
    if header > 0:
        fit_headers(frame, size - header)
    return size


@kernel
def _leaves_ns(faults: NetworkFaults, row: int, arrival_ns: int, size: int) -> int:
    """Rig time at which a queue has sent a datagram; -1 if it has no room for it."""
    hold_ns, every_ns, byte_ns = _MS * faults.value[row, 0], _MS * faults.value[row, 1], 8e9 / faults.value[row, 2]
    opens_ns = arrival_ns
    if hold_ns > 0.0:
        opens_ns += int(max(hold_ns - (arrival_ns - faults.begin_ns[row]) % every_ns, 0.0))
    memory = faults.memory[row]
    begin_ns = max(opens_ns, faults.free_ns[memory])
    if (begin_ns - opens_ns) / byte_ns + size > faults.value[row, 3]:
        return -1
    faults.free_ns[memory] = begin_ns + int(size * byte_ns)
    return int(faults.free_ns[memory])


@kernel
def _delay_ns(faults: NetworkFaults, row: int, acts: float, rig_ns: int, drawn: tuple[float, float]) -> int:
    value = faults.value[row]
    if faults.effect[row] == _REORDER:
        return int(_MS * value[1] * drawn[1]) if drawn[0] < acts * value[0] else 0
    first, second = newest_draw(faults.seed[row], rig_ns, _MS * value[2]) if value[2] > 0.0 else drawn
    if value[3] == _NORMAL:
        jitter = math.sqrt(-2.0 * math.log(1.0 - first)) * math.cos(2.0 * math.pi * second)
    elif value[3] == _PARETO:
        jitter = min(2.0 * (math.pow(1.0 - first, -1.0 / 3.0) - 1.0), LONGEST_TAIL)
    else:
        jitter = 2.0 * first - 1.0
    return int(_MS * acts * max(value[0] + value[1] * jitter, 0.0))


@kernel
def _acts(faults: NetworkFaults, row: int, flow: int, rig_ns: int) -> float:
    """How strongly a fault acts upon a flow: 0 to 1."""
    if not faults.befalls[row, flow] or rig_ns >= faults.cut_ns[row]:
        return 0.0
    return float(_strength(faults, row, rig_ns))


@kernel
def _passes_ns(faults: NetworkFaults, row: int, acts: float, flow: int, rig_ns: int, due_ns: int, size: int, drawn: tuple[float, float]) -> int:
    """When a datagram that arrives at ``due_ns`` has passed a fault; -1 if it does not, which is counted."""
    effect = faults.effect[row]
    if effect <= _LOSE:
        if not _is_lost(faults, row, acts, rig_ns, drawn[0]):
            return due_ns
        faults.counts[flow, NetworkCount.LOST] += 1
        return -1
    if effect == _QUEUE:
        due_ns = _leaves_ns(faults, row, due_ns, size - faults.header[flow] + _LINE_BYTES)
        faults.counts[flow, NetworkCount.OVERFLOWN] += due_ns < 0
        return due_ns
    return due_ns + _delay_ns(faults, row, acts, rig_ns, drawn)


@stage_kernel
def befall(faults: NetworkFaults, flow: int, rig_ns: int, pose_ns: int, datagram: npt.NDArray[np.uint8], size: int) -> int:
    """Let the faults of the network befall a datagram, and hold what becomes of it; returns the number of datagrams held.

    Args:
        faults: The faults.
        flow: Row of the datagram's flow.
        rig_ns: Its deadline, not before that of the flow's datagram before.
        pose_ns: Time of its newest pose.
        datagram: ``uint8[>= size]``.
        size: Its bytes.
    """
    faults.ordinal[flow] = faults.ordinal[flow] + 1 if faults.last_ns[flow] == rig_ns else 0
    faults.last_ns[flow] = rig_ns
    stream = (faults.stream[flow] + faults.ordinal[flow] * _ODD) & 0xFFFFFFFF
    slot = _copied(faults, flow, datagram, size)
    if slot < 0:
        return int(faults.pool[Pool.COUNT])
    due_ns, copy_ns, mtu, is_swapped = rig_ns, _NEVER, _NOTHING, False
    half = load_acquire(faults.selected, (0,))
    first_row = half * (faults.effect.size // 2)
    for row in range(first_row, first_row + faults.rows[half]):
        acts, effect = _acts(faults, row, flow, rig_ns), faults.effect[row]
        if acts <= 0.0:
            continue
        drawn = uniform_pair(faults.seed[row], stream, rig_ns, _FATE)
        if _CORRUPT <= effect <= _TAG:
            size = _altered(faults, row, acts, slot, flow, stream, rig_ns, size, drawn)
        elif effect <= _REORDER:
            due_ns = _passes_ns(faults, row, acts, flow, rig_ns, due_ns, size, drawn)
            if due_ns < 0:
                _give_back(faults, slot)
                return int(faults.pool[Pool.COUNT])
        elif drawn[0] < acts * faults.value[row, 0] and effect == _REPEAT:
            copy_ns = int(_MS * faults.value[row, 1])
        elif drawn[0] < acts * faults.value[row, 0]:
            mtu, is_swapped = int(faults.value[row, 1]), drawn[1] < faults.value[row, 2]
    faults.counts[flow, NetworkCount.DELAYED] += due_ns > rig_ns
    copy = _copied(faults, flow, faults.held.payload[0, slot], size) if copy_ns != _NEVER else -1
    if copy >= 0:
        faults.counts[flow, NetworkCount.REPEATED] += 1
        _hold(faults, copy, flow, due_ns + copy_ns, pose_ns, size)
    _hold_fragments(faults, slot, flow, due_ns, pose_ns, size, mtu, is_swapped)
    return int(faults.pool[Pool.COUNT])


@kernel
def pass_network(
    faults: NetworkFaults,
    deadline_ns: npt.NDArray[np.int64],
    flow: npt.NDArray[np.int64],
    size: npt.NDArray[np.int32],
    payload: npt.NDArray[np.uint8],
    first: int,
    until_ns: int,
    out_ns: npt.NDArray[np.int64],
    out_flow: npt.NDArray[np.int64],
    out_size: npt.NDArray[np.int32],
    out_payload: npt.NDArray[np.uint8],
) -> tuple[int, int]:
    """Pass datagrams through the network in the order of their deadlines, without a clock.

    Args:
        faults: The faults.
        deadline_ns: ``int64[n]``, deadlines, rising.
        flow: ``int64[n]``, rows of the flows.
        size: ``int32[n]``, bytes.
        payload: ``uint8[n, c]``, the datagrams.
        first: Number of the datagram to begin with.
        until_ns: End of the stretch; what is held until later stays.
        out_ns: ``int64[m]``, output: when each datagram leaves.
        out_flow: ``int64[m]``, output: its flow.
        out_size: ``int32[m]``, output: its bytes.
        out_payload: ``uint8[m, C]``, output: it.

    Returns:
        Number of the datagram to go on with, n + 1 where the stretch is complete, and the number of datagrams that came out.
    """
    made = 0
    for number in range(first, deadline_ns.size + 1):
        is_end = number == deadline_ns.size
        last_ns = until_ns - 1 if is_end else deadline_ns[number]
        while next_held_ns(faults) <= last_ns:
            if made == out_ns.size:
                return number, made
            slot = first_held(faults)
            out_ns[made], out_flow[made], out_size[made] = next_held_ns(faults), faults.held_flow[slot], faults.held.size[0, slot]
            held, out = faults.held.payload[0, slot], out_payload[made]
            for at in range(out_size[made]):
                out[at] = held[at]
            release_held(faults)
            made += 1
        if is_end:
            break
        if faults.befallen[flow[number]] != 0:
            befall(faults, flow[number], deadline_ns[number], _NOTHING, payload[number], size[number])
            continue
        if made == out_ns.size:
            return number, made
        out_ns[made], out_flow[made], out_size[made] = deadline_ns[number], flow[number], size[number]
        for at in range(size[number]):
            out_payload[made, at] = payload[number, at]
        made += 1
    return deadline_ns.size + 1, made
