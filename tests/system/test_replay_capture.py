"""``hilsim.replay_capture``: a capture's packets arrive, with stamps that are now or as they were."""

import pytest

import hilsim
from tests.unit.api.rigs import room

pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def capture_file(tmp_path_factory):
    directory = tmp_path_factory.mktemp("recorded")
    hilsim.record(room(directory), directory / "a.pcap", duration_s=0.4)
    return directory / "a.pcap"


def test_a_capture_arrives_as_it_was_recorded(capture_file, receiver):
    found = receiver()  # its buffer holds all of it
    report = hilsim.replay_capture(capture_file, to=f"127.0.0.1:{found.port}", retime="none", interval_scale=0.5, flows=[">:2368"])
    recorded = [packet.payload for packet in hilsim.read_capture(capture_file) if packet.stream == "data"]
    assert (report.sent_packets, report.dropped_packets) == (len(recorded), 0)
    assert report.sent_bytes == sum(map(len, recorded))
    assert [payload for payload, _ in found.take(len(recorded))] == recorded


def test_stamps_are_now_by_default(capture_file, receiver):
    found = receiver()
    hilsim.replay_capture(capture_file, to=f"127.0.0.1:{found.port}", flows=[">:2368"], duration_s=0.1)
    recorded = next(packet.payload for packet in hilsim.read_capture(capture_file) if packet.stream == "data")
    ((payload, _),) = found.take(1)
    assert payload[:1200] == recorded[:1200]
    assert payload[1200:1204] != recorded[1200:1204]


def test_a_capture_that_is_not_there_is_a_capture_error(tmp_path):
    with pytest.raises(hilsim.CaptureError, match=r"nowhere\.pcap: must be a capture, got no such file"):
        hilsim.replay_capture(tmp_path / "nowhere.pcap")


def test_refusals_of_the_command_are_errors_with_its_message(capture_file):
    with pytest.raises(hilsim.HilsimError, match="interval_scale must be"):
        hilsim.replay_capture(capture_file, interval_scale=-1.0)


def test_a_replay_without_end_is_refused(capture_file):
    with pytest.raises(ValueError, match="loops must be 1 or more for a replay that returns, got 0"):
        hilsim.replay_capture(capture_file, loop="plain", loops=0)
