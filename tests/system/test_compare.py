"""``hilsim compare`` as a process: table, JSON, picture, limits and faults."""

import json
from dataclasses import replace

import pytest

from hilsim.capture.pcap import PcapWriter
from tests import commands
from tests.unit.families.velodyne.conformance.streams import vlp16

pytestmark = pytest.mark.system


def compare(*arguments):
    return commands.run("compare", *arguments)


def write(path, datagrams):
    with PcapWriter(path) as writer:
        for entry in datagrams:
            writer.write(entry.host_stamp_ns, entry.link + entry.payload)
    return path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    return {
        "a": write(folder / "a.pcap", vlp16(400).datagrams()),
        "b": write(folder / "b.pcap", vlp16(400, seed=2).datagrams()),
        "ramp": write(folder / "ramp.pcap", vlp16(400, noise=0.0).datagrams()),
    }


def test_the_table_ends_with_the_verdict_and_exits_with_0_whatever_it_is(files):
    result = compare(files["a"], files["ramp"])
    assert result.returncode == 0, result.stderr
    assert result.stderr == ""
    lines = result.stdout.splitlines()
    assert lines[0].startswith(f"A  {files['a']}  192.168.1.201  VLP-16, strongest, 400 packets in 0.5")
    assert lines[-1].startswith("differ: azimuth.sd, azimuth.autocorrelation, azimuth.")
    (row,) = [line for line in lines if line.startswith("  total_variation") and "40:" in line]
    assert row.split()[-3:] == ["TV", "differs", "0.1"]


def test_a_limit_that_is_not_kept_is_exit_code_1(files):
    kept = compare(files["a"], files["b"], "--max", "azimuth.total_variation=0.04", "--max", "stamps.cycle=2")
    assert kept.returncode == 0
    assert "kept: stamps.cycle must be at most 2, got" in kept.stdout
    broken = compare(files["a"], files["ramp"], "--max", "azimuth.total_variation=0.04")
    assert broken.returncode == 1
    assert "FAILED: azimuth.total_variation must be at most 0.04, got" in broken.stdout
    assert broken.stderr == ""


@pytest.mark.parametrize("limit", ["azimuth.speed=1", "stamps.cycle", "stamps.cycle=much", "stamps.cycle=-1", "stamps.cycle=nan"])
def test_a_limit_that_makes_no_sense_is_exit_code_2(files, limit):
    result = compare(files["a"], files["b"], "--max", limit)
    assert result.returncode == 2
    assert "stamps.cycle" in result.stderr


def test_json_and_picture_come_together(files, tmp_path):
    picture = tmp_path / "both.png"
    result = compare(files["a"], files["b"], "--json", "-o", picture, "--max", "stamps.residual_sd=0.01")
    assert result.returncode == 0, result.stderr
    told = json.loads(result.stdout)
    assert told["passed"] is True
    assert told["a"]["file"] == str(files["a"])
    assert told["limits"][0]["name"] == "stamps.residual_sd"
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_files_that_cannot_be_used_are_exit_code_1(files, tmp_path):
    text = tmp_path / "text.pcap"
    text.write_text("no capture")
    position = write(tmp_path / "position.pcap", [entry for entry in vlp16(100).datagrams() if len(entry.payload) == 512])
    for path, said in (
        (tmp_path / "absent.pcap", "cannot be opened"),
        (text, "text.pcap"),
        (position, "must hold at least 50 Velodyne data packets of one sensor and mode, got 0"),
    ):
        result = compare(files["a"], path)
        assert result.returncode == 1
        assert said in result.stderr
        assert "Traceback" not in result.stderr


def test_a_picture_that_could_not_be_written_is_refused_before_anything_is_read(files, tmp_path):
    unwritable = compare(files["a"], files["b"], "-o", tmp_path / "absent" / "x.png")
    assert unwritable.returncode == 2
    assert "must be in an existing directory" in unwritable.stderr


def test_one_of_several_sensors_is_chosen(files, tmp_path):
    other = [replace(entry, link=entry.link.replace(bytes((192, 168, 1, 201)), bytes((192, 168, 1, 99)))) for entry in vlp16(200).datagrams()]
    both = write(tmp_path / "both.pcap", [*vlp16(100).datagrams(), *other])
    undecided = compare(files["a"], both)
    assert undecided.returncode == 1
    assert "one sensor must be chosen, got 192.168.1.201 (100 packets), 192.168.1.99 (200 packets)" in undecided.stderr
    chosen = compare(files["a"], both, "--sensor-b", "192.168.1.99")
    assert chosen.returncode == 0
    assert "192.168.1.99  VLP-16, strongest, 200 packets" in chosen.stdout


def test_two_captures_are_needed(files):
    result = compare(files["a"])
    assert result.returncode == 2
    assert "Missing argument 'B'" in result.stderr


def test_real_captures_of_two_units_are_alike(capture):
    result = compare(capture("vlp16_strongest_gps.pcap"), capture("vlp16_dual.pcap"), "--max", "azimuth.total_variation=0.038")
    assert result.returncode == 0, result.stdout
    assert "0 differ" in result.stdout
