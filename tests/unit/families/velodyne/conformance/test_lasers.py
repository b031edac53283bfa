"""Lasers that are dead, stuck, dark or not in their place, and packets that are blank, in real captures and in hilsim's own stream."""

import numpy as np
import pytest

VLP16 = ["vlp16_strongest_gps.pcap", "vlp16_dual.pcap", "vlp16_strongest_1200rpm.pcap", "own"]
SPEAKING = [*VLP16, "hdl32e_strongest.pcap", "vlp32c_strongest_fov.pcap"]


def records(payloads):
    """The records as ``uint8[n, 12, 32, 3]``: a copy."""
    return payloads[:, :1200].reshape(-1, 12, 100)[:, :, 4:].reshape(-1, 12, 32, 3).copy()


def put(payloads, changed):
    payloads[:, :1200].reshape(-1, 12, 100)[:, :, 4:] = changed.reshape(-1, 12, 96)


def by_laser(name, laser):
    """Records of one laser in a block."""
    return [laser] if name.startswith(("hdl", "vlp32")) else [laser, laser + 16]


def has_return(changed):
    return changed[..., :2].any(axis=-1)


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("laser", [3, 8])
def test_a_dead_laser_among_others_is_a_warning(mutate, judge, name, laser):
    def silence(payloads):
        changed = records(payloads)
        changed[:, :, by_laser(name, laser), :2] = 0
        put(payloads, changed)

    verdict = judge(mutate(name, silence))
    assert (verdict.errors, "returns.dead_laser" in verdict.warnings) == (set(), True)
    assert verdict.first("returns.dead_laser").message.startswith(f"laser {laser} returned nothing in ")


def test_a_laser_that_only_sees_the_sky_is_not_dead(judge, single):
    assert "returns.dead_laser" not in judge(single).warnings


def test_a_covered_sensor_is_a_warning(mutate, judge):
    def cover(payloads):
        changed = records(payloads)
        changed[..., :2] = 0
        put(payloads, changed)

    assert "is the sensor covered?" in judge(mutate("own", cover)).first("returns.dead_laser").message


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("keeps_misses", [False, True])
def test_a_laser_that_always_measures_the_same_is_an_error(mutate, judge, name, keeps_misses):
    def stick(payloads):
        changed = records(payloads)
        places = by_laser(name, 7)
        part = changed[:, :, places]
        hits = has_return(part) if keeps_misses else np.ones(part.shape[:3], dtype=bool)
        part[hits] = (0x39, 0x11, 40)
        changed[:, :, places] = part
        put(payloads, changed)

    verdict = judge(mutate(name, stick))
    assert "returns.constant_laser" in verdict.errors
    assert verdict.first("returns.constant_laser").message.startswith("laser 7 must measure with noise")


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap"])
def test_a_laser_that_sticks_for_a_quarter_of_a_second_is_an_error(mutate, judge, name):
    def stick(payloads):
        changed = records(payloads)
        changed[40:230, :, by_laser(name, 5)] = (0x39, 0x11, 40)
        put(payloads, changed)

    assert "returns.constant_laser" in judge(mutate(name, stick)).errors


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize(("value", "is_error"), [(0, True), (255, False)])
def test_a_laser_of_one_reflectivity_is_reported(mutate, judge, name, value, is_error):
    def darken(payloads):
        changed = records(payloads)
        places = by_laser(name, 9)
        part = changed[:, :, places]
        part[..., 2] = np.where(has_return(part), value, part[..., 2])
        changed[:, :, places] = part
        put(payloads, changed)

    verdict = judge(mutate(name, darken))
    assert "returns.laser_reflectivity" in (verdict.errors if is_error else verdict.warnings)


def permute(order):
    def change(payloads):
        changed = records(payloads)
        lasers = len(order)
        shaped = changed.reshape(-1, 12, 32 // lasers, lasers, 3)[:, :, :, order]
        put(payloads, shaped.reshape(changed.shape))

    return change


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.extended) for seed in range(1, 4))])
def test_lasers_in_a_random_order_are_an_error(mutate, judge, name, seed):
    lasers = 32 if name.startswith(("hdl", "vlp32")) else 16
    order = np.random.default_rng(seed).permutation(lasers)
    assert "returns.laser_order" in judge(mutate(name, permute(order))).errors


@pytest.mark.parametrize("name", VLP16)
@pytest.mark.parametrize("order", [[*range(0, 16, 2), *range(1, 16, 2)], [(3 * laser) % 16 for laser in range(16)]], ids=["sorted", "strides"])
def test_lasers_in_another_order_are_an_error(mutate, judge, name, order):
    assert "returns.laser_order" in judge(mutate(name, permute(np.array(order)))).errors


@pytest.mark.parametrize("name", VLP16)
def test_lasers_in_an_order_that_changes_with_each_firing_are_an_error(mutate, judge, name):
    def shuffle(payloads):
        changed = records(payloads)
        firings = changed.reshape(-1, 16, 3)
        order = np.argsort(np.random.default_rng(1).random(firings.shape[:2]), axis=1)
        put(payloads, np.take_along_axis(firings, order[..., None], axis=1).reshape(changed.shape))

    assert "returns.laser_order" in judge(mutate(name, shuffle)).errors


@pytest.mark.parametrize("name", VLP16)
@pytest.mark.parametrize("is_upside_down", [False, True])
def test_the_manuals_order_is_no_error_whichever_way_the_sensor_hangs(mutate, judge, name, is_upside_down):
    order = np.array([15 - laser for laser in range(16)] if is_upside_down else range(16))
    assert "returns.laser_order" not in judge(mutate(name, permute(order))).errors


