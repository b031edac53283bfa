"""Rules for frames: measurement ids, frame ids, missing packets, and the azimuth window."""

from collections import Counter

import numpy as np
import numpy.typing as npt

from hilsim.families.ouster.protocol.headers import COLUMNS, ENCODER_COUNTS, HEADERS, HeaderField
from hilsim.families.ouster.protocol.profiles import COLUMNS_PER_PACKET, HeaderKind
from hilsim.families.ouster.stream import LidarBlock, Lost, frame_id_count, window_packets
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

MEASUREMENT_ID = Rule(id="ouster.measurement_id", severity=Severity.ERROR)
STRADDLE = Rule(id="ouster.straddle", severity=Severity.ERROR)
FRAME_ID = Rule(id="ouster.frame_id", severity=Severity.ERROR, packets=2)
PLACE = Rule(id="ouster.place", severity=Severity.ERROR, packets=2)
ENCODER = Rule(id="ouster.encoder", severity=Severity.ERROR)
LOST = Rule(id="ouster.lost", severity=Severity.WARNING, packets=2)
ORDER = Rule(id="ouster.order", severity=Severity.WARNING, packets=2)
DUPLICATE = Rule(id="ouster.duplicate", severity=Severity.WARNING, packets=2)
RESTART = Rule(id="ouster.restart", severity=Severity.WARNING, packets=2)
WINDOW = Rule(id="ouster.window", severity=Severity.ERROR)
BORDER = Rule(id="ouster.border", severity=Severity.ERROR)
INVALID = Rule(id="ouster.invalid", severity=Severity.WARNING)
BLANK = Rule(id="ouster.blank", severity=Severity.ERROR)

_TOLERANCE_COLUMNS, _TOLERANCE_RATIO = 6.0, 0.01
"""Difference between ids and stamps that is no error: a few columns, and the largest error of a turn's rate."""
_ID_OFFSET = 8
_LARGEST_GAP_NS = 60_000_000_000


