"""Lidars with a limited field of view: packets hold the blocks of the whole turn's stream that lie within, one after the other."""

from dataclasses import replace

import numpy as np
import pytest

from hilsim.emulator.schedule import data_deadline_ns, first_packet_due, first_packet_from, packet_start_ns, write_sequences_of
from hilsim.emulator.truth import packets_with_truth
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE
from hilsim.world.geometry.poses import Pose
from hilsim.world.scene.materials import Material
from hilsim.world.scene.primitives import box
from hilsim.world.scene.world import SceneObject, build_world
from tests.compiled import compiled_only
from tests.unit.emulator.test_segments import SEQUENCE_NS, following, lidar

VIEWS = {
    "across the front": ((270, 90), "strongest", 600),
    "behind, pairs": ((90, 180), "dual", 1200),
    "one degree": ((10, 10), "strongest", 300),
    "one degree of a fast head": ((0, 0), "dual", 1200),
    "across north": ((350, 5), "last", 600),
    "all but one degree": ((1, 359), "strongest", 600),
}


def parsed(payload):
    return payload.copy().view(DATA_PACKET_DTYPE).reshape(-1)


def blocks_of(packets):
    return parsed(packets.payload)["blocks"].reshape(-1)


def is_within(azimuth_cdeg, view):
    start, end = view
    return (azimuth_cdeg.astype(int) - 100 * start) % 36_000 < 100 * ((end - start) % 360 + 1)


def walled():
    """Walls at four distances, so that each side is known by its ranges."""
    material = Material(name="plaster", reflectivity=60)
    places = ((4.0, 0.0), (0.0, 6.0), (-8.0, 0.0), (0.0, -10.0))
    return build_world([SceneObject(mesh=box((1.0, 1.0, 9.0), material), placement=Pose(position_m=(x, y, 0.0))) for x, y in places])


