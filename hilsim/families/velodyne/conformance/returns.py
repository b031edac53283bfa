"""Rules for the distributions of distances and reflectivities."""

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.models import Model
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

EVEN = Rule(id="returns.even", severity=Severity.ERROR, packets=10)
GRID = Rule(id="returns.grid", severity=Severity.ERROR, packets=10)
MINIMUM = Rule(id="returns.minimum", severity=Severity.ERROR)
MAXIMUM = Rule(id="returns.maximum", severity=Severity.ERROR)
REPEATED = Rule(id="returns.repeated", severity=Severity.ERROR, packets=10)
NO_RETURN = Rule(id="returns.no_return", severity=Severity.ERROR, packets=10)
BASELINE = Rule(id="returns.baseline", severity=Severity.WARNING, packets=50)
REFLECTIVITY = Rule(id="returns.reflectivity", severity=Severity.ERROR, packets=10)
BLANK = Rule(id="returns.blank", severity=Severity.ERROR, packets=10)
SECOND_FIRING = Rule(id="returns.second_firing", severity=Severity.ERROR, packets=10)

_MIN_RETURNS = 2000
_MIN_EMPTY = 1000
_MIN_BLOCKS = 120
_MIN_SEQUENCES = 100
_MIN_SPANS = 6  # spans of distances that differ only in the bits above, each with a thousandth of the returns or more
_MIN_FLOORS = 5  # lasers with empty records, for a comparison of their noise floors: fewer may share one by chance


