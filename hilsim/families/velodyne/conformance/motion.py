"""Rules for the head's angle and the stamps: the angle must be rate times time."""

from typing import NamedTuple

import numpy as np

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.conformance.head_motion import LEAP_CDEG
from hilsim.families.velodyne.conformance.repeats import RepeatsTopic
from hilsim.families.velodyne.protocol.steps import wrapped_cdeg
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

MOTION = Rule(id="azimuth.motion", severity=Severity.ERROR, packets=2)

_MIN_BORDERS = 100
_MAX_LEAPS = 4096


class _Leap(NamedTuple):
    """A finding that waits for the end of the stream, because it may be the seam of a loop.

    Attributes:
        packet: Index of the packet that does not continue the former one.
        message: Text of the finding.
        place: Place of the finding, which may be in the former packet.
        leap_cdeg: Size of the head's leap, if known.
    """

    packet: int
    message: str
    place: Place
    leap_cdeg: float


class MotionTopic:
    """Leaps, and the mean step between packets."""

    def __init__(self) -> None:
        self.leaps: list[_Leap] = []
        self.uncounted = 0
        self._borders, self._border_sum = 0, 0.0
        self._step_sum = 0.0
        self._last: tuple[int, Place] | None = None  # last azimuth and place of the former block

    def look(self, block: DataBlock) -> None:
        """Add the motion of one block."""
        motion = block.motion
        for row in np.flatnonzero(motion.is_wrong | motion.is_hasty | motion.is_backward).tolist():
            if len(self.leaps) >= _MAX_LEAPS:
                self.uncounted += 1
                continue
            self.leaps.append(self._leap(block, row))
        border = wrapped_cdeg(block.azimuth[1:, 0] - block.azimuth[:-1, -1] - motion.step_cdeg[1:])
        usual = block.is_next[1:] & (np.abs(border) <= LEAP_CDEG)
        self._borders += int(usual.sum())
        self._border_sum += float(border[usual].sum())
        self._step_sum += float(motion.step_cdeg[1:][usual].sum())
        self._last = int(block.azimuth[-1, -1]), block.place(-1)._replace(packet_index=block.first_index + len(block.frames) - 1)

    def _leap(self, block: DataBlock, row: int) -> _Leap:
        motion, per_azimuth = block.motion, 100 * block.model.group_blocks(is_dual=block.is_dual)
        index = block.first_index + row
        if motion.is_backward[row]:
            return _Leap(index, f"azimuth must grow, got steps of {motion.step_cdeg[row]:.1f} hundredths of a degree", block.place(row, 2), 0.0)
        if motion.is_hasty[row]:
            leaping = int(motion.leap_row[row])
            place = block.place(leaping) if leaping >= 0 else (self._last or (0, block.place(0)))[1]
            message = (
                f"azimuth must go on inside a packet, got a leap of {motion.leap_cdeg[row] / 100:.2f} degrees"
                f" that the stamps, {motion.due_us[row]} us apart, leave no time for"
            )
            return _Leap(index, message, place.at(per_azimuth * int(motion.leap_column[row]) + 2), 0.0)
        message = (
            f"the head must turn by {motion.due_cdeg[row] / 100:.2f} degrees in the {motion.due_us[row]} us since the packet before,"
            f" got {motion.turned_cdeg[row] / 100:.2f}"
        )
        return _Leap(index, message, block.place(row, 2), float(wrapped_cdeg(motion.turned_cdeg[row] - motion.due_cdeg[row])))

    def seam_leap_cdeg(self, repeats: RepeatsTopic) -> float:
        """Size of the head's leap at the seam of a loop, or 0."""
        return max((abs(leap.leap_cdeg) for leap in self.leaps if repeats.is_seam(leap.packet)), default=0.0)

    def conclude(self, log: FindingLog, repeats: RepeatsTopic) -> None:
        """Report leaps, except at the seam of a loop, where they are reported with the loop."""
        for leap in self.leaps:
            if not repeats.is_seam(leap.packet):
                log.report(MOTION, leap.message, leap.place)
        log.add(MOTION, self.uncounted)
        if self._borders < _MIN_BORDERS:
            return
        mean, usual = self._border_sum / self._borders, self._step_sum / self._borders
        if abs(mean) > max(1.0, 0.03 * usual):
            log.report(MOTION, f"azimuth must advance by {usual:.2f} from packet to packet as from block to block, got {usual + mean:.2f} on average")
