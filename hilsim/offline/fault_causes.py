"""What each fault on command made of a lidar's returns: found by rendering the same packets without faults, and with one at a time."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from hilsim.emulator.lidar import LaterLidar, LidarEmulator
from hilsim.emulator.schedule import packet_start_ns
from hilsim.emulator.truth import Truth, packets_with_truth
from hilsim.faults.specs import KINDS, FaultSpec


def faults_in_truth(lidar: LidarEmulator, first: int, count: int, truth: Truth) -> Truth:
    """Truth of ``packets_with_truth`` with ``fault``, and with a row for each return that a fault has taken away.

    The fault of a record is the first one that alone makes another return of it than there is without faults.
    """
    base, following = lidar.within(first, count)
    start_ns, stop_ns = packet_start_ns(base.plan, first), packet_start_ns(lidar.at_packet(first + count).plan, first + count)
    in_force = [fault for each in (base, *(later.lidar for later in following)) for fault in each.setting.faults]
    acting = [fault for fault in dict.fromkeys(in_force) if fault.begin_ns < stop_ns and fault.end_ns > start_ns]
    if not acting:
        return truth
    _, clean = packets_with_truth(_with_faults_alone(lidar, ()), first, count)
    changed = _differing(truth, clean)
    missing = np.array([], np.int64) if clean.packet.size == 0 else np.flatnonzero(~np.isin(_records(clean), _records(truth)))
    rows = Truth._make(np.concatenate((getattr(truth, name), getattr(clean, name)[missing])) for name in Truth._fields)
    rows.distance[truth.packet.size :], rows.fault[:] = 0, 0
    unknown = np.concatenate((changed, np.ones(missing.size, np.bool_)))
    rows.fault[unknown] = 1 + KINDS[acting[0].kind]
    for fault in acting if len(acting) > 1 else ():
        _, alone = packets_with_truth(_with_faults_alone(lidar, (fault,)), first, count)
        differing = _records(alone)[_differing(alone, clean)]
        gone = _records(clean)[~np.isin(_records(clean), _records(alone))]
        found = unknown & np.isin(_records(rows), np.concatenate((differing, gone)))
        rows.fault[found] = 1 + KINDS[fault.kind]
        unknown &= ~found
    order = np.lexsort((rows.record, rows.block, rows.packet))
    return Truth._make(column[order] for column in rows)


def _with_faults_alone(lidar: LidarEmulator, faults: tuple[FaultSpec, ...]) -> LidarEmulator:
    """A lidar that some of its faults alone befall."""

    def reduced(each: LidarEmulator) -> LidarEmulator:
        own = tuple(fault for fault in each.setting.faults if fault in faults)
        return replace(each, setting=replace(each.setting, faults=own), may_change=True)

    return replace(reduced(lidar), later=tuple(LaterLidar(begin_ns, reduced(each)) for begin_ns, each in lidar.later))


def _records(truth: Truth) -> npt.NDArray[np.int64]:
    """A number for each row's record of its packet, ``int64[n]``."""
    return np.asarray((truth.packet << 16) + (truth.block.astype(np.int64) << 8) + truth.record, np.int64)


def _differing(truth: Truth, clean: Truth) -> npt.NDArray[np.bool_]:
    """Whether each row's return is another one than that of the clean packets, or is not in these; ``bool[n]``."""
    values = [np.stack((each.distance.astype(np.int64), each.reflectivity.astype(np.int64)), axis=1) for each in (truth, clean)]
    at = np.searchsorted(_records(clean), _records(truth))
    is_known = np.isin(_records(truth), _records(clean))
    same = np.zeros(truth.packet.size, np.bool_)
    same[is_known] = (values[0][is_known] == values[1][at[is_known]]).all(axis=1)
    return ~same
