"""Faults of the network, judged by a receiver that knows their parameters and the numbers of the datagrams alone."""

import math
from dataclasses import replace

import numpy as np
import pytest

from hilsim.faults.catalogue import FAULTS, RAW_EFFECTS, Place
from hilsim.faults.specs import FAULT_SPECS
from hilsim.limits import HELD_DATAGRAMS
from hilsim.protocols.ethernet import HEADER_SIZE, PLAIN_STYLE, build_framing, write_headers
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.faults.arrays import NEVER_NS, BrokenNetwork, NetworkCount, NetworkFault, allocate_network_faults, earliest_ns
from hilsim.transmit.faults.kernels import newest_draw, pass_network

MILLION = 1_000_000
STEP_NS = 1_327_104
Z = 2.576
"""99 % of a normal distribution are within so many standard deviations."""


def fault(kind, *, cut_ns=NEVER_NS, **keys):
    return NetworkFault(FAULT_SPECS[kind](**keys), cut_ns)


def network(*faults, flows=("roof/data",), raw=False, seed=11):
    broken = BrokenNetwork(allocate_network_faults(len(flows), 1600), seed)
    for row, name in enumerate(flows):
        broken.add_flow(row, name, has_headers=raw, is_raw=raw)
    broken.set_faults(faults)
    return broken


def datagrams(count, flows=1, size=16, step_ns=STEP_NS, first=0):
    """Deadlines, flows, sizes and payloads of ``count`` datagrams each of some flows: the number is in the payload."""
    deadline_ns = np.repeat(np.arange(first, first + count, dtype=np.int64) * step_ns, flows)
    payload = np.zeros((count * flows, size), np.uint8)
    payload[:, :8] = np.repeat(np.arange(first, first + count, dtype=np.int64), flows)[:, None].view(np.uint8)
    return deadline_ns, np.tile(np.arange(flows), count), np.full(count * flows, size, np.int32), payload


def passed(broken, given, until_ns=None, cuts=()):
    """What comes out, in as many calls as there are cuts: times, flows, sizes and payloads."""
    deadline_ns, *rest = given
    until_ns = int(deadline_ns[-1]) + 100_000_000_000 if until_ns is None else until_ns
    found, begin = [], 0
    for stop in (*cuts, deadline_ns.size):
        end_ns = until_ns if stop == deadline_ns.size else int(deadline_ns[stop])
        at, columns = 0, [column[begin:stop] for column in (deadline_ns, *rest)]
        while at <= stop - begin:
            out = np.zeros(4096, np.int64), np.zeros(4096, np.int64), np.zeros(4096, np.int32), np.zeros((4096, 1604), np.uint8)
            at, count = pass_network(broken.arrays, *columns, at, end_ns, *out)
            found.append([column[:count, : columns[3].shape[1] + 4] if column.ndim == 2 else column[:count] for column in out])
        begin = stop
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def numbers(payload):
    return np.ascontiguousarray(payload[:, :8]).view(np.int64)[:, 0]


def received(count=MILLION, **keys):
    """Numbers and times of the datagrams of one flow, in the order in which they arrive, and the network."""
    kind = keys.pop("kind")
    broken = network(fault(kind, **keys))
    time_ns, _, _, payload = passed(broken, datagrams(count))
    assert (np.diff(time_ns) >= 0).all()
    return numbers(payload), time_ns, broken


def counted(broken, which, row=0):
    return int(broken.arrays.counts[row, which])


def assert_share(found, of, share):
    assert abs(found - of * share) <= Z * math.sqrt(of * share * (1.0 - share))


@pytest.mark.parametrize("share", [pytest.param(0.001, marks=pytest.mark.extended), 0.5])
def test_independent_loss_has_its_share_and_no_memory(share):
    arrived, time_ns, broken = received(kind="loss", share=share)
    lost = np.setdiff1d(np.arange(MILLION), arrived)
    assert_share(lost.size, MILLION, share)
    assert counted(broken, NetworkCount.LOST) == lost.size
    assert_share(np.count_nonzero(np.diff(lost) == 1), lost.size, share)  # after a loss the next is lost as any other
    assert np.array_equal(time_ns, arrived * STEP_NS)


