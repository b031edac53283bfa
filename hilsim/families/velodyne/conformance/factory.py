"""Rules for sizes, flags and the two factory bytes, by which a packet is one of a model, and for the agreement of the packet with them."""

from collections import Counter
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.conformance.blocks import DataBlock
from hilsim.families.velodyne.protocol.data import BLOCKS, DATA_PACKET_SIZE, Product, ReturnMode
from hilsim.families.velodyne.protocol.models import BY_PRODUCT, OTHER_PRODUCTS, VLP_16, Model, identify_model, vls_128_variant
from hilsim.families.velodyne.protocol.position import POSITION_PACKET_SIZE
from hilsim.families.velodyne.recognition import is_first_hdl_64e
from hilsim.families.velodyne.stream import PacketRun
from hilsim.read.analysis.conformance.findings import FindingLog, Place, Rule, Severity

STREAM_OTHER = Rule(id="stream.other", severity=Severity.NOTE)
DATA_SIZE = Rule(id="data.size", severity=Severity.ERROR)
DATA_FLAG = Rule(id="data.flag", severity=Severity.ERROR)
POSITION_SIZE = Rule(id="position.size", severity=Severity.ERROR)


def report_size(log: FindingLog, size: int, place: Place, *, is_data: bool) -> None:
    """Report a datagram of the wrong size on a data or position port."""
    if is_data:
        log.report(DATA_SIZE, f"a data packet must be {DATA_PACKET_SIZE} bytes, got {size}", place)
    else:
        log.report(POSITION_SIZE, f"a position packet must be {POSITION_PACKET_SIZE} bytes, got {size}", place)


class StructureTopic:
    """Block flags."""

    def look(self, block: DataBlock, log: FindingLog) -> None:
        """Report every packet with a wrong flag at its first wrong block."""
        flags = block.run.packets["blocks"]["flag"]
        due = np.zeros(BLOCKS, dtype=np.int64)  # of padding
        used = block.model.used_blocks(is_dual=block.is_dual)
        due[:used] = np.resize(np.repeat(block.model.flags, 2 if block.is_dual else 1), used)
        wrong = flags != due

        def message(row: int, number: int) -> str:
            got = f"got 0x{flags[row, number]:04x} ({wrong[row].sum()} of {BLOCKS} blocks)"
            return f"data block {number} must start with flag 0x{due[number]:04x}, {got}"

        log.report_each(DATA_FLAG, wrong, message, block.place, lambda number: 100 * number)

    def conclude(self, log: FindingLog) -> None:
        """Do nothing: no rule needs the whole stream."""


def _listed(modes: Iterable[ReturnMode]) -> str:
    """Text of return modes: ``0x37, 0x38 or 0x39``."""
    *others, last = [f"0x{mode:02X}" for mode in modes]
    return f"{', '.join(others)} or {last}" if others else last


_DOCUMENTED = _listed(mode for mode in ReturnMode if mode.is_documented)
MODE = Rule(id="factory.mode", severity=Severity.ERROR)
PRODUCT = Rule(id="factory.product", severity=Severity.ERROR)
EARLY = Rule(id="factory.early_unit", severity=Severity.WARNING, packets=16)
CHANGED = Rule(id="factory.changed", severity=Severity.ERROR)

_UPPER_BANK, _LOWER_BANK = 0xEEFF, 0xDDFF
_MIN_FOR_STEP = 16
_MIN_STEPS = 15
_MAX_MODE_CHANGES = 3


def has_pairs(azimuth: npt.NDArray[np.int64]) -> bool:
    """Whether blocks come in pairs of one azimuth, without all having the same.

    Args:
        azimuth: ``int64[n, 12]``, azimuth of each block.
    """
    within = float(np.mean(azimuth[:, ::2] == azimuth[:, 1::2]))
    between = float(np.mean(azimuth[:, 1:-1:2] == azimuth[:, 2::2]))
    return within > 0.5 and between < 0.5


def _name_unchecked(product: int, flags: npt.NDArray[np.int64]) -> str:
    """Name with article of a sensor whose packets are not checked, empty for others."""
    is_64 = (flags[:, ::2] == _UPPER_BANK).all(axis=1) & (flags[:, 1::2] == _LOWER_BANK).all(axis=1)
    is_64 |= is_first_hdl_64e((flags == _UPPER_BANK).sum(axis=1), (flags == _LOWER_BANK).sum(axis=1))
    if float(is_64.mean()) > 0.5:
        return "an HDL-64E by its blocks' flags"  # its last two bytes contain its state in turn, not the model
    name = None if product == Product.VLS_128 else OTHER_PRODUCTS.get(product)
    return f"product 0x{product:02x}, a {name}" if name else ""


