"""The screen and the JSON of an inspection."""

import json

import pytest

from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.pcap import CaptureFile
from hilsim.read.analysis.inspection.inspector import inspect
from hilsim.read.analysis.inspection.lines import Tone
from hilsim.read.analysis.inspection.report import CaptureFacts, render_text, to_json
from tests.unit.families.velodyne.conformance.streams import vlp16

FACTS = CaptureFacts(file="some file.pcap", format="PCAP", size_bytes=1_234_567, frames=700, notes=())
CAPTURES = (
    "vlp16_strongest_gps.pcap",
    "vlp16_dual.pcap",
    "vlp16_strongest_1200rpm.pcap",
    "vlp32c_strongest_fov.pcap",
    "hdl32e_strongest.pcap",
    "cepton_hr80_two_sensors.pcap",
)


def data_packets(stream):
    return [entry for entry in stream.datagrams() if len(entry.payload) == 1206]


def screen(datagrams):
    return render_text(FACTS, inspect(datagrams))


def problems(lines):
    return [line.text.strip(" !") for line in lines if line.tone is Tone.PROBLEM]


def beats(payload, count):
    return [
        CapturedDatagram(
            host_stamp_ns=10**18 + number * 10**9,
            source="10.0.0.9",
            source_port=443,
            destination="255.255.255.255",
            destination_port=8808,
            payload=payload,
            link=None,
            is_ethernet=False,
            frame=number + 1,
        )
        for number in range(count)
    ]


@pytest.fixture(scope="module")
def packets():
    return data_packets(vlp16())


def test_a_faultless_stream_has_no_problem_and_a_command_to_replay_it(packets):
    lines = screen(packets)
    assert problems(lines) == []
    assert lines[-1] == ("replay it   hilsim replay 'some file.pcap' --to 127.0.0.1 --loop seamless", Tone.NEXT)
    assert any(line.text.startswith("192.168.1.201  VLP-16, strongest return, 600.") for line in lines)
    assert any("no packet missing" in line.text for line in lines)


def test_lost_packets_are_reported_with_the_frame_and_the_time(packets):
    kept = packets[:300] + packets[312:]
    (problem,) = problems(screen(kept))
    assert problem == f"12 packets missing after frame {kept[299].frame} (0.397 s)"


def test_a_gap_is_reported_with_its_length_and_place(packets):
    told = problems(screen(packets[:300] + packets[500:]))
    assert any(text.startswith("a gap of 0.267 s after frame ") for text in told)


def test_doctored_capture_times_change_the_pace_of_the_command(packets):
    ticking = [
        CapturedDatagram(
            host_stamp_ns=entry.host_stamp_ns // 1_000_000 * 1_000_000,
            source=entry.source,
            source_port=entry.source_port,
            destination=entry.destination,
            destination_port=entry.destination_port,
            payload=entry.payload,
            link=None,
            is_ethernet=False,
            frame=entry.frame,
        )
        for entry in packets
    ]
    lines = screen(ticking)
    assert problems(lines) == ["capture times are whole milliseconds: pace by the sensor's stamps (--pace device)"]
    assert "--pace device --loop seamless" in lines[-1].text


def test_a_format_that_is_not_public_is_looped_plainly_and_points_without_info_are_warned_of():
    lines = screen(beats(b"STDT" + bytes(1042), 60))
    assert lines[-1].text.endswith("--loop plain")
    assert problems(lines) == ["no INFO packet: Cepton's software passes points over until it has seen one"]
    assert any("not public: replayed byte for byte, paced by capture times" in line.text for line in lines)


def test_unknown_payloads_are_shown_by_size_and_first_bytes():
    lines = screen(beats(b"\x00\x01hello", 3))
    assert any(line.text.strip() == "payload   7 bytes, beginning 00 01 68 65 6c 6c 6f" for line in lines)
    assert any(line.text == "other traffic" for line in lines)


def test_many_other_flows_are_cut_short_on_the_screen_but_not_in_the_json():
    strangers = [entry for number in range(20) for entry in ported(beats(b"?", 2), 5000 + number)]
    lines = screen(strangers)
    assert any(line.text == "  and 24 packets of 12 more flows that were not recognised (see --json)" for line in lines)
    assert len(to_json(FACTS, inspect(strangers))["other_flows"]) == 20


def test_printable_payloads_are_shown_as_text():
    lines = screen(beats(b"M-SEARCH * HTTP/1.1", 2))
    assert any(line.text.strip() == 'payload   19 bytes, beginning "M-SEARCH * HTTP/"' for line in lines)


def test_other_traffic_of_a_sensor_does_not_bury_it(packets):
    strangers = [
        CapturedDatagram(
            host_stamp_ns=entry.host_stamp_ns,
            source="192.168.1.201",
            source_port=50_000 + number,
            destination="239.255.255.250",
            destination_port=1900,
            payload=b"?",
            link=None,
            is_ethernet=False,
            frame=entry.frame,
        )
        for number, entry in enumerate(packets[:30])
    ]
    text = [line.text for line in screen([*packets, *strangers]) if not line.text.startswith("  ground ")]
    assert len(text) <= 15
    assert "  and 27 packets of 27 more flows that were not recognised (see --json)" in text


def ported(datagrams, port):
    return [
        CapturedDatagram(
            host_stamp_ns=entry.host_stamp_ns,
            source=entry.source,
            source_port=port,
            destination=entry.destination,
            destination_port=entry.destination_port,
            payload=entry.payload,
            link=None,
            is_ethernet=False,
            frame=entry.frame,
        )
        for entry in datagrams
    ]


@pytest.mark.parametrize("stamp_ns", [0, 10**18, 9 * 10**18])
def test_any_capture_time_can_be_shown(stamp_ns):
    entry = ported(beats(b"x", 1), 1)[0]
    moved = CapturedDatagram(
        host_stamp_ns=stamp_ns,
        source=entry.source,
        source_port=1,
        destination=entry.destination,
        destination_port=2,
        payload=b"x",
        link=None,
        is_ethernet=False,
        frame=1,
    )
    assert screen([moved])[0].text.endswith("UTC")


@pytest.mark.parametrize("name", CAPTURES)
def test_json_of_every_capture_is_plain_and_knows_no_nan(any_capture, name):
    result = to_json(FACTS, inspect(CaptureFile(any_capture(name))))
    again = json.loads(json.dumps(result, allow_nan=False))
    assert again == result
    assert again["file"] == "some file.pcap"
    assert again["sensors"][0]["flows"][0]["kind"].split()[0] in {"Velodyne", "Cepton"}


@pytest.mark.parametrize("name", CAPTURES)
def test_the_screen_of_every_capture_fits(any_capture, name):
    lines = render_text(FACTS, inspect(CaptureFile(any_capture(name))))
    assert max(len(line.text) for line in lines) <= 112
    assert len(lines) <= 16
