"""Where a recording can be cut so that its end runs on into its beginning."""

import tracemalloc
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hilsim.families.cepton.recognition import CeptonKind
from hilsim.families.velodyne.recognition import VelodyneKind
from hilsim.parts.replays.recorded.seam import CLOSE_CDEG, MAX_CANDIDATES, Cut, CutCandidates, CutPacket, find_cut, seam_note
from tests.depth import examples
from tests.unit.replays.streams import data_packet, stdv_packet

VELODYNE, CEPTON = VelodyneKind.DATA, CeptonKind.STDV
STEP_CDEG = 477.75744
"""Of a VLP-16 at 600 rpm, from packet to packet."""


def turning(count, *, step_cdeg=STEP_CDEG, first=0):
    """Packets of a Velodyne, the frames numbered from 1."""
    return [CutPacket(1 + number, int(number * step_cdeg) % 36_000, 0) for number in range(first, first + count)]


def apart_cdeg(first, second):
    return abs((second - first + 18_000) % 36_000 - 18_000)


def test_the_loop_is_the_longest_whose_ends_point_the_same_way():
    packets = turning(1900)
    cut = find_cut(VELODYNE, packets, packets)
    phase = {packet.frame: packet.phase for packet in packets}
    assert apart_cdeg(phase[cut.start_frame], phase[cut.stop_frame]) == cut.mismatch <= CLOSE_CDEG
    longer = [
        (start.frame, stop.frame)
        for start in packets[:30]
        for stop in packets[-30:]
        if apart_cdeg(start.phase, stop.phase) <= CLOSE_CDEG and stop.frame - start.frame > cut.stop_frame - cut.start_frame
    ]
    assert longer == []


def test_azimuths_on_both_sides_of_north_are_near_each_other():
    first = [CutPacket(1, 35_998, 0), CutPacket(2, 476, 0)]
    last = [CutPacket(500, 3, 0), CutPacket(501, 481, 0)]
    assert find_cut(VELODYNE, first, last) == (1, 500, 5)


def test_where_nothing_fits_closely_the_best_is_taken_and_says_how_good_it_is():
    packets = turning(80, step_cdeg=480.0)  # one turn and five packets: 75 packets are a turn
    cut = find_cut(VELODYNE, packets, packets)
    assert cut.stop_frame - cut.start_frame == 75
    packets = turning(80)
    cut = find_cut(VELODYNE, packets, packets)
    assert CLOSE_CDEG < cut.mismatch <= STEP_CDEG / 2 + 1


@pytest.mark.parametrize("step_cdeg", [STEP_CDEG / 2, STEP_CDEG, 2 * STEP_CDEG, STEP_CDEG / 4])
@given(share=st.floats(0.0, 0.95))
@settings(max_examples=examples(30))
def test_less_than_a_turn_cannot_be_cut(step_cdeg, share):
    packets = turning(max(round(share * 36_000 / step_cdeg), 1), step_cdeg=step_cdeg)
    assert find_cut(VELODYNE, packets, packets) is None


@pytest.mark.extended
@given(turns=st.floats(1.1, 30.0), first=st.integers(0, 75), rpm=st.integers(300, 1200))
@settings(max_examples=examples(60))
def test_more_than_a_turn_can_be_cut_within_half_a_packet(turns, first, rpm):
    step_cdeg = rpm / 60 * 36_000 * 1.327104e-3
    packets = turning(round(turns * 36_000 / step_cdeg), step_cdeg=step_cdeg, first=first)
    cut = find_cut(VELODYNE, packets, packets)
    assert cut is not None
    assert cut.mismatch <= step_cdeg / 2 + 1
    assert cut.stop_frame - cut.start_frame >= 0.45 * (packets[-1].frame - packets[0].frame)


def test_a_head_that_stands_still_fits_everywhere():
    packets = turning(100, step_cdeg=0.0)
    assert find_cut(VELODYNE, packets, packets) == (1, 100, 0)