@pytest.mark.parametrize("kind", ["burst_loss", "wifi"])
def test_bursts_have_the_mean_lengths_of_the_link_s_states(kind):
    spec = FAULT_SPECS[kind](**({"good_ms": 60.0, "bad_ms": 20.0} if kind == "burst_loss" else {}))
    arrived, _, _ = received(kind=kind, good_ms=spec.good_ms, bad_ms=spec.bad_ms)
    is_lost = np.ones(MILLION, bool)
    is_lost[arrived] = False
    share = spec.bad_ms / (spec.good_ms + spec.bad_ms)
    step_ms = STEP_NS / 1e6
    stay = share + (1.0 - share) * math.exp(-step_ms * (1.0 / spec.good_ms + 1.0 / spec.bad_ms))  # that a datagram after a lost one is lost
    correlation = (stay - share) / (1.0 - share)
    deviation = math.sqrt(share * (1.0 - share) / MILLION * (1.0 + correlation) / (1.0 - correlation))
    assert abs(is_lost.mean() - share) < Z * deviation
    edges = np.flatnonzero(np.diff(np.concatenate([[0], is_lost.astype(int), [0]])))
    lengths = edges[1::2] - edges[::2]
    mean = 1.0 / (1.0 - stay)
    assert abs(lengths.mean() - mean) < Z * math.sqrt(stay) * mean / math.sqrt(lengths.size)  # geometric


def test_the_state_of_a_link_does_not_depend_on_its_traffic():
    spec = fault("burst_loss", good_ms=50.0, bad_ms=50.0)
    dense, sparse = network(spec), network(spec)
    all_of = numbers(passed(dense, datagrams(20_000))[3])
    given = datagrams(20_000)
    third = numbers(passed(sparse, [column[::3] for column in given])[3])
    assert np.array_equal(third, all_of[all_of % 3 == 0])


def test_flows_of_one_link_are_lost_together_and_those_of_others_are_not():
    flows = ("roof/data", "roof/position", "rear/data")
    broken = network(fault("burst_loss", on="roof", good_ms=50.0, bad_ms=50.0), fault("loss", on="rear/data", share=0.5), flows=flows)
    _, flow, _, payload = passed(broken, datagrams(20_000, flows=3))
    data, position, rear = (numbers(payload[flow == row]) for row in range(3))
    assert np.array_equal(data, position)
    assert_share(rear.size, 20_000, 0.5)
    assert abs(np.isin(rear, data).mean() - data.size / 20_000) < 0.02


@pytest.mark.parametrize(
    ("kind", "mean_ms", "share_below"),
    [
        ("delay", 20.0, lambda ms: (ms - 18.0) / 4.0),
        ("normal_delay", 20.0, lambda ms: 0.5 * (1.0 + math.erf((ms - 20.0) / 2.0 / math.sqrt(2.0)))),
        ("pareto_delay", 22.0, lambda ms: 1.0 - (1.0 + (ms - 20.0) / 4.0) ** -3.0),
    ],
)
def test_delays_have_their_distribution(kind, mean_ms, share_below):
    arrived, time_ns, broken = received(kind=kind, delay_ms=20.0, jitter_ms=2.0)
    assert np.array_equal(np.sort(arrived), np.arange(MILLION))
    assert counted(broken, NetworkCount.DELAYED) == MILLION
    delay_ms = (time_ns - arrived * STEP_NS) / 1e6
    for at_ms in (18.5, 19.0, 20.5, 21.0, 25.0):
        assert_share(
            np.count_nonzero(delay_ms < at_ms), MILLION, min(max(share_below(at_ms), 0.0), 1.0)
        ) if kind != "pareto_delay" or at_ms > 20.0 else None
    assert abs(delay_ms.mean() - mean_ms) < Z * delay_ms.std() / 1000.0
    assert (delay_ms >= (20.0 if kind == "pareto_delay" else 0.0)).all()


