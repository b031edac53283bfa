"""Emulated captures of before byte noise, judged beside real ones."""

from dataclasses import replace
from pathlib import Path

import pytest

from hilsim.capture.pcap import CaptureFile
from tools.judge.capture_sample import sample_capture
from tools.judge.groups import GROUPS
from tools.judge.judge import judge

pytest.importorskip("sklearn")

FOLDER = Path(__file__).parent.parent / "families" / "velodyne" / "comparison"
WITHOUT = [FOLDER / "vlp16_without_byte_noise.pcap.gz", FOLDER / "vlp16_without_byte_noise_dual.pcap.gz"]
REAL = ("vlp16_strongest_gps.pcap", "vlp16_dual.pcap")


def sample(path):
    return sample_capture(CaptureFile(path), name=path.name)


def chosen_groups():
    """The groups that these captures are long enough for, with the topic that is asserted."""
    return tuple(replace(group, topics=tuple(topic for topic in group.topics if topic.name == "byte")) for group in GROUPS[:2])


def test_captures_without_byte_noise_are_distinguished_from_real_ones_by_what_betrays_them(capture, monkeypatch):
    monkeypatch.setattr("tools.judge.judge.GROUPS", chosen_groups())
    judgement = judge([sample(capture(name)) for name in REAL], [sample(path) for path in WITHOUT])
    by_name = {(result.group.name, result.topic.name if result.topic else ""): result for result in judgement.results}
    assert "signal" in judgement.telling
    assert by_name["signal", ""].far.mean > 0.95
    assert by_name["signal", "byte"].far.mean > 0.9
    assert by_name["signal", ""].real.mean < 0.9
    outside = {scalar.name for scalar in judgement.scalars if scalar.outside == len(scalar.emulated)}
    assert {"grid.odd", "grid.odd_equal_bytes", "bytes.equal"} <= outside
