"""``hilsim background`` as a process: files, statistics, faults, live."""

import json
import re
import socket
import subprocess
import sys
import time
import tomllib

import numpy as np
import pytest
from PIL import Image
from pyarrow import parquet

from hilsim.capture.pcap import CaptureFile
from hilsim.config.profiles import profiles_directory
from hilsim.families.velodyne.protocol.data import DATA_PACKET_DTYPE, DATA_PACKET_SIZE
from hilsim.read.background.files.archive import read_archive
from hilsim.world.geometry.overlay_frames import ground_only_pose
from tests import commands
from tests.unit.background.recordings import stdv_payload, vlp16_payloads, write_capture
from tests.walls import wall_rig

pytestmark = pytest.mark.system


def hilsim(*arguments, cwd=None, **environment):
    return commands.run(*arguments, cwd=cwd, environment=environment)


def background(*arguments, cwd=None):
    return hilsim("background", *arguments, cwd=cwd)


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


def test_a_map_and_a_rig_are_written_and_reported(captures, tmp_path):
    result = background(*captures, "-o", tmp_path / "hall", "--height-m", "1.8", "--pitch-deg", "5")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "VLP-16 192.168.1.201: 2 capture(s), 320 packets, 122,880 returns"
    assert lines[1] == "covered 28,800 of 28,800 cells (100.0%), 16 rows x 1800 columns"
    assert lines[-1] == f"next: hilsim run {tmp_path / 'hall.toml'}"
    rig = tomllib.loads((tmp_path / "hall.toml").read_text())
    assert read_archive(tmp_path / "hall.npz").pose == ground_only_pose(1.8, 5.0)
    assert rig["scene"]["background"] == [{"file": "hall.npz"}]
    without = background(captures[0], "-o", tmp_path / "nowhere")
    assert without.returncode == 0, without.stderr
    assert tomllib.loads((tmp_path / "nowhere.toml").read_text())["scene"]["background"] == [{"file": "nowhere.npz", "height_m": 0.0}]
    assert rig["platform"] == {"kind": "background"}
    assert (rig["sensor"][0]["profile"], rig["sensor"][0]["rotation_rate_rpm"]) == ("vlp16", 600)
    with np.load(tmp_path / "hall.npz") as archive:
        assert archive["distance_mm"].shape == (16, 1800)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.extended
def test_the_first_start_reports_why_it_waits(cepton_capture, tmp_path):
    """Kernels that are compiled take seconds in which nothing else could be printed."""
    told = [
        hilsim("background", cepton_capture, "-o", tmp_path / "hall", "--force", NUMBA_CACHE_DIR=str(tmp_path / "cache")).stderr for _ in range(2)
    ]
    assert told[0].startswith("compiling kernels, which takes up to half a minute the first time ...\n")
    assert "compiling" not in told[1]


def test_the_grey_picture_can_be_a_bmp_of_8_bits_with_the_same_values(captures, tmp_path):
    for kind in ("png", "bmp"):
        result = background(captures[0], "-o", tmp_path / kind, "--grey", kind)
        assert result.returncode == 0, result.stderr
        assert f"wrote {tmp_path / kind}-grey.{kind}" in result.stdout.splitlines()
    assert not (tmp_path / "bmp-grey.png").exists()
    assert int.from_bytes((tmp_path / "bmp-grey.bmp").read_bytes()[28:30], "little") == 8  # BITMAPINFOHEADER, bits a pixel
    with Image.open(tmp_path / "png-grey.png") as png, Image.open(tmp_path / "bmp-grey.bmp") as bmp:
        assert np.array_equal(np.asarray(png), np.asarray(bmp))
    refused = background(captures[0], "-o", tmp_path / "bmp", "--grey", "bmp")
    assert refused.returncode == 1
    assert f"{tmp_path / 'bmp-grey.bmp'}" in refused.stderr


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


def test_each_model_of_which_maps_are_made_has_a_rig(tmp_path):
    capture = write_capture(tmp_path / "vlp32c.pcap", vlp16_payloads(400, product=0x28, step_cdeg=20))
    result = background(capture, "-o", tmp_path / "hall")
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == f"next: hilsim run {tmp_path / 'hall.toml'}"
    assert 'profile = "vlp32c"' in (tmp_path / "hall.toml").read_text()


@pytest.fixture(scope="module")
def cepton_capture(tmp_path_factory):
    points = [(x * 10, 2000, z * 10, 40, 4, 0) for x in range(-60, 61) for z in range(-30, 31)]
    payloads = [stdv_payload(points[start : start + 144]) for start in range(0, len(points), 144)] * 6
    return write_capture(tmp_path_factory.mktemp("cepton") / "cepton.pcap", payloads)