class ReturnsTopic:
    """Histograms of the measurements."""

    def __init__(self) -> None:
        self._model: Model | None = None
        self._distances = np.zeros(65536, dtype=np.int64)
        self._bytes = np.zeros(256, dtype=np.int64)
        self._empty_bytes = np.zeros((32, 256), dtype=np.int64)
        self._blocks, self._blank = 0, 0
        self._sequences, self._copied = 0, 0

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Judge and count the records of one block."""
        self._model = model = block.model
        distance, reflectivity = np.ascontiguousarray(block.distance), np.ascontiguousarray(block.reflectivity)
        self._check_limits(block, distance, model, log)
        self._distances += np.bincount(distance.ravel(), minlength=65536)
        is_empty = distance == 0
        self._bytes += np.bincount(reflectivity[~is_empty], minlength=256)
        laser = np.broadcast_to(np.arange(32) % model.channels, distance.shape)
        keyed = laser[is_empty].astype(np.int64) * 256 + reflectivity[is_empty]
        self._empty_bytes += np.bincount(keyed, minlength=32 * 256).reshape(32, 256)
        self._blocks += distance.shape[0] * distance.shape[1]
        self._blank += int((is_empty & (reflectivity == 0)).all(axis=2).sum())
        if model.channels == 16:
            self._count_copies(distance)

    def _check_limits(self, block: DataBlock, distance: npt.NDArray[np.uint16], model: Model, log: FindingLog) -> None:
        near, far = (distance > 0) & (distance < model.floor_raw), distance > model.limit_raw
        quite_far = (distance > model.farthest_raw) & ~far
        floor_severity = Severity.ERROR if model.floor_is_certain else Severity.WARNING
        for rule, wrong, words, severity in (
            (MINIMUM, near, f"{model.floor_raw} or more", floor_severity),
            (MAXIMUM, far, f"at most {model.limit_raw}", Severity.ERROR),
            (MAXIMUM, quite_far, f"at most {model.farthest_raw} as far as was seen", Severity.WARNING),
        ):
            for row, number, record in np.argwhere(wrong)[:1]:
                raw = int(distance[row, number, record])
                metres = raw * model.distance_unit_mm / 1000.0
                message = f"a raw distance must be {words}, got {raw} ({metres:.3f} m) in {int(wrong.sum())} records from here on"
                log.report(rule, message, block.place(int(row), 100 * int(number) + 4 + 3 * int(record)), severity=severity)

    def _count_copies(self, distance: npt.NDArray[np.uint16]) -> None:
        first, second = distance[:, :, :16], distance[:, :, 16:]
        is_judged = (first > 0).sum(axis=2) >= 4
        self._sequences += int(is_judged.sum())
        self._copied += int((is_judged & (first == second).all(axis=2)).sum())

    @property
    def no_return_ratio(self) -> float:
        """Share of empty records; NaN before any."""
        total = int(self._distances.sum())
        return int(self._distances[0]) / total if total else float("nan")

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        counts = self._distances.copy()
        counts[0] = 0
        total = int(counts.sum())
        if log.applies((EVEN, GRID, REPEATED, REFLECTIVITY), total, _MIN_RETURNS, "returns"):
            self._conclude_distances(counts, total, log)
            self._conclude_reflectivity(total, log)
        self._conclude_empty(log)
        if log.applies(BLANK, self._blocks, _MIN_BLOCKS, "blocks") and self._blank:
            severity = Severity.ERROR if self._blank > 0.01 * self._blocks else Severity.WARNING
            log.report(BLANK, f"blocks must not be filled with zeros, got {self._blank} of {self._blocks}", severity=severity)
        has_two = self._model is not None and self._model.channels == 16
        if has_two and log.applies(SECOND_FIRING, self._sequences, _MIN_SEQUENCES, "blocks with returns") and self._copied > 0.5 * self._sequences:
            log.report(
                SECOND_FIRING, f"the second firing of a block must be measured, got a copy of the first in {self._copied} of {self._sequences} blocks"
            )

    def _conclude_distances(self, counts: npt.NDArray[np.int64], total: int, log: FindingLog) -> None:
        odd = int(counts[1::2].sum()) / total
        if odd < 0.05 or odd > 0.95:
            log.report(EVEN, f"half of the raw distances must be odd, got {100 * odd:.1f} %")
        elif not 0.4 <= odd <= 0.6:
            log.report(EVEN, f"half of the raw distances are odd on real sensors, got {100 * odd:.1f} %", severity=Severity.WARNING)
        for step in (3, 5, 7):
            share = int(counts[::step].sum()) / total
            if share > 0.6:
                log.report(GRID, f"raw distances must use every value, got multiples of {step} in {100 * share:.1f} %")
        self._conclude_bits(counts, total, log)
        top = int(counts.argmax())
        unit_mm = self._model.distance_unit_mm if self._model else 2
        if counts[top] > 0.3 * total and top * unit_mm >= 20_000:
            log.report(
                REPEATED,
                f"missing returns must have distance 0, got {top * unit_mm / 1000:.3f} m in {100 * counts[top] / total:.0f} % of the returns",
            )

    def _conclude_bits(self, counts: npt.NDArray[np.int64], total: int, log: FindingLog) -> None:
        """Report bits above the lowest that never change although distances lie on both sides of them several times."""
        for bit in range(1, 14):
            halves = counts.reshape(-1, 2, 1 << bit).sum(axis=2)  # by span, then by bit
            clear, set_ = halves.sum(axis=0).tolist()
            if min(clear, set_) < 1e-4 * total and (halves.sum(axis=1) > 1e-3 * total).sum() >= _MIN_SPANS:
                log.report(GRID, f"every bit of raw distances must change, got bit {bit} {'set' if set_ > clear else 'clear'} in all of {total}")

    def _conclude_reflectivity(self, total: int, log: FindingLog) -> None:
        if int(self._bytes.max()) == total:
            value = int(self._bytes.argmax())
            severity = Severity.ERROR if value in {0, 255} else Severity.WARNING
            log.report(REFLECTIVITY, f"reflectivity must vary, got {value} in every one of {total} returns", severity=severity)
        above = int(self._bytes[101:].sum()) / total
        if above > 0.5:
            log.report(REFLECTIVITY, f"most surfaces are diffuse, got {100 * above:.0f} % of the returns above 100", severity=Severity.WARNING)

    def _conclude_empty(self, log: FindingLog) -> None:
        empty = int(self._empty_bytes.sum())
        if not log.applies((NO_RETURN, BASELINE), empty, _MIN_EMPTY, "empty records"):
            return
        zero = int(self._empty_bytes[:, 0].sum()) / empty
        if zero > 0.5:
            log.report(NO_RETURN, f"empty records must carry the laser's noise floor, got reflectivity 0 in {100 * zero:.0f} % of {empty}")
            return
        floors = int((self._empty_bytes.sum(axis=1) >= _MIN_EMPTY // 50).sum())
        if log.applies(BASELINE, floors, _MIN_FLOORS, "lasers with empty records") and int(self._empty_bytes.sum(axis=0).max()) == empty:
            value = int(self._empty_bytes.sum(axis=0).argmax())
            log.report(BASELINE, f"the noise floor must differ between lasers, got {value} in all of {empty} empty records")
