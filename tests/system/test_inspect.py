"""``hilsim inspect`` as a process: screen, JSON, exit codes, and captures that hold nothing of use."""

import gzip
import json
import os
import threading

import pytest

from hilsim.capture.pcap import PcapWriter
from tests import commands
from tests.unit.capture.frames_by_hand import classic, interface, section, udp_frame
from tests.unit.families.velodyne.conformance.streams import vlp16

pytestmark = pytest.mark.system

ARP = bytes.fromhex("ffffffffffff 607688102f6f 0806") + bytes(28)
IPV6 = bytes.fromhex("ffffffffffff 607688102f6f 86dd") + bytes(40)


def inspect(*arguments):
    return commands.run("inspect", *arguments)


@pytest.fixture(scope="module")
def lossy(tmp_path_factory):
    """A capture of a VLP-16 that lost twelve packets."""
    path = tmp_path_factory.mktemp("captures") / "lossy.pcap"
    datagrams = vlp16().datagrams()
    data = [entry for entry in datagrams if len(entry.payload) == 1206][300:312]
    with PcapWriter(path) as writer:
        for entry in datagrams:
            if entry not in data:
                writer.write(entry.host_stamp_ns, entry.link + entry.payload)
    return path


def test_the_screen_names_sensor_loss_and_the_next_command(lossy):
    result = inspect(lossy)
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"{lossy}  PCAP, ")
    assert any(line.startswith("192.168.1.201  VLP-16, strongest return, 600.") for line in lines)
    assert "! 12 packets missing after frame" in result.stdout
    assert lines[-1] == f"replay it   hilsim replay {lossy} --to 127.0.0.1 --loop seamless"


def test_json_is_a_list_with_an_object_a_capture(lossy):
    (found,) = json.loads(inspect(lossy, "--json").stdout)
    (sensor,) = found["sensors"]
    assert (found["format"], found["frames"], found["datagrams"]) == ("PCAP", found["datagrams"], found["frames"])
    assert found["size_bytes"] == lossy.stat().st_size
    assert sensor["source"] == "192.168.1.201"
    assert sensor["flows"][0]["details"]["missing"]["packets"] == 12
    assert len(json.loads(inspect(lossy, lossy, "--json").stdout)) == 2


def test_notes_of_the_reader_go_to_the_other_stream(lossy, tmp_path):
    cut = tmp_path / "cut.pcap"
    cut.write_bytes(lossy.read_bytes()[:-100])
    result = inspect(cut)
    assert result.returncode == 0
    assert "note: the file breaks off after frame" in result.stderr
    assert "192.168.1.201  VLP-16" in result.stdout


def test_a_capture_without_udp_says_what_it_holds(tmp_path):
    path = tmp_path / "other.pcap"
    tcp = udp_frame(b"segment", protocol=6)
    path.write_bytes(classic([(0, n, frame) for n, frame in enumerate([tcp] * 10 + [IPV6] * 2 + [ARP])]))
    result = inspect(path)
    assert result.returncode == 1
    assert result.stdout == ""
    assert f"error: {path}: no UDP datagrams among 13 frames: " in result.stderr
    for part in ("10 not UDP", "2 IPv6", "1 not IPv4"):
        assert part in result.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"this is no capture", "is text beginning"),
        (classic([]), "no UDP datagrams: it holds no frames"),
        (section() + interface(), "no UDP datagrams: it holds no frames"),
    ],
)
def test_a_file_with_nothing_in_it_is_a_clear_error(tmp_path, content, said):
    path = tmp_path / "nothing.pcap"
    path.write_bytes(content)
    result = inspect(path)
    assert result.returncode == 1
    assert str(path) in result.stderr
    assert said in result.stderr
    assert "Traceback" not in result.stderr


def test_a_missing_file_or_a_folder_is_a_clear_error(tmp_path):
    for path in (tmp_path / "absent.pcap", tmp_path):
        result = inspect(path)
        assert result.returncode == 1
        assert f"error: {path}: cannot be opened: " in result.stderr


def test_one_bad_capture_does_not_hide_the_others(lossy, tmp_path):
    result = inspect(tmp_path / "absent.pcap", lossy, "--json")
    assert result.returncode == 1
    assert [found["file"] for found in json.loads(result.stdout)] == [str(lossy)]
    assert "absent.pcap: cannot be opened" in result.stderr


def test_a_compressed_capture_is_read_and_called_so(lossy, tmp_path):
    path = tmp_path / "lossy.pcap.gz"
    path.write_bytes(gzip.compress(lossy.read_bytes(), 1))
    (packed,), (plain,) = (json.loads(inspect(name, "--json").stdout) for name in (path, lossy))
    assert (packed["format"], packed["size_bytes"]) == ("gzip", path.stat().st_size)
    assert packed["sensors"] == plain["sensors"]


def test_without_a_capture_the_command_is_not_understood():
    assert inspect().returncode == 2


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_read_to_its_end(lossy, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    render_thread = threading.Thread(target=lambda: pipe.write_bytes(lossy.read_bytes()))
    render_thread.start()
    result = inspect(pipe, "--json")
    render_thread.join()
    assert result.returncode == 0, result.stderr
    (found,) = json.loads(result.stdout)
    assert (found["format"], found["size_bytes"]) == ("pipe", 0)
    assert found["datagrams"] > 700


def test_both_cepton_sensors_are_on_the_screen(capture):
    result = inspect(capture("cepton_hr80_two_sensors.pcap"))
    assert result.returncode == 0
    assert "192.168.32.87  Cepton" in result.stdout
    assert "192.168.48.101  Cepton" in result.stdout
    assert "not public" in result.stdout
    assert result.stdout.rstrip().endswith("--loop plain")
