"""The signal of a unit: bytes of empty firings, correction of the range by byte, gain of lasers, response to range."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from hilsim.families.velodyne.calibration.figures import Learned
from hilsim.families.velodyne.calibration.recording import Firings, Recording
from hilsim.families.velodyne.calibration.surfaces import Rays

Doubles = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
_MIN_EMPTY = 30
_MIN_FIRINGS = 10_000
_MAX_OTHERS = 40
_MIN_CODES = 24
_MAX_CODES = 100
_PARITY_SHARE = 0.75
_GRID_SHARE = 0.25
_RANGE_EDGES = np.array([0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 25.0, 30.0, 40.0, 60.0])
_MIN_RAYS = 200
_EVEN_SURFACE = 0.12
_LEVEL_PRIOR, _GAIN_PRIOR, _RESPONSE_PRIOR = 10.0, 0.1, 0.3
_GAIN_DOUBT = 0.04
_CORRELATED = 10.0
_BYTE_SPAN = (4.0, 97.0)
_GAIN_AND_RESPONSE = ("laser.reflectivity_gain", "response")


def learn_empty(firings: Sequence[Firings], learned: Learned) -> None:
    """Learn the bytes of firings without a return."""
    lasers = firings[0].distance.shape[1]
    counts = np.sum([part.byte_counts(part.distance == 0) for part in firings], axis=0)
    total = counts.sum(axis=1)
    known = np.flatnonzero(total >= _MIN_EMPTY)
    for laser in known.tolist():
        share = counts[laser] / total[laser]
        baseline = int(np.argmax(share))
        others = [byte for byte in np.argsort(-share, kind="stable") if byte != baseline and share[byte] > 0.0][:_MAX_OTHERS]
        learned.lasers[laser] |= {"baseline": baseline, "baseline_ratio": round(float(share[baseline]), 4)}
        if others:
            learned.lasers[laser]["empty_bytes"] = [[int(byte), round(float(share[byte]), 4)] for byte in others]
    if known.size == 0:
        learned.lack("laser.baseline", f"at least {_MIN_EMPTY} firings of a laser must be without a return, got at most {int(total.max())}")
        return
    bytes_ = [learned.lasers[laser]["baseline"] for laser in known]
    at_baseline = sum(counts[laser, byte] for laser, byte in zip(known, bytes_, strict=True)) / total[known].sum()
    multiples = sum(counts[laser, 2 * byte :: byte].sum() for laser, byte in zip(known, bytes_, strict=True) if byte > 1) / total[known].sum()
    text = f"{' '.join(map(str, bytes_))}; {100 * at_baseline:.1f} % of empty firings at it, {100 * multiples:.1f} % at its multiples"
    missing = lasers - known.size
    learned.add(
        "laser.baseline",
        text,
        int(total[known].sum()),
        note=f"{missing} lasers not learned: fewer than {_MIN_EMPTY} empty firings" if missing else "",
    )


def learn_one_sided(recordings: Sequence[Recording], learned: Learned) -> None:
    """Learn how many firings in dual mode have nothing in the block of the strongest return, though they have a last one."""
    pairs = missing = 0
    for recording in recordings:
        if recording.mode.is_dual:
            distance = recording.packets["blocks"]["channels"]["distance"]
            last, strongest = distance[:, ::2] > 0, distance[:, 1::2] > 0
            pairs, missing = pairs + int((last | strongest).sum()), missing + int((last & ~strongest).sum())
    if pairs < _MIN_FIRINGS:
        learned.lack("one_sided_ratio", f"at least {_MIN_FIRINGS} firings with a return in dual mode are needed, got {pairs}", pairs)
        return
    learned.keys["one_sided_ratio"] = round(missing / pairs, 5)
    learned.add("one_sided_ratio", f"{100 * missing / pairs:.2f} %", pairs, note="firings with the last return alone")


def learn_range_codes(firings: Sequence[Firings], learned: Learned) -> Ints:
    """Learn for each laser and byte whether distances are even or odd: on a grid of two counts a byte has a correction of 0 or 1 count.

    Returns:
        ``int64[c, 256]``, the corrections; 0 where they were not learned.
    """
    lasers = firings[0].distance.shape[1]
    count = np.sum([part.byte_counts(part.distance > 0) for part in firings], axis=0)
    odd = np.sum([part.byte_counts(part.distance & 1 > 0) for part in firings], axis=0)
    known = count >= _MIN_CODES
    if not known.any():
        learned.lack("laser.range_codes", f"no byte of a laser has {_MIN_CODES} returns", int(count.sum()))
        return np.zeros((lasers, 256), np.int64)
    share = np.divide(odd, count, out=np.full(odd.shape, 0.5), where=known)
    is_sided = known & ((share >= _PARITY_SHARE) | (share <= 1.0 - _PARITY_SHARE))
    sided = float(count[is_sided].sum() / count[known].sum())
    if sided < _GRID_SHARE:
        reason = f"no grid of two counts: {100 * sided:.0f} % of the returns are at bytes where even or odd distances prevail, at least {100 * _GRID_SHARE:.0f} % are needed"
        learned.lack("laser.range_codes", reason, int(count[known].sum()))
        return np.zeros((lasers, 256), np.int64)
    codes = np.where(known & (share >= 0.5), 1, 0)
    codes[:, _MAX_CODES + 1 :] = 0
    for laser in range(lasers):
        learned.lasers[laser]["range_codes"] = codes[laser, : _MAX_CODES + 2].tolist()
        learned.lasers[laser]["straddled_bytes"] = _straddled(share[laser], count[laser] * known[laser])
    note = f"even or odd only: larger corrections are part of the range bias; {100 * sided:.0f} % of the returns are at bytes where one prevails"
    learned.add("laser.range_codes", f"{int(known.sum())} bytes of {lasers} lasers", int(count[known].sum()), note=note)
    return codes


def _straddled(share: Doubles, count: Ints) -> list[int]:
    """Bytes whose distances shall be even and odd alike, so that of all bytes together as many are of the rarer parity as were seen; and those hardly seen."""
    straddled, lacking = [], 0.0
    for byte in range(_MAX_CODES + 1):
        lacking += float(count[byte]) * min(share[byte], 1.0 - share[byte])
        if lacking >= 0.25 * count[byte]:
            straddled.append(byte)
            lacking -= 0.5 * float(count[byte])
    return straddled


def learn_gains(rays: Sequence[Rays], planes: Sequence[list[Ints]], lasers: int, learned: Learned) -> None:
    """Learn the gain of each laser's reflectivity and the response to range, from planes: a diffuse surface has one byte, times the cosine of incidence."""
    rows = [(part, on) for part, found in zip(rays, planes, strict=True) for on in found]
    logs, laser, surface, ranges = [], [], [], []
    for number, (part, on) in enumerate(rows):
        of_plane = part.chosen(on)
        normal = np.linalg.lstsq(of_plane.points_m(), np.ones(on.size), rcond=None)[0]
        cosine = np.abs(of_plane.directions() @ normal) / np.linalg.norm(normal)
        within = (of_plane.reflectivity >= _BYTE_SPAN[0]) & (of_plane.reflectivity <= _BYTE_SPAN[1])
        logs.append(np.log(of_plane.reflectivity[within] / cosine[within]))
        laser.append(of_plane.laser[within])
        ranges.append(of_plane.range_m[within])
        surface.append(np.full(int(within.sum()), number))
    total = sum(part.size for part in logs)
    if total < _MIN_RAYS:
        reason = f"at least {_MIN_RAYS} directions of planes with bytes of {_BYTE_SPAN[0]:.0f} to {_BYTE_SPAN[1]:.0f} are needed, got {total}"
        learned.lack(_GAIN_AND_RESPONSE, reason, total)
        return
    gain, response, sd = _fit_gains(np.concatenate(logs), np.concatenate(laser), np.concatenate(surface), np.concatenate(ranges), lasers)
    if sd > _EVEN_SURFACE:
        reason = f"the surfaces are not of one reflectivity: bytes of a plane scatter by {100 * sd:.0f} %, at most {100 * _EVEN_SURFACE:.0f} % are permitted"
        learned.lack(_GAIN_AND_RESPONSE, reason, total)
        return
    known = np.flatnonzero(np.isfinite(gain))
    if known.size == 0:
        learned.lack(_GAIN_AND_RESPONSE, "no two lasers share planes at one distance", total)
        return
    for number in known.tolist():
        learned.lasers[number]["reflectivity_gain"] = round(float(np.exp(gain[number])), 4)
    note = f"the mean is not observable and taken as 1; surfaces that are not of one reflectivity show as gain: scatter {100 * sd:.0f} %"
    learned.add("laser.reflectivity_gain", f"{known.size} lasers, sd {100 * np.std(gain[known]):.1f} %", total, note=note)
    if len(response) < 3:
        learned.lack("response", f"planes must have {_MIN_RAYS} directions at 3 distances at least, got {len(response)}", total)
        return
    learned.keys["response"] = response
    learned.add(
        "response", ", ".join(f"{ratio:.2f} at {place:.1f} m" for place, ratio in response), total, note="relative to the mean; of diffuse planes"
    )