class FramesTopic:
    """Frames of one sensor."""

    def __init__(self) -> None:
        self.frames = 0
        self.invalid_columns = 0
        self._last_frame: int | None = None
        self._counts = Counter[Rule]()
        self._first: dict[Rule, Place] = {}

    def look(self, block: LidarBlock, log: FindingLog) -> None:
        """Judge a block."""
        self._look_at_ids(block, log)
        self._look_at_steps(block, log)
        self._look_at_window(block, log)
        before = self._last_frame if self._last_frame is not None else int(block.run.frame[0]) - 1
        self.frames += int((np.diff(block.run.frame, prepend=before) != 0).sum())
        self._last_frame = int(block.run.frame[-1])

    def _look_at_ids(self, block: LidarBlock, log: FindingLog) -> None:
        ids, columns = block.ids, block.columns_per_frame
        first = ids[:, :1] - ids[:, :1] % COLUMNS_PER_PACKET
        falls = (np.diff(ids, axis=1) < 0).sum(axis=1)
        wraps = (falls == 1) & (np.diff(ids, axis=1) % columns == 1).all(axis=1)
        if block.kind is HeaderKind.NONE:
            wraps |= self._has_two_frames(block)
        wrong = ((ids != first + np.arange(COLUMNS_PER_PACKET)) | (ids >= columns)) & ~wraps[:, np.newaxis]

        def straddle_message(row: int) -> str:
            return f"columns of a packet must be of one frame, got measurement ids {ids[row, 0]} to {ids[row, -1]}"

        def message(row: int, column: int) -> str:
            return f"measurement ids must be 16k to 16k + 15 below {columns}, got {ids[row, column]} in column {column}"

        log.report_each(STRADDLE, wraps, straddle_message, block.place, block.column_byte(0, _ID_OFFSET))
        log.report_each(MEASUREMENT_ID, wrong, message, block.place, lambda column: block.column_byte(column, _ID_OFFSET))
        if block.kind is HeaderKind.NONE:
            self._look_at_encoder(block, log)

    @staticmethod
    def _has_two_frames(block: LidarBlock) -> npt.NDArray[np.bool_]:
        """Whether the columns of LEGACY packets have several frame ids, ``bool[n]``."""
        place = COLUMNS[HeaderKind.NONE].frame_id
        offset = 0 if place is None else place.offset
        starts = block.form.first_column + np.arange(COLUMNS_PER_PACKET) * block.form.column_size + offset
        frame_ids = block.payloads[:, starts].astype(np.int64) | block.payloads[:, starts + 1].astype(np.int64) << 8
        return np.asarray((frame_ids != frame_ids[:, :1]).any(axis=1))

    @staticmethod
    def _look_at_encoder(block: LidarBlock, log: FindingLog) -> None:
        counts = block.heads.columns["encoder_count"].astype(np.int64)
        expected = block.ids * (ENCODER_COUNTS // block.columns_per_frame)

        def message(row: int, column: int) -> str:
            return f"the encoder count must be {expected[row, column]}, got {counts[row, column]} in column {column}"

        log.report_each(ENCODER, counts != expected, message, block.place, lambda column: block.column_byte(column, 12))

    def _look_at_steps(self, block: LidarBlock, log: FindingLog) -> None:
        """Compare the steps of ids with those of stamps: a turn has one frame id, and the next turn the next one."""
        columns, metadata = block.columns_per_frame, block.metadata
        before, step_ns, ids = block.before, block.step_ns, block.run.frame * columns + block.ids[:, -1]
        step = np.diff(ids, prepend=ids[0] if before is None else before.columns)
        rate_hz = 10.0 if metadata is None else float(metadata.rate_hz)
        elapsed = step_ns * columns * rate_hz / 1e9
        is_new = (
            np.diff(block.heads.headers["init_id"].astype(np.int64), prepend=block.heads.headers["init_id"][0] if before is None else before.init_id)
            != 0
        )
        is_known = (step_ns > 0) & (step_ns < _LARGEST_GAP_NS) & ~is_new
        off = step - elapsed
        turns = np.rint(off / columns)
        tolerance = _TOLERANCE_COLUMNS + _TOLERANCE_RATIO * np.abs(elapsed)
        is_off = is_known & (np.abs(off) > tolerance)
        is_turn = is_off & (turns != 0) & (np.abs(off - turns * columns) <= tolerance)
        if metadata is None:
            is_off &= is_turn  # without metadata the rate may be 20 turns a second
            is_turn &= elapsed < columns / 2
        count = frame_id_count(block.kind)
        place = HEADERS[block.kind].get(HeaderField.FRAME_ID) or COLUMNS[block.kind].frame_id
        offset = 0 if place is None else place.offset
        frame_ids = block.heads.headers["frame_id"].astype(np.int64)
        due_ids = (frame_ids - turns.astype(np.int64)) % count
        text = "the frame id must be {} by the columns' stamps, got {}"
        log.report_each(FRAME_ID, is_turn, lambda row: text.format(due_ids[row], frame_ids[row]), block.place, offset)

        def message(row: int) -> str:
            return f"measurement ids must advance by {elapsed[row]:.0f} columns as the stamps do, got {step[row]}"

        log.report_each(PLACE, is_off & ~is_turn, message, block.place, block.column_byte(0, _ID_OFFSET))
        self._count(ORDER, block, block.run.is_late)
        self._count(DUPLICATE, block, block.run.is_repeated & (step_ns == 0))
        self._count(RESTART, block, is_new)

    def _count(self, rule: Rule, block: LidarBlock, rows: npt.NDArray[np.bool_]) -> None:
        if not rows.any():
            return
        self._first.setdefault(rule, block.place(int(np.flatnonzero(rows)[0])))
        self._counts[rule] += int(rows.sum())

    def _look_at_window(self, block: LidarBlock, log: FindingLog) -> None:
        is_valid = block.is_valid
        self.invalid_columns += int((~is_valid).sum())
        self._look_at_blanks(block, log)
        if block.metadata is None:
            return
        first, last = block.metadata.window
        inside = (block.ids >= first) & (block.ids <= last) if first <= last else (block.ids >= first) | (block.ids <= last)
        is_in_turn = block.ids < block.columns_per_frame
        sent = window_packets(block.metadata.window, block.columns_per_frame)
        ids = block.ids
        outside = is_valid & ~inside & is_in_turn & inside.any(axis=1, keepdims=True)
        sent_text = f"packets outside the window of columns {first} to {last} must not be sent, got columns {{}} to {{}}"
        log.report_each(WINDOW, ~np.isin(block.run.packet, sent), lambda row: sent_text.format(ids[row, 0], ids[row, -1]), block.place)
        text = f"columns outside the window of {first} to {last} must have status 0, got a valid column"
        log.report_each(BORDER, outside, lambda row, column: f"{text} {ids[row, column]}", block.place)
        absent_text = "columns inside the window must be valid, got status 0 in column"
        log.report_each(INVALID, ~is_valid & inside, lambda row, column: f"{absent_text} {ids[row, column]}", block.place)

    @staticmethod
    def _look_at_blanks(block: LidarBlock, log: FindingLog) -> None:
        """Report columns that are not valid and have pixels."""
        layout = COLUMNS[block.kind]
        form = block.form
        for row, column in zip(*np.nonzero(~block.is_valid), strict=True):
            start = form.first_column + int(column) * form.column_size
            pixels = block.payloads[row, start + layout.header_size : start + form.column_size - layout.footer_size]
            if pixels.any():
                place = block.place(int(row), start + layout.header_size + int(np.flatnonzero(pixels)[0]))
                log.report(BLANK, "pixels of a column with status 0 must be 0, got others", place)

    def conclude(self, packets: int, lost: Lost, log: FindingLog) -> None:
        """Judge the whole stream."""
        if lost.packets:
            place = lost.after if isinstance(lost.after, Place) else None
            log.report(
                LOST, f"no packets must be missing, got {lost.packets} missing in {lost.runs} places, {lost.longest} together after this one", place
            )
        for rule, text in (
            (ORDER, "packets must come in the order of their columns, got {} later than others"),
            (DUPLICATE, "no packet must come twice, got {}"),
            (RESTART, "the initialisation id must stay, got {} changes, as of a sensor that was initialised again"),
        ):
            count = self._counts[rule]
            if count:
                is_many = rule is ORDER and count > 0.01 * packets and packets > 100
                log.report(rule, text.format(count), self._first.get(rule), severity=Severity.ERROR if is_many else None)