@pytest.mark.extended
def test_points_have_a_rig_where_a_person_says_what_sensor_sent_them(cepton_capture, tmp_path):
    without = background(cepton_capture, "-o", tmp_path / "unnamed")
    assert without.returncode == 0, without.stderr
    assert without.stdout.splitlines()[-1].startswith("no rig: the packets do not name their sensor; give --profile")
    mine, rigs = tmp_path / "profiles" / "mine.toml", tmp_path / "rigs"
    mine.parent.mkdir()
    rigs.mkdir()
    mine.write_text((profiles_directory() / "sensors" / "hr80w-like.toml").read_text())
    for name, profile, told in (("shipped", "hr80w-like", "hr80w-like"), ("own", "profiles/mine.toml", "../profiles/mine.toml")):
        made = background(cepton_capture, "-o", rigs / name, "--profile", profile, "--height-m", "2", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        assert made.stdout.splitlines()[-1] == f"next: hilsim run {rigs / name}.toml"
        assert tomllib.loads((rigs / f"{name}.toml").read_text())["sensor"][0]["profile"] == told
        checked = hilsim("check", rigs / f"{name}.toml")
        assert checked.returncode == 0, checked.stderr


def test_a_profile_that_cannot_be_the_sensors_is_a_fault(cepton_capture, captures, tmp_path):
    for capture, profile, said in (
        (cepton_capture, "vlp16", '--profile must be of family "cepton"'),
        (captures[0], "hr80w-like", "--profile must be of the packets' model"),
        (captures[0], "nonsense", "profile must be a path ending in .toml or one of the shipped ones"),
    ):
        result = background(capture, "-o", tmp_path / "hall", "--profile", profile)
        assert (result.returncode, said in result.stderr) == (1, True), result.stderr
    assert not list(tmp_path.iterdir())


@pytest.mark.extended
def test_a_captured_place_with_a_box_in_it_is_recorded(captures, tmp_path):
    """Capture to map to rig to packets: where the box is, its face; where it is not, what was captured."""
    assert background(*captures, "-o", tmp_path / "hall", "--height-m", "1.8").returncode == 0
    rig = tmp_path / "hall.toml"
    quiet = "sub_rays = 1\noverride = { range_noise_m = 0.0, signal = {} }\n"
    rig.write_text(rig.read_text().replace("rotation_rate_rpm", f"{quiet}rotation_rate_rpm", 1))
    empty = hilsim("record", rig, "-o", tmp_path / "empty.pcap", "--duration-s", "0.2")
    assert empty.returncode == 0, empty.stderr
    box = '\n[[scene.box]]\nname = "car"\nposition_m = [0.0, 6.0, 1.8]\nsize_m = [2.0, 2.0, 2.0]\n'
    hidden = '\n[[scene.box]]\nname = "hidden"\nposition_m = [40.0, 0.0, 1.8]\nsize_m = [2.0, 2.0, 2.0]\n'
    rig.write_text(rig.read_text() + box + hidden)
    truth = tmp_path / "car.parquet"
    with_car = hilsim("record", rig, "-o", tmp_path / "car.pcap", "--truth", truth, "--duration-s", "0.2")
    assert with_car.returncode == 0, with_car.stderr
    before, after = (_blocks(tmp_path / f"{name}.pcap") for name in ("empty", "car"))
    ahead_cdeg = (after["azimuth"].astype(int) + 18_000) % 36_000 - 18_000
    before, after = before["channels"], after["channels"]
    is_changed = before["distance"] != after["distance"]
    assert abs(ahead_cdeg[is_changed.any(axis=-1)]).max() < 1180  # atan(1 m / 5 m), and a block's turn
    assert 0.01 < is_changed.mean() < 0.1
    assert (after["distance"][is_changed] < before["distance"][is_changed]).all()
    assert after["distance"][is_changed].min() == pytest.approx(5.0 / 0.002, abs=15)
    rows = parquet.read_table(truth)
    assert set(rows["object_id"].to_pylist()) == {0, 888_888, 999_999}  # the car, nothing else in the way, a box behind the wall


def _blocks(path):
    payloads = [datagram.payload for datagram in CaptureFile(path).datagrams() if len(datagram.payload) == DATA_PACKET_SIZE]
    return np.frombuffer(b"".join(payloads), DATA_PACKET_DTYPE)["blocks"]


@pytest.fixture(scope="module")
def wall(tmp_path_factory):
    """A folder with a wall recorded twice with the sensor's own noise, maps of the first recording by both rules, and a wall elsewhere."""
    folder = tmp_path_factory.mktemp("wall")
    for name, text in (("wall", wall_rig()), ("later", wall_rig()), ("other", wall_rig(wall_m=17.0))):
        seed = f"seed = {len(name)}\n"
        (folder / f"{name}.toml").write_text(seed + text)
        recorded = hilsim("record", folder / f"{name}.toml", "-o", folder / f"{name}.pcap", "--duration-s", "2")
        assert recorded.returncode == 0, recorded.stderr
    for rule in ("mean", "farthest"):
        made = background(folder / "wall.pcap", "-o", folder / rule, "--distance", rule, "--position-m", "0", "0", "0")
        assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.extended
def test_a_rig_that_shows_its_place_passes_the_check_with_figures(wall):
    for file in ("mean.toml", "mean.npz"):
        result = background(wall / "later.pcap", "--check", wall / file)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stdout.splitlines()[-1] == "passed"
    told = json.loads(background(wall / "later.pcap", "--check", wall / "mean.toml", "--json").stdout)
    assert (told["judged"], told["passed"], told["faults"]) == (True, True, [])
    assert abs(told["bias_mm"]) < 3.0
    assert told["spread_mm"] < 10.0
    assert told["one_surface"] > 5000
    assert min(told["coverage_ratio"], told["agreement_ratio"]) > 0.99


def test_a_rig_that_shows_another_place_or_one_behind_it_fails_the_check(wall):
    behind = background(wall / "wall.pcap", "--check", wall / "farthest.toml")
    assert behind.returncode == 1
    assert re.search(r"bias must be at most 5 mm, got \+[1-9]\d\.\d mm\nFAILED\n$", behind.stdout), behind.stdout
    elsewhere = background(wall / "other.pcap", "--check", wall / "mean.toml")
    assert elsewhere.returncode == 1
    assert "agreement must be at least 80%, got" in elsewhere.stdout


def test_a_check_of_too_little_is_not_passed(wall):
    result = background(wall / "wall.pcap", "--duration-s", "0.02", "--check", wall / "mean.npz")
    assert result.returncode == 1
    assert result.stdout.splitlines()[-1] == "NOT JUDGED"
    assert "too short to judge: at least 200 cells must hold 3 returns of one surface, got 0" in result.stdout
    told = json.loads(background(wall / "wall.pcap", "--duration-s", "0.02", "--check", wall / "mean.npz", "--json").stdout)
    assert (told["judged"], told["passed"], told["bias_mm"]) == (False, False, None)


def test_a_check_against_another_sensor_is_refused(wall, tmp_path):
    hdl = write_capture(tmp_path / "hdl.pcap", vlp16_payloads(400, product=0x28, step_cdeg=20))
    result = background(hdl, "--check", wall / "mean.npz")
    assert result.returncode == 1
    assert "the map must be of the captures' sensor and cells, got a map of a VLP-16" in result.stderr


def test_too_short_captures_are_reported_and_sparse_maps_cause_a_warning(tmp_path):
    short = write_capture(tmp_path / "short.pcap", vlp16_payloads(3))
    result = background(short, "-o", tmp_path / "hall", "--min-hits", "1")
    assert result.returncode == 0, result.stderr
    assert "stood still: not checked: too short (0 cells have returns in both the first and the last third, 200 are needed)" in result.stdout
    assert "warning: the map covers only 1,152 of its 28,800 cells (4.0%): a rig shows nothing in the others" in result.stderr
    told = json.loads(background(short, "-o", tmp_path / "hall", "--min-hits", "1", "--force", "--json").stdout)
    assert (told["stood_still"], told["changed_ratio"], told["compared"]) == ("not checked: too short", None, 0)
    assert len(told["warnings"]) == 1


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
        (["{0}", "--check", "hall.npz"], "give either -o NAME or --check FILE"),
        (["{0}", "{0}"], "each capture must be given once"),
        (["{0}", "--rows", "20"], "rows must be left to a sensor that turns"),
        (["--listen", "127.0.0.1:2368", "--poses", "x.csv"], "--poses, --start-s, --duration-s, --cluster and --check are for captures"),
    ],
)
def test_wrong_usage_has_exit_code_2(captures, tmp_path, arguments, said):
    result = background(*(text.format(captures[0]) for text in arguments), "-o", tmp_path / "hall")
    assert result.returncode == 2, result.stdout
    assert said in " ".join(result.stderr.split())


@pytest.mark.extended
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