def test_a_recording_without_a_place_to_cut_has_no_cut():
    assert find_cut(VELODYNE, [], turning(5)) is None
    assert find_cut(CEPTON, [CutPacket(3, 0, 4)], [CutPacket(3, 0, 4)]) is None


def test_frames_of_cepton_are_cut_where_the_parity_is_the_same_and_the_place_in_the_packet_nearest():
    packets = [CutPacket(10, 7, 0), CutPacket(20, 90, 4), CutPacket(30, 30, 0), CutPacket(45, 88, 4), CutPacket(50, 140, 0)]
    assert find_cut(CEPTON, packets, packets) == (20, 45, 2)


def test_candidates_of_cepton_are_packets_in_which_a_frame_begins():
    found = CutCandidates(CEPTON)
    for frame, parities in enumerate([(0, 0, 0), (0, 1, 1), (1, 1, 1), (0, 0, 0), (0, 1, 0)], 1):
        found.look(frame, stdv_packet(frame, parities))
    assert list(found.packets) == [CutPacket(2, 1, 4), CutPacket(4, 0, 0), CutPacket(5, 1, 4), CutPacket(5, 2, 0)]


def test_candidates_of_a_velodyne_are_all_its_packets_by_their_first_azimuth():
    found = CutCandidates(VELODYNE)
    for frame in range(3):
        found.look(frame, data_packet(1000 * frame, 5))
    assert list(found.packets) == [CutPacket(0, 0, 0), CutPacket(1, 1000, 0), CutPacket(2, 2000, 0)]


def test_choosing_takes_little_memory_however_many_packets_there_are():
    found = CutCandidates(VELODYNE)
    payload = bytes(1206)
    for frame in range(2 * MAX_CANDIDATES):
        found.look(frame, payload)
    first, last = turning(MAX_CANDIDATES), turning(MAX_CANDIDATES, first=100_000)
    tracemalloc.start()
    try:
        assert find_cut(VELODYNE, first, last) is not None
        assert tracemalloc.get_traced_memory()[1] < 5e6
    finally:
        tracemalloc.stop()
    assert len(found.packets) == MAX_CANDIDATES
    assert found.packets[-1].frame == 2 * MAX_CANDIDATES - 1


@given(
    st.lists(st.tuples(st.integers(0, 35_999), st.integers(0, 1)), min_size=1, max_size=40),
    st.sampled_from([VELODYNE, CEPTON]),
)
def test_the_chosen_cut_is_the_best_of_all_pairs(packets, kind):
    packets = [CutPacket(number, phase, group) for number, (phase, group) in enumerate(packets)]
    cut = find_cut(kind, packets, packets)
    span = packets[-1].frame - packets[0].frame
    pairs = [
        (apart_cdeg(start.phase, stop.phase), stop.frame - start.frame)
        for start in packets
        for stop in packets
        if start.group == stop.group and stop.frame > start.frame and 20 * (stop.frame - start.frame) >= 9 * span
    ]
    if cut is None:
        steps = [apart_cdeg(before.phase, after.phase) for before, after in pairwise(packets)]
        assert not pairs or (kind is VELODYNE and min(pairs)[0] > 0.75 * np.median(steps))
    else:
        closest = max(min(pairs)[0], CLOSE_CDEG)
        assert (cut.stop_frame - cut.start_frame) == max(length for mismatch, length in pairs if mismatch <= closest)
        assert cut.mismatch <= closest


@pytest.mark.parametrize(
    ("kind", "mismatch", "note"),
    [
        (VelodyneKind.DATA, 224, "its best seam leaps by 2.24 degrees (a longer recording has better ones)"),
        (CeptonKind.STDV, 30, "its best seam leaps by 30 points of a frame (a longer recording has better ones)"),
        (VelodyneKind.DATA, CLOSE_CDEG, ""),
    ],
)
def test_a_seam_that_leaps_is_reported_by_how_much(kind, mismatch, note):
    assert seam_note(kind, Cut(0, 84, mismatch)) == note
