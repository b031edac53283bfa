"""The compared statistics of the signal: grid of the ranges, byte noise, colour of the range noise, edges and drop-outs."""

from collections.abc import Callable
from operator import attrgetter

from hilsim.families.velodyne.comparison.patches import CLASSES, PATCH_FIRINGS
from hilsim.families.velodyne.comparison.stream import StreamStatistics
from hilsim.read.analysis.comparison.statistic import Count, Statistic, number, percent

_returns: Count = attrgetter("edges.returns")
_steps: Count = attrgetter("grid.steps")


def _share(name: str, part: str, whole: str, form: str = ".2f") -> Statistic:
    """Make a statistic of a share in percent, from two counts of the stream."""
    get_part, get_whole = attrgetter(part), attrgetter(whole)
    return number(name, lambda stream: percent(get_part(stream), get_whole(stream)), "%", form, get_whole)


_GRID = (
    number("grid.odd", lambda s: 100.0 * s.grid.odd_share, "%", ".2f", _steps),
    number("grid.odd_equal_bytes", lambda s: 100.0 * s.grid.odd_share_of_equal, "%", ".2f", attrgetter("grid.equal")),
    number("grid.parity", lambda s: 100.0 * s.grid.predicted_share, "%", ".1f", _returns),
)


def _of_class(place: int, name: str, value: Callable[[StreamStatistics], float], unit: str, form: str) -> Statistic:
    """Make a statistic of the patches of a class of bytes."""
    start, stop = CLASSES[place]
    return number(f"{name}_{start}_{stop - 1}", value, unit, form, lambda stream: stream.patches.count(place))


def _byte_sd(place: int) -> Statistic:
    return _of_class(place, "bytes.sd", lambda s: s.patches.byte_sd[place].quantile(0.5), "", ".2f")


def _constant(place: int) -> Statistic:
    return _of_class(place, "bytes.constant", lambda s: 100.0 * s.patches.constant_share(place), "%", ".2f")


def _autocorrelation(place: int) -> Statistic:
    return _of_class(place, "correlation.byte", lambda s: s.patches.autocorrelation(place), "", "+.3f")


_PLACES = range(len(CLASSES))
_BYTES = (
    number("bytes.equal", lambda s: 100.0 * s.grid.equal_share, "%", ".2f", attrgetter("grid.diffuse")),
    *(_byte_sd(place) for place in _PLACES),
    *(_constant(place) for place in _PLACES),
)
_CORRELATION = tuple(_autocorrelation(place) for place in _PLACES)
_EDGES = (
    _share("edges.with_empty", "edges.with_empty", "edges.edges", ".1f"),
    _share("edges.near_mixed", "edges.near_mixed", "edges.near", ".1f"),
    _share("edges.far_mixed", "edges.far_mixed", "edges.far", ".1f"),
    _share("edges.single_empty", "edges.single", "edges.returns", ".3f"),
    _share("edges.isolated", "edges.isolated", "edges.returns", ".3f"),
)
SIGNAL = (*_GRID, *_BYTES, *_CORRELATION, *_EDGES)
"""Statistics of neighbouring firings of one laser; those of bytes and correlation are of patches of 12 firings."""
if PATCH_FIRINGS != 12:
    raise AssertionError("the reports say that a patch has 12 firings")