def _fit_gains(log: Doubles, laser: Ints, surface: Ints, range_m: Doubles, lasers: int) -> tuple[Doubles, list[list[float]], float]:
    """Least squares of level of a surface, gain of a laser and response at a range: gains (NaN: not seen), response, scatter."""
    bin_ = np.digitize(range_m, _RANGE_EDGES) - 1
    counts = np.bincount(np.clip(bin_, 0, _RANGE_EDGES.size - 2), minlength=_RANGE_EDGES.size - 1)
    bins = np.flatnonzero(counts >= _MIN_RAYS)
    surfaces = int(surface.max()) + 1
    matrix = np.zeros((log.size, surfaces + lasers + bins.size))
    row = np.arange(log.size)
    matrix[row, surface] = 1.0
    matrix[row, surfaces + laser] = 1.0
    for number, of_bin in enumerate(bins):
        matrix[bin_ == of_bin, surfaces + lasers + number] = 1.0
    prior = np.repeat([_LEVEL_PRIOR, _GAIN_PRIOR, _RESPONSE_PRIOR], [surfaces, lasers, bins.size]) ** -2.0
    weight, sd = np.ones(log.size), 0.1
    solution: Doubles = np.zeros(matrix.shape[1])
    covariance: Doubles = np.eye(matrix.shape[1])
    for _ in range(6):
        share = weight / (_CORRELATED * sd**2)
        covariance = np.asarray(np.linalg.inv(matrix.T @ (matrix * share[:, None]) + np.diag(prior)), np.float64)
        solution = covariance @ (matrix.T @ (share * log))
        off = log - matrix @ solution
        sd = max(1.4826 * float(np.median(np.abs(off))), 1e-3)
        weight = (1.0 - np.clip(np.abs(off) / (4.685 * sd), 0.0, 1.0) ** 2) ** 2
    doubt = np.sqrt(np.diag(covariance))
    gain = solution[surfaces : surfaces + lasers]
    seen = (np.bincount(laser, minlength=lasers) >= _MIN_EMPTY) & (doubt[surfaces : surfaces + lasers] <= _GAIN_DOUBT)
    if not seen.any():
        return np.full(lasers, np.nan), [], sd
    gain = np.where(seen, gain - gain[seen].mean(), np.nan)
    response = solution[surfaces + lasers :]
    response = np.exp(response - response.mean()) if bins.size else response
    middle = [float(np.median(range_m[bin_ == of_bin])) for of_bin in bins]
    return gain, [[round(float(place), 2), round(float(ratio), 4)] for place, ratio in zip(middle, response, strict=True)], sd
