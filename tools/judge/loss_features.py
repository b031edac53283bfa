"""Features of windows of packets: firings without a return, isolated returns, depth edges, and shares that describe the scene.

All definitions are those of ``hilsim.read.analysis.comparison`` (``edges``, ``returns``). Windows last as long in either return mode: 4 packets of single-return
mode or 8 of dual mode; those of edges twice as long.
"""

from collections.abc import Iterator

import numpy as np

from hilsim.families.velodyne.comparison.signal import EdgeStatistics, Firings, packet_firings
from tools.judge.capture_sample import CaptureSample
from tools.judge.feature_table import FeatureTable, table_of_rows

_WINDOW_SEQUENCES = 96
_MIN_EMPTY = 12
_LARGEST_DIFFUSE_BYTE = 100


def empty_features(capture: CaptureSample) -> FeatureTable:
    """Find how the bytes of empty firings are spread: shares at the laser's baseline of the capture and at its multiples, different other bytes."""
    baseline = capture.statistics.returns.baseline
    rows = []
    for firings in _windows(capture, _WINDOW_SEQUENCES):
        is_empty = (firings.distance == 0) & ~np.isnan(baseline)
        count = int(is_empty.sum())
        if count < _MIN_EMPTY:
            continue
        base = np.broadcast_to(np.nan_to_num(baseline), firings.byte.shape)[is_empty]
        byte = firings.byte[is_empty]
        others = byte[byte != base]
        multiples = (base > 0) & (byte > base) & (byte % np.maximum(base, 1) == 0)
        rows.append(
            {
                "empty.at_baseline": float((byte == base).mean()),
                "empty.multiples": float(multiples.mean()),
                "empty.other_kinds": len(np.unique(others)) / np.sqrt(count),
            }
        )
    return table_of_rows(rows)


def drop_out_features(capture: CaptureSample) -> FeatureTable:
    """Find the shares of single empty firings in smooth surfaces and of isolated returns, of the returns of each window."""
    rows = []
    for firings in _windows(capture, _WINDOW_SEQUENCES):
        edges = EdgeStatistics()
        edges.look(firings)
        if edges.returns:
            rows.append({"drop_outs.single": edges.single / edges.returns, "drop_outs.isolated": edges.isolated / edges.returns})
    return table_of_rows(rows)


def edge_features(capture: CaptureSample) -> FeatureTable:
    """Find the shares of edges with an empty firing and with a mixed point; windows without an edge are left out."""
    rows = []
    for firings in _windows(capture, 2 * _WINDOW_SEQUENCES):
        edges = EdgeStatistics()
        edges.look(firings)
        if edges.edges:
            rows.append(
                {
                    "edges.with_empty": edges.with_empty / edges.edges,
                    "edges.near_mixed": edges.near_mixed / edges.near if edges.near else float("nan"),
                    "edges.far_mixed": edges.far_mixed / edges.far if edges.far else float("nan"),
                }
            )
    return table_of_rows(rows)


def scene_features(capture: CaptureSample) -> FeatureTable:
    """Find the shares of empty firings, of byte 0, of byte 100 and of larger bytes: a property of the scene, for information."""
    rows = []
    for firings in _windows(capture, _WINDOW_SEQUENCES):
        byte = firings.byte[firings.distance > 0]
        if len(byte):
            rows.append(
                {
                    "scene.empty": float((firings.distance == 0).mean()),
                    "scene.byte_0": float((byte == 0).mean()),
                    "scene.byte_100": float((byte == _LARGEST_DIFFUSE_BYTE).mean()),
                    "scene.retro": float((byte > _LARGEST_DIFFUSE_BYTE).mean()),
                }
            )
    return table_of_rows(rows)


def _windows(capture: CaptureSample, sequences: int) -> Iterator[Firings]:
    """Split each stretch into windows of whole packets with that many firing sequences; a rest is left out."""
    for block in capture.stretches:
        whole = packet_firings(block)
        packets, of_packet, _ = whole.distance.shape
        size = max(sequences // of_packet, 1)
        for start in range(0, packets - size + 1, size):
            window = slice(start, start + size)
            yield Firings(distance=whole.distance[window], byte=whole.byte[window], unit_mm=whole.unit_mm)
