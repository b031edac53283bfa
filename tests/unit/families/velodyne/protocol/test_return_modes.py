"""What a return mode is, and what every tool makes of a stream whose mode is dual with confidence (0x3B)."""

import json
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner
from numba import config

from hilsim.capture.pcap import CaptureFile
from hilsim.cli import cli
from hilsim.families.velodyne.protocol.data import RETURNS_BY_MODE_BYTE, Return, ReturnMode
from hilsim.read.analysis.conformance.checker import check
from hilsim.read.analysis.conformance.findings import Severity
from hilsim.read.analysis.conformance.report import render_text
from hilsim.sensor.setup import ReturnModeName
from tests.unit.background.recordings import write_capture
from tests.unit.families.velodyne.conformance.own_stream import emulate

SPAN_NS = 500_000_000
CYCLE_NS = 663_552
MODE_AT = 1204


def test_every_mode_says_its_byte_words_and_order():
    facts = {mode.value: (mode.words, mode.order, mode.is_dual, mode.returns) for mode in ReturnMode}
    pair = (Return.LAST, Return.STRONGEST)
    assert facts == {
        0x37: ("strongest", (Return.STRONGEST,), False, 1),
        0x38: ("last", (Return.LAST,), False, 1),
        0x39: ("dual", pair, True, 2),
        0x3B: ("dual with confidence", pair, True, 2),
    }


def test_a_byte_that_names_no_mode_has_one_return():
    assert ReturnMode.find(0x3A) is None
    assert np.flatnonzero(RETURNS_BY_MODE_BYTE != 1).tolist() == [0x39, 0x3B]


def test_the_modes_of_a_rig_are_those_that_can_be_emulated():
    assert set(get_args(ReturnModeName)) == {mode.name.lower() for mode in ReturnMode if mode.is_emulated}
    assert ReturnMode.named("dual") is ReturnMode.DUAL


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    """Paths of hilsim's own dual stream: as it is, and with the mode's byte set to dual with confidence."""
    if config.DISABLE_JIT:
        pytest.skip("too slow with kernels as plain Python")
    directory = tmp_path_factory.mktemp("modes")
    payloads = [datagram.payload for datagram in emulate(SPAN_NS, return_mode="dual") if len(datagram.payload) == 1206]
    confident = [payload[:MODE_AT] + bytes([ReturnMode.DUAL_CONFIDENCE]) + payload[MODE_AT + 1 :] for payload in payloads]
    return [write_capture(directory / f"{name}.pcap", stream, step_ns=CYCLE_NS) for name, stream in (("dual", payloads), ("confident", confident))]


def output_of(*arguments, exit_code=0):
    result = CliRunner().invoke(cli, [str(argument) for argument in arguments], catch_exceptions=False)
    assert result.exit_code == exit_code, result.output
    return result.stdout


def test_inspect_names_both_modes_with_one_cycle(captures):
    dual, confident = (output_of("inspect", path) for path in captures)
    assert "VLP-16, dual returns, 600" in dual
    assert "VLP-16, dual with confidence returns, 600" in confident
    assert confident.replace("dual with confidence", "dual").replace("confident.pcap", "dual.pcap") == dual


def test_verify_checks_the_pairs_of_both_and_warns_of_the_undocumented_mode(captures):
    dual, confident = (check(replace(datagram, link=None) for datagram in CaptureFile(path)).sensors[0] for path in captures)
    assert confident.summary.is_dual
    assert repr(replace(confident.summary, return_mode=0x39)) == repr(dual.summary)  # repr, because figures that are not known are nan
    assert dual.findings == ()
    assert [(finding.rule, finding.severity, finding.message) for finding in confident.findings] == [
        ("factory.mode", Severity.WARNING, "return mode 0x3b (dual with confidence) is known of newer firmware only; checked as dual")
    ]
    assert any(line.startswith("  sensor    VLP-16 (dual with confidence, 0x3b 0x22)") for line in render_text(check(CaptureFile(captures[1]))))


def test_compare_takes_both_for_pairs_of_returns(captures):
    told = json.loads(output_of("compare", *captures, "--json"))
    assert [told[letter]["return_mode"] for letter in "ab"] == [0x39, 0x3B]
    assert {row["name"]: row["distance"] for row in told["statistics"] if row["name"].startswith("dual.")}["dual.identical"] == 0.0


def test_picture_draws_each_firing_of_both_once(captures, tmp_path):
    dual, confident = (output_of("picture", path, "-o", tmp_path / "scan.png") for path in captures)
    assert confident == dual
    assert "VLP-16, 28," in dual  # 1808 firing sequences of 16 a turn at 600 rpm


def test_background_counts_each_firing_of_both_once(captures, tmp_path):
    dual, confident = (json.loads(output_of("background", path, "-o", tmp_path / path.stem, "--json")) for path in captures)
    assert sum(dual[key] for key in ("returns", "empty", "outside")) == dual["packets"] * 6 * 32
    assert {key: confident[key] for key in ("packets", "returns", "empty")} == {key: dual[key] for key in ("packets", "returns", "empty")}