def test_jitter_that_stays_for_a_while_has_an_exponential_correlation_and_the_same_distribution():
    arrived, time_ns, _ = received(kind="normal_delay", delay_ms=20.0, jitter_ms=2.0, correlation_ms=10.0)
    delay_ms = np.empty(MILLION)
    delay_ms[arrived] = (time_ns - arrived * STEP_NS) / 1e6
    stays = math.exp(-STEP_NS / 1e6 / 10.0)
    independent = MILLION * (1.0 - stays) / (1.0 + stays)
    assert abs(delay_ms.mean() - 20.0) < Z * 2.0 / math.sqrt(independent)
    assert_share(np.count_nonzero(np.diff(delay_ms) == 0.0), MILLION - 1, stays)


def test_reordered_datagrams_are_overtaken_by_as_many_as_are_due_meanwhile():
    arrived, time_ns, broken = received(kind="reorder", share=0.02, delay_ms=10.0 * STEP_NS / 1e6)
    overtaken = np.zeros(MILLION, np.int64)
    is_late = time_ns > arrived * STEP_NS
    overtaken[arrived[is_late]] = (time_ns[is_late] - arrived[is_late] * STEP_NS) // STEP_NS
    assert_share(is_late.sum(), MILLION, 0.02)
    assert counted(broken, NetworkCount.DELAYED) == is_late.sum()
    for distance in range(10):
        assert_share(np.count_nonzero(overtaken[arrived[is_late]] == distance), int(is_late.sum()), 0.1)
    before = np.maximum.accumulate(arrived)
    assert np.array_equal(arrived < before, is_late & (overtaken[arrived] > 0) & (arrived < before))  # nothing else is out of order


def test_copies_are_alike_and_come_after_their_time():
    arrived, time_ns, broken = received(count=200_000, kind="duplicate", share=0.03, delay_ms=4.0)
    names, counts = np.unique(arrived, return_counts=True)
    assert names.size == 200_000
    assert set(counts) == {1, 2}
    assert_share(np.count_nonzero(counts == 2), 200_000, 0.03)
    assert counted(broken, NetworkCount.REPEATED) == np.count_nonzero(counts == 2)
    assert set((time_ns - arrived * STEP_NS).tolist()) == {0, 4_000_000}


def test_bit_errors_have_their_ratio_and_places():
    broken = network(fault("corrupt", share=0.0, bit_error_ratio=1e-3))
    given = datagrams(100_000, size=128)
    given[3][:] = 0
    _, _, _, payload = passed(broken, given)
    bits = np.unpackbits(payload[:, :128], axis=1)
    assert_share(int(bits.sum()), bits.size, 1e-3)
    assert_share(np.count_nonzero(bits.any(axis=1)), 100_000, 1.0 - (1.0 - 1e-3) ** 1024)
    assert_share(int(bits[:, 0].sum()), 100_000, 1e-3)
    assert_share(int(bits[:, -1].sum()), 100_000, 1e-3)
    assert counted(broken, NetworkCount.CORRUPTED) == np.count_nonzero(bits.any(axis=1))


def test_one_bit_is_changed_in_a_share_of_the_datagrams():
    broken = network(fault("corrupt", share=0.25))
    given = datagrams(100_000, size=64)
    given[3][:] = 0xA5
    changed = np.unpackbits(passed(broken, given)[3][:, :64] ^ 0xA5, axis=1)
    assert set(changed.sum(axis=1)) == {0, 1}
    assert_share(int(changed.sum()), 100_000, 0.25)
    assert changed.any(axis=0).all()


def test_payloads_are_cut():
    _, _, size, _ = passed(network(fault("truncate", share=0.1, payload_bytes=9)), datagrams(100_000))
    assert set(size) == {9, 16}
    assert_share(np.count_nonzero(size == 9), 100_000, 0.1)


def test_a_link_is_down_and_up_from_its_begin_on():
    arrived, _, _ = received(count=10_000, kind="link_flap", at_s=2.0, for_s=5.0, down_ms=300.0, up_ms=700.0)
    lost = np.setdiff1d(np.arange(10_000), arrived) * STEP_NS / 1e9
    assert ((lost >= 2.0) & (lost < 7.0)).all()
    assert ((lost - 2.0) % 1.0 < 0.3).all()
    assert abs(lost.size - 5 * 0.3e9 / STEP_NS) < 6


