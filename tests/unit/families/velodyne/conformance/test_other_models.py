"""Models beside the VLP-16's family: judged by what is known of them, or reported as not judged."""

from dataclasses import replace

import numpy as np
import pytest

VLS128 = "vls128_strongest.pcap"


def blocks_of(payloads):
    return payloads[:, :1200].reshape(-1, 12, 100)


@pytest.mark.usefixtures("real_units")
def test_a_real_vls128_has_no_errors_and_one_dead_laser(datagrams_of, judge):
    """The unit of the capture: its laser 82 has no return in 6,579 firings, where its neighbours have one in each."""
    verdict = judge(datagrams_of(VLS128))
    assert (verdict.errors, verdict.warnings) == (set(), {"returns.dead_laser"})
    assert verdict.first("returns.dead_laser").message.startswith("laser 82 returned nothing in 6579 firings")


@pytest.mark.usefixtures("real_units")
def test_the_figures_of_a_real_vls128_are_those_measured_by_hand(datagrams_of, judge):
    (sensor,) = judge(datagrams_of(VLS128)).result.sensors
    assert sensor.summary.model == "VLS-128"
    assert sensor.summary.rate_rpm == pytest.approx(600.0, abs=1.0)
    assert sensor.summary.cycle_us == pytest.approx(165.83, abs=0.01)


def half_a_turn(payloads):
    azimuth = blocks_of(payloads)[500:, :, 2:4]
    values = (azimuth.astype(np.int64) @ [1, 256] + 18_000) % 36_000
    blocks_of(payloads)[500:, :, 2:4] = np.stack((values & 0xFF, values >> 8), axis=-1)


def repeat_azimuths(payloads):
    blocks_of(payloads)[601:606, :, 2:4] = blocks_of(payloads)[600, :, 2:4]


def swap_banks(payloads):
    blocks_of(payloads)[:, [0, 1], :2] = blocks_of(payloads)[:, [1, 0], :2]


def slow_down(payloads):
    stamps = 55_000_000 + 1327 * np.arange(len(payloads))
    payloads[:, 1200:1204] = stamps.astype("<u4").view(np.uint8).reshape(-1, 4)


def stick(payloads):
    blocks_of(payloads)[:, 2::4, 4 + 3 * 9 : 6 + 3 * 9] = (0x39, 0x11)


def darken(payloads):
    blocks_of(payloads)[:, 2::4, 6 + 3 * 9] = 0


def round_distances(payloads):
    blocks_of(payloads)[:, :, 4::3] &= 0xFE


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (half_a_turn, "azimuth.motion"),
        (repeat_azimuths, "azimuth.motion"),
        (swap_banks, "data.flag"),
        (slow_down, "time.cycle"),
        (stick, "returns.constant_laser"),
        (darken, "returns.laser_reflectivity"),
        (round_distances, "returns.even"),
    ],
)
def test_a_spoiled_vls128_is_an_error(mutate, judge, change, rule):
    assert rule in judge(mutate(VLS128, change)).errors


@pytest.mark.usefixtures("real_units")
def test_a_vls128_that_loses_packets_has_no_errors(datagrams_of, judge):
    verdict = judge([datagram for number, datagram in enumerate(datagrams_of(VLS128)) if number % 10 and not 700 < number < 900])
    assert (verdict.errors, verdict.warnings) == (set(), {"time.lost", "returns.dead_laser"})


def name_product(product, mode=0x37):
    def change(data):
        data["product"], data["mode"] = product, mode

    return change


def test_an_hdl64e_of_the_first_generation_is_one_warning(judge, single, spoil):
    def change(data):
        data["blocks"]["flag"][:, 3::4] = 0xDDFF
        data["product"] = np.arange(len(data)) % 9 + 0x30

    verdict = judge(spoil(single, change))
    assert {(finding.rule, finding.severity) for finding in verdict.findings} == {("factory.product", "warning")}
    assert all(finding.message == "not checked further: an HDL-64E by its blocks' flags" for finding in verdict.findings)


@pytest.mark.parametrize(
    ("product", "mode", "name"),
    [
        (0x31, 0x37, "a Velarray"),
        (0x23, 0x37, "a VLP-32A/B"),
        (0x63, 0x37, "a VLS-128 (draft manual)"),
    ],
)
def test_a_named_model_outside_the_checker_is_one_warning(judge, single, spoil, product, mode, name):
    verdict = judge(spoil(single, name_product(product, mode)))
    (finding,) = verdict.findings
    assert (verdict.result.passed, finding.rule, finding.severity) == (True, "factory.product", "warning")
    assert finding.message.startswith("not checked further: ")
    assert name in finding.message


def test_an_hdl64e_whose_last_bytes_tell_its_state_is_one_warning(judge, single, spoil):
    def state(data):
        data["blocks"]["flag"][:, 1::2] = 0xDDFF
        data["mode"] = np.resize(np.frombuffer(b"HMSDNYGTFV", np.uint8), len(data))
        data["product"] = np.arange(len(data)) % 64

    verdict = judge(spoil(single, state))
    assert [finding.message for finding in verdict.findings] == ["not checked further: an HDL-64E by its blocks' flags"]


def test_foreign_position_areas_of_a_model_outside_the_checker_are_not_judged(judge, single, spoil):
    position = single.position.copy()
    position[:, 20] = 9
    stream = replace(spoil(single, name_product(0x31)), position=position)
    assert judge(stream).errors == set()


def test_an_unknown_product_is_an_error_and_checked_by_its_timing(judge, single, spoil):
    verdict = judge(spoil(single, name_product(0x99)))
    assert verdict.errors == {"factory.product"}
    assert "checked as a VLP-16" in verdict.first("factory.product").message