def busy_packet(payloads, packets=1, least=0.3):
    """The first of some packets whose neighbours' nearest blocks return."""
    share = has_return(records(payloads)).mean(axis=2)
    good = (share[: -packets - 1, -2:].min(axis=1) > least) & (share[packets + 1 :, :2].min(axis=1) > least)
    return int(np.flatnonzero(good)[5]) + 1


@pytest.mark.parametrize("name", SPEAKING)
@pytest.mark.parametrize("packets", [1, 3])
def test_a_blank_packet_amid_returns_is_a_warning(mutate, judge, name, packets):
    def blank(payloads):
        changed = records(payloads)
        at = busy_packet(payloads, packets)
        changed[at : at + packets, ..., :2] = 0
        put(payloads, changed)

    verdict = judge(mutate(name, blank))
    assert (verdict.errors, "returns.blank_packet" in verdict.warnings) == (set(), True)


@pytest.mark.parametrize("name", SPEAKING)
def test_a_packet_of_zeros_amid_returns_is_an_error(mutate, judge, name):
    def blank(payloads):
        changed = records(payloads)
        changed[busy_packet(payloads)] = 0
        put(payloads, changed)

    assert "returns.blank_packet" in judge(mutate(name, blank)).errors


@pytest.mark.parametrize("name", SPEAKING)
def test_a_packet_that_measures_what_the_one_before_did_is_an_error(mutate, judge, name):
    def copy(payloads):
        changed = records(payloads)
        at = busy_packet(payloads)
        changed[at + 1 : at + 4] = changed[at]
        put(payloads, changed)

    verdict = judge(mutate(name, copy))
    assert (verdict.errors, verdict.result.sensors[0].counts["returns.copied"]) == ({"returns.copied"}, 3)


@pytest.mark.parametrize("name", SPEAKING)
def test_a_laser_of_one_reflectivity_between_others_of_many_is_a_warning(mutate, judge, name):
    def paint(payloads):
        changed = records(payloads)
        part = changed[:, :, by_laser(name, 5)]
        part[..., 2] = np.where(has_return(part), 40, part[..., 2])
        changed[:, :, by_laser(name, 5)] = part
        put(payloads, changed)

    verdict = judge(mutate(name, paint))
    assert (verdict.errors, "returns.laser_reflectivity" in verdict.warnings) == (set(), True)


@pytest.mark.parametrize("name", SPEAKING)
def test_a_block_that_measures_what_the_one_before_did_is_an_error(mutate, judge, name):
    def copy(payloads):
        changed = records(payloads)
        pair = 2 if "dual" in name else 1
        at = busy_packet(payloads)
        at += int(has_return(changed[at : at + 40, 2 : 2 + pair]).sum(axis=(1, 2)).argmax())
        changed[at, 2 + pair : 2 + 2 * pair] = changed[at, 2 : 2 + pair]
        put(payloads, changed)

    verdict = judge(mutate(name, copy))
    assert (verdict.errors, verdict.result.sensors[0].counts["returns.copied"]) == ({"returns.copied"}, 1)
    block = 4 if "dual" in name else 3
    assert verdict.first("returns.copied").message.startswith(f"block {block} must be measured")
    assert verdict.first("returns.copied").place.byte_offset == 100 * block + 4


@pytest.mark.parametrize("name", SPEAKING)
def test_packets_that_measure_again_what_others_did_long_ago_are_an_error(mutate, judge, name):
    def freeze(payloads):
        changed = records(payloads)
        changed[150:180] = changed[50:80]
        put(payloads, changed)

    verdict = judge(mutate(name, freeze))
    assert (verdict.errors - {"returns.second_firing"}, verdict.result.sensors[0].counts["returns.copied"] > 20) == ({"returns.copied"}, True)
    assert "under other azimuths" in verdict.first("returns.copied").message


@pytest.mark.parametrize("name", ["vlp16_strongest_gps.pcap", "hdl32e_strongest.pcap", "own"])
@pytest.mark.parametrize(("bit", "is_set"), [(7, True), (6, False)])
def test_a_bit_of_the_distances_that_never_changes_is_an_error(mutate, judge, name, bit, is_set):
    def hold(payloads):
        changed = records(payloads)
        distance = changed[..., 0] + 256 * changed[..., 1].astype(np.int64)
        distance = np.where(distance == 0, 0, distance | 1 << bit if is_set else distance & ~(1 << bit))
        changed[..., 0], changed[..., 1] = distance & 0xFF, distance >> 8
        put(payloads, changed)

    verdict = judge(mutate(name, hold))
    assert "returns.grid" in verdict.errors
    assert f"got bit {bit} {'set' if is_set else 'clear'}" in verdict.first("returns.grid").message


def test_noise_floors_of_a_few_lasers_are_not_compared(mutate, judge):
    def fill(payloads):
        changed = records(payloads)
        missed = ~has_return(changed)
        changed[..., 2][missed] = 23
        for laser in range(16):
            if laser not in {1, 3, 12}:
                part = changed[:, :, by_laser("own", laser)]
                part[~has_return(part), :2] = (0x39, 0x11)
                changed[:, :, by_laser("own", laser)] = part
        put(payloads, changed)

    verdict = judge(mutate("own", fill))
    assert "returns.baseline" not in verdict.warnings
    assert "returns.baseline" in {skipped.rule for skipped in verdict.result.sensors[0].not_applied}


@pytest.mark.parametrize("name", SPEAKING)
def test_nothing_is_reported_the_lasers_of_a_sound_unit(datagrams_of, judge, name):
    told = {
        "returns.dead_laser",
        "returns.constant_laser",
        "returns.laser_reflectivity",
        "returns.laser_order",
        "returns.blank_packet",
        "returns.blank",
    }
    assert not told & {finding.rule for finding in judge(datagrams_of(name)).findings}