def test_a_stalled_switch_sends_what_it_holds_at_the_line_s_rate():
    broken = network(fault("hold", hold_ms=50.0, every_ms=500.0, line_bps=1e8))
    time_ns, _, _, payload = passed(broken, datagrams(2000, size=1206))
    assert np.array_equal(numbers(payload), np.arange(2000))
    gaps_ns = np.diff(time_ns)
    assert gaps_ns.min() == 8 * (1206 + 66) * 10  # 101.76 us
    assert gaps_ns.max() > 45_000_000
    held = time_ns - np.arange(2000) * STEP_NS
    is_open = np.arange(2000) * STEP_NS % 500_000_000 > 60_000_000
    assert (held[is_open] == 101_760).all()


def test_a_slow_line_sends_at_its_rate_and_loses_what_its_queue_has_no_room_for():
    broken = network(fault("rate_limit", rate_bps=4e6, queue_bytes=12_720))
    time_ns, _, _, payload = passed(broken, datagrams(5000, size=1206))
    assert set(np.diff(time_ns)) == {2_544_000}
    assert abs(time_ns.size - 5000 * STEP_NS / 2_544_000) < 12
    assert time_ns.size + counted(broken, NetworkCount.OVERFLOWN) == 5000
    assert (time_ns - numbers(payload) * STEP_NS).max() <= 25_440_000


def test_what_has_no_room_is_counted_and_nothing_comes_in_a_burst():
    arrived, time_ns, broken = received(count=5000, kind="delay", delay_ms=5000.0, jitter_ms=0.0)
    assert counted(broken, NetworkCount.NOT_HELD) == 5000 - arrived.size > 0
    assert counted(broken, NetworkCount.DELAYED) == arrived.size
    assert np.array_equal(time_ns, arrived * STEP_NS + 5_000_000_000)
    assert np.searchsorted(time_ns, 5_000_000_000) == 0
    assert np.count_nonzero(arrived < 2000) == HELD_DATAGRAMS.bound


def test_a_cleared_fault_leaves_the_datagrams_after_it_alone():
    faults = [fault(row.kind, cut_ns=1_000_000_000) for row in FAULTS if row.place == Place.NETWORK and row.effect not in RAW_EFFECTS]
    given = datagrams(20_000, flows=2)
    broken = network(*faults, flows=("a/data", "b/data"))
    time_ns, flow, size, payload = passed(broken, given)
    is_after = numbers(payload) * STEP_NS >= 1_000_000_000
    assert not np.array_equal(numbers(payload[~is_after]), np.repeat(np.arange(754), 2))
    expected = given[0] >= 1_000_000_000
    order = np.lexsort((flow[is_after], time_ns[is_after]))
    for found, column in zip((time_ns, flow, size, payload[:, :16]), given, strict=True):
        assert np.array_equal(found[is_after][order], column[expected])


def test_a_datagram_s_fate_depends_on_no_other_one():
    faults = [fault("loss", share=0.3), fault("corrupt", share=0.4), fault("delay", jitter_ms=5.0), fault("duplicate", share=0.1)]
    given = datagrams(5000)
    every = passed(network(*faults), given)
    some = passed(network(*faults), [column[::7] for column in given])
    fates = {(int(time_ns), payload.tobytes()) for time_ns, payload in zip(every[0], every[3], strict=True)}
    assert len(some[0]) > 100
    assert {(int(time_ns), payload.tobytes()) for time_ns, payload in zip(some[0], some[3], strict=True)} <= fates


def test_datagrams_of_one_deadline_have_fates_of_their_own():
    given = datagrams(1000, step_ns=0)
    arrived = numbers(passed(network(fault("loss", share=0.5)), given)[3])
    assert_share(arrived.size, 1000, 0.5)


def test_stretches_in_any_number_of_pieces_give_the_same():
    faults = [fault("wifi"), fault("hold"), fault("rate_limit", rate_bps=1e6), fault("pareto_delay"), fault("reorder", share=0.2), fault("duplicate")]
    given = datagrams(3000, flows=2)
    whole = passed(network(*faults, flows=("a/data", "b/data")), given)
    pieces = passed(network(*faults, flows=("a/data", "b/data")), given, cuts=(1, 100, 101, 2500))
    for one, other in zip(whole, pieces, strict=True):
        assert np.array_equal(one, other)