class FactoryTopic:
    """Factory bytes of the sensor, and the model by these bytes and the timing.

    Attributes:
        model: Model by whose rules packets are judged; None before any packet, or if they are not judged.
        unchecked: Name of a sensor whose packets are not judged, else empty.
        is_dual: Whether blocks come in pairs of one azimuth.
        mode: Return mode byte.
        product: Product byte.
    """

    def __init__(self) -> None:
        self.model: Model | None = None
        self.unchecked = ""
        self.is_dual = False
        self.mode: int | None = None
        self.product: int | None = None
        self._mode_changes: list[tuple[int, int, Place]] = []
        self._told: Counter[tuple[str, int]] = Counter()

    def identify(self, run: PacketRun, place: Place, log: FindingLog) -> None:
        """Find model and mode of a run of packets with equal factory bytes, whose first packet has a place."""
        packets, azimuth, known_us = run.packets, run.azimuth, run.step_us[run.knows_step]
        mode, product, flags = int(packets["return_mode"][0]), int(packets["product"][0]), packets["blocks"]["flag"].astype(np.int64)
        median_step_us = float(np.median(known_us)) if len(known_us) >= _MIN_STEPS else None
        is_new = (mode, product) != (self.mode, self.product)
        if is_new or len(azimuth) >= _MIN_FOR_STEP:
            self.unchecked = _name_unchecked(product, flags)
        if self.unchecked:
            self.mode, self.product, self.model, self.is_dual = mode, product, None, False
            self._once(PRODUCT, -1, f"not checked further: {self.unchecked}", place.at(1205), log, Severity.WARNING)
            return
        if is_new and self.mode is not None:
            self._change(mode, product, place, log)
        self.mode, self.product = mode, product
        if not is_new and len(azimuth) < _MIN_FOR_STEP:
            return
        if product == Product.VLS_128:
            is_paired = float((flags[:, 0] == flags[:, 1]).mean()) > 0.5
            self._check_mode(mode, azimuth[:, ::4], place, log, is_paired=is_paired)
            self.model = vls_128_variant(median_step_us or None, is_dual=self.is_dual)
            return
        self._check_mode(mode, azimuth, place, log)
        self._find_model(product, median_step_us, place, log)

    def _change(self, mode: int, product: int, place: Place, log: FindingLog) -> None:
        at = place.at(1204)
        if product != self.product:
            log.report(CHANGED, f"the product byte must not change, got 0x{product:02x} after 0x{self.product:02x}", at.at(1205))
        if mode != self.mode and self.mode is not None:
            self._mode_changes.append((self.mode, mode, at))

    def _check_mode(self, mode: int, azimuth: npt.NDArray[np.int64], place: Place, log: FindingLog, *, is_paired: bool | None = None) -> None:
        """Judge the mode byte by whether blocks come in pairs: by their azimuths unless ``is_paired`` is given, as the flags of banks show it."""
        pairs = has_pairs(azimuth) if is_paired is None else is_paired
        known = ReturnMode.find(mode)
        is_dual_mode = known is not None and known.is_dual
        self.is_dual = pairs if len(azimuth) >= 2 or is_paired is not None else is_dual_mode
        at = place.at(1204)
        if known is None:
            self._once(MODE, mode, f"the return mode must be {_DOCUMENTED}, got 0x{mode:02x}", at, log)
        elif pairs and not is_dual_mode:
            self._once(MODE, mode, f"return mode 0x{mode:02x} has one return, but blocks come in pairs of one azimuth as in dual mode", at, log)
        elif is_dual_mode and not self.is_dual and len(np.unique(azimuth)) > 1:
            self._once(MODE, mode, f"return mode 0x{mode:02x} is dual, but blocks do not come in pairs of one azimuth", at, log)
        elif not known.is_documented:
            text = f"return mode 0x{mode:02x} ({known.words}) is known of newer firmware only; checked as {'dual' if known.is_dual else 'single'}"
            self._once(MODE, mode, text, at, log, Severity.WARNING)

    def _find_model(self, product: int, median_step_us: float | None, place: Place, log: FindingLog) -> None:
        at = place.at(1205)
        self.model = identify_model(product, median_step_us, is_dual=self.is_dual) or VLP_16
        if product not in BY_PRODUCT:
            self._once(PRODUCT, product, f"product 0x{product:02x} is not a known model and is checked as a {self.model.name}", at, log)
        elif self.model is not BY_PRODUCT[product]:
            self._once(EARLY, product, f"product 0x21 is the HDL-32E's, but packets come every {median_step_us:.0f} us: an early VLP-16", at, log)

    def _once(self, rule: Rule, value: int, message: str, at: Place, log: FindingLog, severity: Severity | None = None) -> None:
        """Report a constant finding once for each value of the byte, not for each run of packets."""
        self._told[rule.id, value] += 1
        if self._told[rule.id, value] == 1:
            log.report(rule, message, at, severity=severity)

    def conclude(self, log: FindingLog) -> None:
        """Report the number of changes of the return mode."""
        count = len(self._mode_changes)
        severity = Severity.WARNING if count <= _MAX_MODE_CHANGES else Severity.ERROR
        for before, after, place in self._mode_changes:
            log.report(CHANGED, f"the return mode changed from 0x{before:02x} to 0x{after:02x} ({count} changes in all)", place, severity=severity)
