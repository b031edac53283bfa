"""``hilsim background`` as a process: files, statistics, faults, live."""

import json
import socket
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest

from tests.unit.background.recordings import vlp16_payloads, write_capture

pytestmark = pytest.mark.system


def background(*arguments, cwd=None):
    command = [sys.executable, "-m", "hilsim", "background", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=180, check=False, cwd=cwd)


@pytest.fixture(scope="module")
def captures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captures")
    paths = []
    for number in range(2):
        payloads = vlp16_payloads(
            160, distance=lambda azimuth, laser, packet, number=number: 4000 + azimuth // 20 + 8 * laser + (packet + number) % 2
        )
        paths.append(write_capture(folder / f"{number}.pcap", payloads))
    return paths


def test_a_map_and_a_rig_are_written_and_told_of(captures, tmp_path):
    result = background(*captures, "-o", tmp_path / "hall", "--height-m", "1.8", "--pitch-deg", "5")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "VLP-16 192.168.1.201: 2 capture(s), 320 packets, 122,880 returns"
    assert lines[1] == "covered 28,800 of 28,800 cells (100.0%), 16 rows x 1800 columns"
    assert lines[-1] == f"next: hilsim run {tmp_path / 'hall.toml'}"
    rig = tomllib.loads((tmp_path / "hall.toml").read_text())
    assert rig["scene"]["background"] == [{"file": "hall.npz"}]
    without = background(captures[0], "-o", tmp_path / "nowhere")
    assert without.returncode == 0, without.stderr
    assert tomllib.loads((tmp_path / "nowhere.toml").read_text())["scene"]["background"] == [{"file": "nowhere.npz", "height_m": 0.0}]
    assert rig["carrier"] == {"kind": "background"}
    assert (rig["sensor"][0]["profile"], rig["sensor"][0]["rotation_rate_rpm"]) == ("vlp16", 600)
    with np.load(tmp_path / "hall.npz") as archive:
        assert archive["distance_mm"].shape == (16, 1800)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_files_are_replaced_only_when_asked(captures, tmp_path):
    (tmp_path / "hall.npz").write_bytes(b"precious")
    refused = background(captures[0], "-o", tmp_path / "hall")
    assert refused.returncode == 1
    assert f"{tmp_path / 'hall.npz'}: must not exist yet; replace with --force" in refused.stderr
    assert (tmp_path / "hall.npz").read_bytes() == b"precious"
    assert background(captures[0], "-o", tmp_path / "hall", "--force").returncode == 0
    assert (tmp_path / "hall.npz").read_bytes()[:2] == b"PK"


def test_a_fault_leaves_nothing_behind(captures, tmp_path):
    hdl = write_capture(tmp_path / "hdl.pcap", vlp16_payloads(60, product=0x28))
    result = background(captures[0], hdl, "-o", tmp_path / "hall", "--workers", "1")
    assert result.returncode == 1
    assert "must be of a VLP-16, as the captures before, got 192.168.1.201 (VLP-32C)" in result.stderr
    assert "Traceback" not in result.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["hdl.pcap"]


def test_a_model_without_a_profile_has_no_rig(tmp_path):
    hdl = write_capture(tmp_path / "hdl.pcap", vlp16_payloads(400, product=0x28, step_cdeg=20))
    result = background(hdl, "-o", tmp_path / "hall")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == "no rig: hilsim has no profile of a VLP-32C; name the map in one of your own"
    assert not (tmp_path / "hall.toml").exists()


def test_json_holds_the_statistics(captures, tmp_path):
    result = background(captures[0], "-o", tmp_path / "hall", "--json", "--surface", "max", "--columns", "900")
    told = json.loads(result.stdout)
    assert (told["model"], told["columns"], told["covered"], told["returns"]) == ("VLP-16", 900, 14_400, 61_440)
    assert told["files"] == [str(tmp_path / f"hall{suffix}") for suffix in (".npz", ".bmp", "-grey.png", ".ply", ".toml")]
    assert len(told["captures"][0]["sha256"]) == 64


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "give either captures or --listen HOST:PORT"),
        (["{0}", "--listen", "127.0.0.1:2368"], "give either captures or --listen HOST:PORT"),
        (["{0}", "--height-m", "2", "--position-m", "0", "0", "0"], "give either --height-m and --pitch-deg, or --position-m and --rotation-deg"),
        (["{0}", "{0}"], "each capture must be given once"),
        (["{0}", "--rows", "20"], "rows must be left to a sensor that turns"),
        (["--listen", "127.0.0.1:2368", "--poses", "x.csv"], "--poses, --start-s, --duration-s and --cluster are for captures"),
    ],
)
def test_what_makes_no_sense_is_exit_code_2(captures, tmp_path, arguments, said):
    result = background(*(text.format(captures[0]) for text in arguments), "-o", tmp_path / "hall")
    assert result.returncode == 2, result.stdout
    assert said in " ".join(result.stderr.split())


def test_a_live_stream_becomes_a_map(captures, tmp_path):
    del captures
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "hilsim", "background", "--listen", f"127.0.0.1:{port}", "--seconds", "4", "-o", str(tmp_path / "live")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    payloads = vlp16_payloads(75)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        while process.poll() is None:
            for payload in payloads:
                sender.sendto(payload, ("127.0.0.1", port))
                time.sleep(0.001)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 0, err
    assert "covered 28,800 of 28,800 cells (100.0%)" in out
    assert (tmp_path / "live.npz").is_file()