def test_a_stretch_needs_what_is_before_it_by_the_longest_delay_alone():
    assert earliest_ns([fault("loss"), fault("truncate")], 5_000_000_000) == 5_000_000_000 - 1
    assert earliest_ns([fault("delay", delay_ms=20.0, jitter_ms=5.0)], 5_000_000_000) == 5_000_000_000 - 25_000_001
    assert earliest_ns([fault("rate_limit", at_s=2.0)], 5_000_000_000) < 2_000_000_000
    assert earliest_ns([fault("rate_limit", at_s=8.0)], 5_000_000_000) == 5_000_000_000 - 1
    faults = [fault("delay", delay_ms=20.0, jitter_ms=5.0), fault("hold", at_s=1.0), fault("reorder", share=0.2), fault("duplicate")]
    whole = passed(network(*faults), datagrams(3000))
    start_ns = 2_000_000_000
    first = -(-earliest_ns(faults, start_ns) // STEP_NS)
    late = passed(network(*faults), datagrams(3000 - first, first=first))
    assert first > 0
    for one, other in zip(whole, late, strict=True):
        assert np.array_equal(one[whole[0] >= start_ns], other[late[0] >= start_ns])


def test_ramps_come_and_go():
    arrived, _, _ = received(count=40_000, kind="loss", share=1.0, at_s=10.0, for_s=20.0, ramp_s=10.0, ramp_out_s=10.0)
    is_lost = np.ones(40_000, bool)
    is_lost[arrived] = False
    time_s = np.arange(40_000) * STEP_NS / 1e9
    for middle_s, share in ((5.0, 0.0), (12.5, 0.25), (20.0, 1.0), (27.5, 0.25), (35.0, 0.0)):
        chosen = is_lost[np.abs(time_s - middle_s) < 0.5]
        assert abs(chosen.mean() - share) < 0.06


def test_faults_of_other_seeds_and_flows_are_independent():
    lost = []
    for keys, name in (({}, "a/data"), ({"seed": 1}, "a/data"), ({}, "b/data"), ({"name": "other"}, "a/data")):
        arrived = numbers(passed(network(fault("loss", share=0.5, **keys), flows=(name,)), datagrams(10_000))[3])
        is_lost = np.ones(10_000, bool)
        is_lost[arrived] = False
        lost.append(is_lost)
    correlation = np.corrcoef(np.array(lost))
    assert np.abs(correlation - np.eye(4)).max() < 4.0 / 100.0


def test_draws_that_stay_are_those_of_a_poisson_process():
    drawn = np.array([newest_draw(99, at * 1000, 10_000.0)[0] for at in range(20_000)])
    assert_share(np.count_nonzero(np.diff(drawn) == 0.0), 19_999, math.exp(-0.1))
    assert drawn[::-100].tolist() == [newest_draw(99, at * 1000, 10_000.0)[0] for at in range(19_999, -1, -100)]


# -- frames ----------------------------------------------------------------------------------------------------------------------------


def frames(count, payload_size, *, with_checksum=True):
    style = replace(PLAIN_STYLE, udp_checksum=with_checksum)
    framing = build_framing(style, FlowKey("10.0.0.1", 2368, "10.0.0.2", 2368), source_mac="02:00:00:00:00:01", destination_mac="02:00:00:00:00:02")
    given = datagrams(count, size=HEADER_SIZE + payload_size)
    rng = np.random.default_rng(5)
    given[3][:, HEADER_SIZE:] = rng.integers(0, 256, (count, payload_size), np.uint8)
    for row in range(count):
        write_headers(framing.template, row + 1, with_checksum, given[3][row], payload_size)
    return given


def sums(words):
    """Ones' complement sum, by another way than the kernels'."""
    data = bytes(words) + b"\0" * (len(words) % 2)
    return sum(int.from_bytes(data[at : at + 2], "big") for at in range(0, len(data), 2)) % 65_535


def checksums(frame):
    """Whether the checksums of IP and of UDP (None: without) of a frame without a tag are right."""
    udp_length = int.from_bytes(frame[38:40], "big")
    pseudo = bytes(frame[26:34]) + b"\0\x11" + bytes(frame[38:40])
    is_udp_right = None if frame[40] == frame[41] == 0 else sums(pseudo + bytes(frame[34 : 34 + udp_length])) == 0
    return sums(frame[14:34]) == 0, is_udp_right


@pytest.mark.parametrize("with_checksum", [False, True])
def test_changed_frames_have_right_lengths_and_checksums(with_checksum):
    given = frames(200, 333, with_checksum=with_checksum)
    _, _, size, payload = passed(network(fault("corrupt", share=1.0), fault("truncate", share=0.5, payload_bytes=100), raw=True), given)
    assert set(size) == {HEADER_SIZE + 100, HEADER_SIZE + 333}
    for row in range(200):
        frame = payload[row, : size[row]]
        assert int.from_bytes(frame[16:18], "big") == size[row] - 14
        assert int.from_bytes(frame[38:40], "big") == size[row] - 34
        assert checksums(frame) == (True, True if with_checksum else None)
        assert not np.array_equal(frame[HEADER_SIZE:], given[3][row, HEADER_SIZE : size[row]]) or size[row] < HEADER_SIZE + 333


@pytest.mark.parametrize("with_checksum", [False, True])
def test_checksums_are_wrong_where_that_is_asked(with_checksum):
    given = frames(300, 334, with_checksum=with_checksum)
    payload = passed(network(fault("bad_checksum", share=0.5, ip_share=0.3), raw=True), given)[3]
    found = np.array([[is_right is not False for is_right in checksums(frame[: HEADER_SIZE + 334])] for frame in payload])
    assert_share(np.count_nonzero(~found[:, 0]), 300, 0.3)
    assert_share(np.count_nonzero(~found[:, 1]), 300, 0.5)
    assert np.array_equal(payload[:, HEADER_SIZE : HEADER_SIZE + 334], given[3][:, HEADER_SIZE:])


def test_tags_are_put_behind_the_addresses():
    given = frames(10, 50)
    _, _, size, payload = passed(network(fault("vlan", vlan=42, priority=5), raw=True), given)
    assert set(size) == {HEADER_SIZE + 54}
    assert np.array_equal(payload[:, :12], given[3][:, :12])
    assert np.array_equal(payload[:, 16:], given[3][:, 12:])
    assert bytes(payload[0, 12:16]) == bytes.fromhex("8100a02a")


@pytest.mark.parametrize("is_tagged", [False, True])
@pytest.mark.parametrize("payload_size", [1206, 1472, 544])
def test_fragments_make_up_the_datagram_whatever_their_order(payload_size, is_tagged):
    faults = [fault("fragments", mtu_bytes=576, swapped_share=0.5)] + ([fault("vlan")] if is_tagged else [])
    given = frames(60, payload_size)
    time_ns, _, size, payload = passed(network(*faults, raw=True), given)
    ip, swapped = 18 if is_tagged else 14, 0
    for row, deadline_ns in enumerate(given[0]):
        parts = [frame[:length] for frame, length in zip(payload[time_ns == deadline_ns], size[time_ns == deadline_ns], strict=True)]
        assert len(parts) == -(-(payload_size + 8) // 552)
        flags = [int.from_bytes(part[ip + 6 : ip + 8], "big") for part in parts]
        offsets = [8 * (flag & 0x1FFF) for flag in flags]
        assert offsets in (sorted(offsets), sorted(offsets, reverse=True))
        swapped += offsets[0] > offsets[-1]
        assert len({bytes(part[ip + 4 : ip + 6]) for part in parts}) == 1
        if len(parts) > 1:
            assert sorted(flag & 0x2000 for flag in flags) == [0] + [0x2000] * (len(parts) - 1)
            assert all(sums(part[ip : ip + 20]) == 0 and len(part) - ip <= 576 for part in parts)
        whole = b"".join(bytes(part[ip + 20 :]) for _, part in sorted(zip(offsets, parts, strict=True), key=lambda each: each[0]))
        assert whole == bytes(given[3][row, 34:])
    assert (swapped > 10) == (payload_size > 544)


def test_sockets_that_write_no_headers_have_no_faults_of_headers():
    given = datagrams(100)
    found = passed(network(fault("vlan"), fault("bad_checksum", share=1.0), fault("fragments")), given)
    for one, other in zip((*found[:3], found[3][:, :16]), given, strict=True):
        assert np.array_equal(one, other)
