"""Groups of features that a classifier gets, and the topics within a group."""

from collections.abc import Callable
from dataclasses import dataclass

from tools.judge.capture_sample import CaptureSample
from tools.judge.clock_features import clock_features
from tools.judge.feature_table import FeatureTable
from tools.judge.loss_features import drop_out_features, edge_features, empty_features, scene_features
from tools.judge.signal_features import signal_features


@dataclass(frozen=True, kw_only=True)
class Topic:
    """Features of a group that a classifier gets by themselves, to find the cause; never judged.

    Attributes:
        name: Start of the features' names.
        title: Description for people.
        is_of_one_mode: Whether the features depend on the return mode, so that captures of different modes are not compared.
    """

    name: str
    title: str
    is_of_one_mode: bool = False


@dataclass(frozen=True, kw_only=True)
class Group:
    """Features that one classifier gets together.

    Attributes:
        name: Name in reports.
        title: Description for people.
        features: Function that makes the table of a capture.
        topics: Topics that are tried by themselves.
        is_matched: Whether rows are compared only within cells of equal range and byte.
        is_judged: Whether the group decides on the result; otherwise it is information.
        left_out: Topics that are not among the group's features.
        is_of_one_mode: Whether the features may depend on the return mode, so that real captures of one mode are the better yardstick.
    """

    name: str
    title: str
    features: Callable[[CaptureSample], FeatureTable]
    topics: tuple[Topic, ...] = ()
    is_matched: bool = False
    is_judged: bool = True
    left_out: tuple[str, ...] = ()
    is_of_one_mode: bool = True


GROUPS = (
    Group(
        name="clock",
        title="encoder, 72 firing groups",
        features=clock_features,
        topics=(
            Topic(name="increments", title="shares of azimuth increments"),
            Topic(name="lags", title="autocorrelations 1 to 3 of the increments"),
            Topic(name="residuals", title="azimuths about their straight line"),
            Topic(name="classes", title="azimuths modulo 5, sorted shares"),
            Topic(name="borders", title="increments across packet borders"),
            Topic(name="stamps", title="stamps about their straight line", is_of_one_mode=True),
        ),
        left_out=("stamps",),
        is_of_one_mode=False,
    ),
    Group(
        name="signal",
        title="12 firings, equal ranges and bytes",
        features=signal_features,
        topics=(
            Topic(name="noise", title="size and shape of range noise"),
            Topic(name="colour", title="autocorrelation of range noise"),
            Topic(name="byte", title="byte noise, equal bytes"),
            Topic(name="range_byte", title="correlation of range and byte"),
            Topic(name="parity", title="parity of the distance code"),
        ),
        is_matched=True,
    ),
    Group(name="empty_bytes", title="bytes without a return", features=empty_features),
    Group(name="drop_outs", title="single empties, isolated returns", features=drop_out_features),
    Group(name="edges", title="empties, mixed points at depth edges", features=edge_features),
    Group(name="scene", title="shares of empties, bytes 0, 100, above", features=scene_features, is_judged=False),
)
"""All groups; those with ``is_judged`` False describe the scene and are printed as information."""
