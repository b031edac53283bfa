"""Rules for pixels: unused bits, pixels without a return, pairs of returns, and ranges."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.firmware import Firmware
from hilsim.families.ouster.protocol.lidar import LidarPackets
from hilsim.families.ouster.protocol.metadata import SensorMetadata
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, WORD_BITS, WORD_SIZE, FieldKind
from hilsim.families.ouster.stream import LidarBlock
from hilsim.read.analysis.conformance.findings import FindingLog, Rule, Severity

PIXEL_BITS = Rule(id="ouster.pixel_bits", severity=Severity.ERROR)
NO_SIGNAL = Rule(id="ouster.no_signal", severity=Severity.ERROR)
NEAR_IR = Rule(id="ouster.near_ir", severity=Severity.ERROR)
SECOND_COPY = Rule(id="ouster.second_copy", severity=Severity.ERROR)
SECOND_ALONE = Rule(id="ouster.second_alone", severity=Severity.ERROR)
SECOND_ZERO = Rule(id="ouster.second_zero", severity=Severity.ERROR)
RETURN_ORDER = Rule(id="ouster.return_order", severity=Severity.ERROR)
RANGE_MAX = Rule(id="ouster.range_most", severity=Severity.ERROR)
RANGE_MIN = Rule(id="ouster.range_least", severity=Severity.WARNING)
LOOP = Rule(id="ouster.loop", severity=Severity.WARNING, packets=2)

_MIN_PIXELS = 200
_MIN_LARGEST = 3
_V2_5, _V3_2 = Firmware(2, 5), Firmware(3, 2)
_EARLY_BIT = 28
"""Bit of LEGACY's flags that an OS2 with firmware 2.3.0 sets in RNG19_RFL8_SIG16_NIR16 too, of pixels without a range."""
_STRONGEST, _NEAREST, _FARTHEST = "STRONGEST_TO_WEAKEST", "NEAREST_TO_FARTHEST", "FARTHEST_TO_NEAREST"
_MAX_HASHES = 100_000


def _unused_bits(metadata: SensorMetadata) -> npt.NDArray[np.uint32]:
    """``uint32[words]``: bits of a pixel's words that no field has; before firmware 3.2 also those of the window."""
    profile = metadata.profile
    used = np.zeros(profile.words, np.uint32)
    for field in profile.fields:
        if field.kind is not FieldKind.WINDOW or metadata.firmware >= _V3_2:
            used[field.word] |= np.uint32(((1 << field.width) - 1) << field.bit)
    return ~used