@compiled_only
@pytest.mark.parametrize(("view", "mode", "rate_rpm"), VIEWS.values(), ids=VIEWS)
def test_packets_hold_the_blocks_of_the_whole_stream_that_lie_within(view, mode, rate_rpm):
    setup = {"return_mode": mode, "rotation_rate_rpm": rate_rpm}
    whole = lidar(seen=walled(), **setup)
    limited = lidar(seen=walled(), field_of_view_deg=view, **setup)
    expected = blocks_of(whole.data_span(0, 3_000_000_000))
    expected = expected[is_within(expected["azimuth"], view)]
    got = blocks_of(limited.data_packets(0, expected.size // 12))
    assert got.size > 0
    assert np.array_equal(got, expected[: got.size])


@compiled_only
def test_a_packet_does_not_depend_on_which_were_asked_for_before():
    view = (200, 20)
    limited = lidar(field_of_view_deg=view)
    in_order = limited.data_packets(0, 1200)
    for packet in (1100, 3, 640, 0, 1199):
        alone = replace(limited).data_packets(packet, 1)
        assert np.array_equal(alone.payload[0], in_order.payload[packet])
        assert alone.deadline_ns[0] == in_order.deadline_ns[packet]


@compiled_only
def test_a_day_later_blocks_lie_within_and_whole_turns_of_them_have_passed():
    view, day_ns = (30, 149), 86_400_000_000_000
    limited = lidar(field_of_view_deg=view)
    first = limited.first_data_packet(day_ns)
    packets = limited.data_packets(first, 200)
    azimuth = blocks_of(packets)["azimuth"]
    assert is_within(azimuth, view).all()
    # A third of all blocks, by the clock: 2 firing sequences a block, 12 blocks a packet. Noise at the edges leaves out a few hundredths of a block a turn.
    assert first == pytest.approx(day_ns / (2 * SEQUENCE_NS) / 12 / 3, rel=5e-4)
    assert packets.deadline_ns[0] - day_ns < 100_000_000


@compiled_only
def test_a_packet_goes_on_across_the_gap_with_its_first_firings_stamp():
    limited = lidar(field_of_view_deg=(270, 90))
    packets = limited.data_packets(0, 200)
    data = parsed(packets.payload)
    azimuth = data["blocks"]["azimuth"].astype(int)
    leaps = np.diff(azimuth, axis=1) % 36_000 > 10_000
    assert (leaps.sum(axis=1) <= 1).all()
    assert 2 <= leaps.sum() <= 6  # once a turn, and seldom between two packets
    stamps_us = data["timestamp"].astype(int)
    starts_us = [packet_start_ns(limited.plan, packet) // 1000 for packet in range(200)]
    assert stamps_us.tolist() == starts_us
    spans_us = np.diff(stamps_us)
    after_leap = spans_us[np.flatnonzero(leaps.any(axis=1))]
    assert (after_leap > 40_000).all()
    assert (np.diff(packets.deadline_ns) > 0).all()
    assert (packets.deadline_ns[:-1] <= 1000 * stamps_us[1:] + 1_000_000).all()


def test_packets_are_found_by_their_deadlines_and_their_first_firings():
    plan = lidar(field_of_view_deg=(100, 101)).plan
    for packet in (0, 1, 7, 30):
        due_ns, start_ns = data_deadline_ns(plan, packet), packet_start_ns(plan, packet)
        assert [first_packet_due(plan, due_ns + shift) for shift in (0, 1)] == [packet, packet + 1]
        assert [first_packet_from(plan, start_ns + shift) for shift in (0, 1)] == [packet, packet + 1]


def test_sequences_of_packets_follow_one_another():
    plan = lidar(field_of_view_deg=(350, 3)).plan
    together, alone = np.zeros(5 * 24, np.int64), np.zeros(24, np.int64)
    write_sequences_of(plan.field_of_view, plan, 20, together)
    for row in range(5):
        write_sequences_of(plan.field_of_view, plan, 20 + row, alone)
        assert np.array_equal(together[24 * row : 24 * row + 24], alone)
    assert (np.diff(together) > 0).all()
    assert (together[::2] % 2 == 0).all()


@compiled_only
def test_truth_names_the_firing_that_made_each_return():
    limited = lidar(seen=walled(), field_of_view_deg=(300, 60), return_mode="dual")
    packets, truth = packets_with_truth(limited, 0, 300)
    distances = parsed(packets.payload)["blocks"]["channels"]["distance"].reshape(-1)
    place = truth.packet * 384 + truth.block.astype(int) * 32 + truth.record
    assert np.array_equal(distances[place], truth.distance)
    assert (distances > 0).sum() == truth.packet.size > 0
    whole, of_whole = packets_with_truth(lidar(seen=walled(), return_mode="dual"), 0, 600)
    known = {(row[0], row[1], row[2]): row[3] for row in zip(of_whole.sequence, of_whole.channel, of_whole.time_ns, of_whole.distance, strict=True)}
    found = list(zip(truth.sequence, truth.channel, truth.time_ns, truth.distance, strict=True))
    last_ns = whole.deadline_ns[-1] - 2_000_000
    assert all(known[sequence, channel, time_ns] > 0 for sequence, channel, time_ns, _ in found if time_ns < last_ns)


@compiled_only
def test_a_field_of_view_changes_with_the_next_packet_and_blocks_go_on():
    base, view, other = lidar(seen=walled()), (180, 270), (45, 224)
    narrow = replace(base, setting=replace(base.setting, setup=replace(base.setting.setup, field_of_view_deg=view)))
    wide = replace(base, setting=replace(base.setting, setup=replace(base.setting.setup, field_of_view_deg=other)))
    changing = following(base, (130_000_001, narrow), (650_000_000, wide), (910_000_000, base))
    count = changing.first_data_packet(1_300_000_000)
    got = blocks_of(changing.data_packets(0, count))
    whole = blocks_of(base.data_packets(0, 1100))
    index = np.arange(whole.size)
    begins = [int(later.begin_ns // (2 * SEQUENCE_NS)) for later in changing.later]
    azimuth = whole["azimuth"]
    kept = index < begins[0]
    kept |= (index >= begins[0]) & (index < begins[1]) & is_within(azimuth, view)
    kept |= (index >= begins[1]) & (index < begins[2]) & is_within(azimuth, other)
    kept |= index >= begins[2]
    expected = whole[kept]
    assert begins[0] >= 130_000_001 // (2 * SEQUENCE_NS)
    assert np.array_equal(got, expected[: got.size])


@compiled_only
def test_a_world_that_changes_while_a_packet_waits_for_the_other_side_is_seen_there():
    base = lidar(seen=walled(), field_of_view_deg=(315, 45))
    empty = replace(base, world=build_world([]))
    at_ns = 50_000_000  # the head looks back, and the packet in progress holds firings of both sides
    got = blocks_of(following(base, (at_ns, empty)).data_packets(0, 60))
    before, after = blocks_of(base.data_packets(0, 60)), blocks_of(empty.data_packets(0, 60))
    is_same_before, is_same_after = (got == before).reshape(-1), (got == after).reshape(-1)
    first = int(np.flatnonzero(~is_same_before)[0])
    assert is_same_before[:first].all()
    assert is_same_after[first:].all()
    assert first % 12 != 0


@pytest.mark.parametrize("view", [(-1, 90), (0, 360)])
def test_a_field_of_view_beyond_a_turn_is_refused(view):
    with pytest.raises(ValueError, match=r"field_of_view_deg must be a first and a last azimuth of 0 to 359"):
        lidar(field_of_view_deg=view)
