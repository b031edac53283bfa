"""Faults on command of an Ouster with its default noise, as the vendor's SDK reads its packets."""

import numpy as np
import pytest

import hilsim
from tests.interop.ouster_judge import judge

RIG = {
    "name": "rig",
    "scene": {"box": [{"position_m": [9.0, 0.0, 0.0], "size_m": [1.0, 30.0, 9.0]}]},
    "sensor": [{"name": "top", "profile": "os1-64", "sub_rays": 1}],
}
FAULTS = {
    "dead": [{"kind": "dead_channel", "channels": [20]}],
    "biased": [{"kind": "range_bias", "bias_m": 0.5}],
    "jumped": [{"kind": "clock_jump", "jump_s": 2.0}],
    "mixed": [{"kind": "mixed_firmware", "channels_by": 5}],
    "restarted": [{"kind": "brown_out", "at_s": 0.05, "off_ms": 50.0, "down_ms": 100.0, "drift_ppm": 0.0}],
}


@pytest.fixture(scope="module")
def read_by_sdk(tmp_path_factory):
    """Ranges in mm ``[packet, channel, column]`` and stamps in ns ``[packet, column]`` of each rig."""
    questions = []
    for name, faults in {"clean": [], **FAULTS}.items():
        path = tmp_path_factory.mktemp(name) / "top.pcap"
        rig = hilsim.load_rig({**RIG, "fault": faults})
        hilsim.record(rig, path, duration_s=0.25)
        payloads = [packet.payload for packet in hilsim.Emulator(rig).packets(0.0, 0.25) if packet.destination[1] == 7502]
        questions.append({"metadata": path.with_suffix(".json").read_text(), "lidar": np.stack([np.frombuffer(each, np.uint8) for each in payloads])})
    answers = judge(questions)
    return {
        name: (answer["field.RANGE"].astype(int), answer["column.TIMESTAMP"].astype(int))
        for name, answer in zip(["clean", *FAULTS], answers, strict=True)
    }


def test_a_dead_pixel_row_is_empty_and_the_others_as_they_were(read_by_sdk):
    (clean, _), (dead, _) = read_by_sdk["clean"], read_by_sdk["dead"]
    assert (clean[:, 20] > 0).sum() > 200
    assert not dead[:, 20].any()
    assert np.array_equal(np.delete(clean, 20, axis=1), np.delete(dead, 20, axis=1))


def test_every_range_is_off_by_the_bias(read_by_sdk):
    (clean, _), (biased, _) = read_by_sdk["clean"], read_by_sdk["biased"]
    seen = (clean > 0) & (biased > 0)
    assert seen.sum() > 0.99 * (clean > 0).sum() > 10_000
    assert np.abs(biased[seen] - clean[seen] - 500).max() <= 1


def test_stamps_are_off_by_the_jump_and_ranges_are_not(read_by_sdk):
    (clean, clean_ns), (jumped, jumped_ns) = read_by_sdk["clean"], read_by_sdk["jumped"]
    assert np.array_equal(clean, jumped)
    assert (clean_ns > 0).sum() == clean_ns.size - 1  # the very first is held at 0, however early the encoder triggers it
    assert (jumped_ns - clean_ns == 2_000_000_000)[clean_ns > 0].all()


def test_after_a_brown_out_stamps_count_from_power_up(read_by_sdk):
    (_, clean_ns), (_, counted_ns) = read_by_sdk["clean"], read_by_sdk["restarted"]
    assert len(clean_ns) - len(counted_ns) == pytest.approx(64, abs=1)  # a tenth of a second
    assert np.abs(clean_ns[-40:] - counted_ns[-40:] - 100_000_000).max() <= 8  # the power came back at 0.1 s


def test_mixed_rows_are_those_of_other_lasers(read_by_sdk):
    (clean, _), (mixed, _) = read_by_sdk["clean"], read_by_sdk["mixed"]
    assert np.array_equal(np.roll(clean, -5, axis=1), mixed)