class PixelsTopic:
    """Pixels of one sensor."""

    def __init__(self) -> None:
        self.pixels = self.returns = self.pairs = 0
        self._without = self._without_signal = 0
        self._judged = self._without_near_ir = 0
        self._largest = 0
        self._has_signal = self._has_near_ir = False
        self._hashes: set[int] = set()
        self._again = self._packets = 0

    @property
    def return_ratio(self) -> float:
        """Share of the pixels with a first return; NaN before any."""
        return self.returns / self.pixels if self.pixels else float("nan")

    def look(self, block: LidarBlock, log: FindingLog) -> None:
        """Judge a block of a sensor with metadata."""
        metadata, found = block.metadata, block.pixels
        if metadata is None or found is None:
            return
        self._look_at_bits(block, metadata, log)
        is_valid = block.is_valid[:, :, np.newaxis]
        self._note_pixels(found, metadata, is_valid)
        self._look_at_ranges(block, found, metadata, log)
        if metadata.profile.returns == 2:
            self._look_at_pairs(block, found, metadata, log)
        self._look_for_copies(block)

    def _look_at_bits(self, block: LidarBlock, metadata: SensorMetadata, log: FindingLog) -> None:
        form, profile = block.form, metadata.profile
        body = block.payloads[:, form.first_column : form.first_column + COLUMNS_PER_PACKET * form.column_size]
        body = body.reshape(len(body), COLUMNS_PER_PACKET, form.column_size)
        start = 0 if block.layout is None else block.layout.first_pixel
        pixels = body[:, :, start : start + metadata.beams.channels * profile.pixel_size]
        words = np.ascontiguousarray(pixels).view("<u4").reshape(len(body), COLUMNS_PER_PACKET, metadata.beams.channels, profile.words)
        unused = words & _unused_bits(metadata)
        if metadata.lidar_profile == "RNG19_RFL8_SIG16_NIR16" and metadata.firmware < _V2_5:
            is_exempt = (words[..., 0] & np.uint32(0x7FFFF)) == 0
            unused[..., 0] &= ~np.where(is_exempt, np.uint32(1 << _EARLY_BIT), np.uint32(0))
        for row in np.flatnonzero(unused.reshape(len(body), -1).any(axis=1)).tolist():
            column, beam, word = (int(axis[0]) for axis in np.nonzero(unused[row]))
            value = int(unused[row, column, beam, word])
            bit = WORD_BITS * word + (value & -value).bit_length() - 1
            byte = block.pixel_byte(column, beam) + WORD_SIZE * word
            log.report(
                PIXEL_BITS, f"bits of a pixel without a field must be 0, got bit {bit} set (column {column}, beam {beam})", block.place(row, byte)
            )

    def _note_pixels(self, found: LidarPackets, metadata: SensorMetadata, is_valid: npt.NDArray[np.bool_]) -> None:
        pixels, profile = found.pixels, metadata.profile
        has_return = pixels.range_mm[:, 0] > 0
        self.pixels += int(is_valid.sum()) * metadata.beams.channels
        self.returns += int((has_return & is_valid).sum())
        self._has_signal, self._has_near_ir = profile.carries(FieldKind.SIGNAL), profile.carries(FieldKind.NEAR_IR)
        empty = ~has_return & is_valid
        self._without += int(empty.sum())
        self._without_signal += int((empty & (pixels.signal[:, 0] == 0)).sum())
        self._judged += int(np.broadcast_to(is_valid, has_return.shape).sum())
        self._without_near_ir += int((is_valid & (pixels.near_ir[:, 0] == 0)).sum())
        self._largest += int((pixels.range_mm == profile.largest_range_mm).sum())

    def _look_at_ranges(self, block: LidarBlock, found: LidarPackets, metadata: SensorMetadata, log: FindingLog) -> None:
        threshold_cm = metadata.settings.get("min_range_threshold_cm")
        if not isinstance(threshold_cm, int):
            return
        text = f"ranges must be {10 * threshold_cm} mm or more by min_range_threshold_cm, got"
        for range_mm in np.moveaxis(found.pixels.range_mm, 1, 0):
            is_near = (range_mm > 0) & (range_mm < 10 * threshold_cm)
            self._report(RANGE_MIN, is_near, lambda *spot, range_mm=range_mm: f"{text} {range_mm[spot]}", block, log)

    def _look_at_pairs(self, block: LidarBlock, found: LidarPackets, metadata: SensorMetadata, log: FindingLog) -> None:
        pixels = found.pixels
        first, second = pixels.range_mm[:, 0], pixels.range_mm[:, 1]
        both = (first > 0) & (second > 0)
        self.pairs += int(both.sum())
        self._report(
            SECOND_COPY,
            both & (first == second),
            lambda *spot: f"a second return must be another echo or 0, got the range of the first, {first[spot]} mm",
            block,
            log,
        )
        if metadata.firmware >= _V2_5:
            self._report(
                SECOND_ALONE,
                (first == 0) & (second > 0),
                lambda *spot: f"a second return must have a first one, got {second[spot]} mm alone",
                block,
                log,
            )
            values = pixels.signal[:, 1].astype(np.int64) + pixels.reflectivity[:, 1] + pixels.flags[:, 1]
            self._report(
                SECOND_ZERO,
                (second == 0) & (values > 0),
                lambda *spot: (
                    "a second return without a range must be 0 in all its fields, got "
                    f"reflectivity {pixels.reflectivity[:, 1][spot]}, signal {pixels.signal[:, 1][spot]}"
                ),
                block,
                log,
            )
        order = metadata.settings.get("return_order", _STRONGEST)
        wrong = {_NEAREST: first > second, _FARTHEST: first < second}.get(str(order), pixels.signal[:, 0] < pixels.signal[:, 1])
        self._report(
            RETURN_ORDER,
            both & wrong,
            lambda *spot: (
                f"returns must be in the order {order}, got {first[spot]} mm with signal {pixels.signal[:, 0][spot]}"
                f" before {second[spot]} mm with {pixels.signal[:, 1][spot]}"
            ),
            block,
            log,
        )

    @staticmethod
    def _report(rule: Rule, wrong: npt.NDArray[np.bool_], message: Callable[[int, int, int], str], block: LidarBlock, log: FindingLog) -> None:
        """Report the first pixel of each packet with one: ``wrong`` is ``bool[n, 16, beams]``."""

        def whole(row: int, column: int, beam: int) -> str:
            return f"{message(row, column, beam)} (column {column}, beam {beam}; {wrong[row].sum()} pixels)"

        log.report_each(rule, wrong, whole, block.place, block.pixel_byte)

    def _look_for_copies(self, block: LidarBlock) -> None:
        """Count packets whose pixels came before."""
        first = block.form.first_column
        header = 0 if block.layout is None else block.layout.first_pixel
        for payload in block.payloads:
            body = payload[first : first + COLUMNS_PER_PACKET * block.form.column_size].reshape(COLUMNS_PER_PACKET, -1)[:, header:]
            value = hash(body.tobytes())
            self._packets += 1
            self._again += value in self._hashes
            if len(self._hashes) < _MAX_HASHES:
                self._hashes.add(value)

    def conclude(self, log: FindingLog) -> None:
        """Judge the whole stream."""
        if self._has_signal and self._without >= _MIN_PIXELS and self._without_signal > 0.5 * self._without:
            log.report(
                NO_SIGNAL,
                f"pixels without a return must have the receiver's noise as signal, got 0 in {self._without_signal:,} of {self._without:,}",
            )
        if self._has_near_ir and self._judged >= _MIN_PIXELS and self._without_near_ir > 0.5 * self._judged:
            log.report(NEAR_IR, f"every pixel must have near infrared, return or not, got 0 in {self._without_near_ir:,} of {self._judged:,}")
        if self._largest >= _MIN_LARGEST:
            log.report(RANGE_MAX, f"a range beyond the largest must be 0, got the largest itself in {self._largest:,} pixels")
        if self._again > 1:
            log.report(
                LOOP, f"pixels must be measured anew, got those of an earlier packet in {self._again} of {self._packets} packets: is it a loop?"
            )
