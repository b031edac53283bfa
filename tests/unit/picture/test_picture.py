"""Scans out of packets, and pictures of them."""

import dpkt
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image
from scipy.spatial import cKDTree
from velodyne_decoder import Config, Model, read_pcap

from hilsim.cli import cli
from hilsim.errors import CaptureError, PacketError
from hilsim.families.velodyne.picture import Scan, first_scan, nearest_firings
from hilsim.families.velodyne.points import geometry_of_packets
from hilsim.families.velodyne.protocol.data import BLOCK_FLAG, DATA_PACKET_DTYPE
from hilsim.families.velodyne.protocol.geometry import HDL_32E_GEOMETRY
from hilsim.families.velodyne.protocol.models import VLS_128
from hilsim.families.velodyne.stream import stacked_packets
from hilsim.read.analysis.picture.scales import check_picture_path, range_limits_m
from tests.unit.background.recordings import write_capture

CAPTURES = {
    "vlp16_strongest_gps.pcap": (Model.VLP16, "VLP-16", 599.2, 0.005),  # the decoder adds the lasers' heights, up to 11 mm, and the walls are at 1 m
    "vlp32c_strongest_fov.pcap": (Model.VLP32C, "VLP-32C", 600.0, 0.0015),
    "hdl32e_strongest.pcap": (Model.HDL32E, "HDL-32E", 706.5, 0.0015),
    "vls128_strongest.pcap": (Model.VLS128, "VLS-128", 599.9, 0.0015),
}


def packets_of(path):
    with path.open("rb") as file:
        return stacked_packets([frame[42:] for _, frame in dpkt.pcap.Reader(file) if len(frame) == 1248])


def real_scan(path):
    packets = packets_of(path)
    return first_scan(packets, geometry_of_packets(packets))


@pytest.mark.parametrize("name", CAPTURES)
def test_points_of_a_real_scan_lie_where_an_independent_decoder_puts_them(capture, name):
    model, called, rate_rpm, furthest_rad = CAPTURES[name]
    path = capture(name)
    scan = real_scan(path)
    points, _ = scan.points_m()
    ours = np.stack([points[:, 1], -points[:, 0], points[:, 2]], axis=1)  # the decoder's x is forward, its y to the left
    theirs = [np.asarray(cloud)[:, :3] for _, cloud in read_pcap(str(path), Config(model=model, min_range=0.0))][:4]
    assert (scan.model, scan.rate_rpm) == (called, pytest.approx(rate_rpm, abs=1.0))
    assert len(ours) == pytest.approx(max(map(len, theirs)), rel=0.02)
    apart, _ = cKDTree(np.concatenate(theirs)).query(ours)
    # The places differ from turn to turn; turned by 0.4 degrees or mirrored they would be 2.7 mrad and more apart.
    assert np.quantile(apart / np.maximum(np.linalg.norm(ours, axis=1), 1.0), 0.5) < furthest_rad


def test_an_early_vlp16_that_says_it_is_an_hdl32e_is_drawn_as_a_vlp16(capture):
    scan = real_scan(capture("vlp16_strongest_1200rpm.pcap"))
    assert (scan.model, scan.rate_rpm) == ("VLP-16", pytest.approx(1200, abs=10))


def test_a_model_of_which_no_geometry_is_known_is_named_with_those_there_are():
    packets = np.zeros(3, DATA_PACKET_DTYPE)
    packets["product"], packets["return_mode"] = 0x23, 0x37
    with pytest.raises(CaptureError, match=r"lasers of a VLP-32A/B with product byte 0x23 must be known \(known are VLP-16, .*VLS-128\)"):
        geometry_of_packets(packets)


def turning(lasers, step_cdeg, sequences, *, mode=0x37, flags=(BLOCK_FLAG,) * 12, product=0x21):
    """Packets of an even turn with an azimuth for each sequence of a 32-laser sensor (or four blocks of a VLS-128)."""
    banks = max(lasers // 32, 1) * (2 if mode == 0x39 else 1)
    count = -(-sequences * banks // 12)
    packets = np.zeros(count, DATA_PACKET_DTYPE)
    packets["return_mode"], packets["product"] = mode, product
    packets["blocks"]["flag"] = flags
    azimuth = np.repeat(np.arange(count * 12 // banks) * step_cdeg % 36_000, banks)
    packets["blocks"]["azimuth"] = azimuth.reshape(count, 12)
    packets["blocks"]["channels"]["distance"] = 5000
    return packets


BANKS = (0xEEFF, 0xDDFF, 0xCCFF, 0xBBFF)


def test_the_four_blocks_of_a_vls128_are_one_firing_sequence():
    packets = turning(128, 20, 4000, flags=BANKS * 3, product=0xA1)
    packets["blocks"]["channels"]["distance"] = np.tile(np.repeat(np.arange(1, 5) * 1000, 1), 3)[None, :, None] + np.arange(32)
    scan = first_scan(packets, geometry_of_packets(packets))
    assert scan.range_m.shape == (1800, 128)
    np.testing.assert_allclose(scan.range_m[7], [0.004 * ((laser // 32 + 1) * 1000 + laser % 32) for laser in range(128)])


def test_a_wrong_flag_is_named_with_packet_block_and_byte():
    packets = turning(32, 20, 4000)
    packets["blocks"]["flag"][5, 3] = 0xDDFF
    with pytest.raises(PacketError, match="data packet 5 block 3 must start with flag 0xeeff, got 0xddff at byte 300"):
        first_scan(packets, HDL_32E_GEOMETRY)


def test_a_turn_that_is_not_fired_all_round_leaves_the_rest_blank():
    packets = turning(32, 20, 6000)
    azimuth = packets["blocks"]["azimuth"].reshape(-1)
    seen = packets["blocks"].reshape(-1)[(azimuth < 9000) | (azimuth >= 27_000)]
    kept = np.zeros(seen.size // 12, DATA_PACKET_DTYPE)
    kept["blocks"], kept["return_mode"] = seen[: kept.size * 12].reshape(-1, 12), 0x37
    scan = first_scan(kept, HDL_32E_GEOMETRY)
    assert (scan.range_m.shape[0], scan.step_deg) == (900, pytest.approx(0.2))
    fired = (nearest_firings(scan) >= 0).mean(axis=1)
    np.testing.assert_allclose(fired, 0.5, atol=0.005)


@pytest.mark.extended
@pytest.mark.parametrize("lost", [0, 20, 100])
def test_the_missing_share_of_a_turn_is_reported_beside_the_picture(tmp_path, lost):
    packets = turning(32, 20, 6000)
    kept = np.delete(packets, slice(170, 170 + lost))  # a turn is 150 packets, and the second begins with number 150
    assert first_scan(np.delete(packets, slice(0, 149)), HDL_32E_GEOMETRY).missing == pytest.approx(0.0, abs=1e-9)
    kept = kept[149:]
    assert first_scan(kept, HDL_32E_GEOMETRY).missing == pytest.approx(lost / 150, abs=1e-9)
    source = write_capture(tmp_path / "lossy.pcap", [packet.tobytes() for packet in kept])
    result = CliRunner().invoke(cli, ["picture", str(source), "--model", "hdl-32e", "-o", str(tmp_path / "scan.png")])
    assert result.exit_code == 0, result.output
    assert (f"note: {lost / 150:.0%} of the turn is missing" in result.stderr) == (lost > 0)


@pytest.mark.parametrize("rate_rpm", [300, 600, 1200])
@pytest.mark.parametrize("noise_deg", [0.0, 0.01])
def test_there_is_no_blank_column_at_any_rate(rate_rpm, noise_deg):
    step_deg = rate_rpm / 60 * 360 * 55.296e-6
    sequences = round(360 / step_deg)
    rng = np.random.default_rng(3)
    offset_deg = np.array([0.0, 4.2, -4.2, 1.4])
    azimuth_deg = (0.37 * step_deg + np.arange(sequences) * step_deg + rng.normal(0, noise_deg, sequences))[:, None] + offset_deg
    scan = Scan(
        model="x",
        azimuth_deg=azimuth_deg % 360,
        elevation_deg=np.arange(4.0),
        range_m=np.ones((sequences, 4)),
        reflectivity=np.zeros((sequences, 4), np.uint8),
        step_deg=step_deg,
        rate_rpm=rate_rpm,
    )
    firing = nearest_firings(scan)
    assert firing.shape == (4, min(sequences, 1800))
    assert firing.min() >= 0
    centre_deg = (np.arange(firing.shape[1]) + 0.5) * 360 / firing.shape[1] - 180
    apart_deg = (scan.azimuth_deg[firing, np.arange(4)[:, None]] - centre_deg + 180) % 360 - 180
    assert np.abs(apart_deg).max() < step_deg + 4 * noise_deg


def test_a_scan_covers_one_turn(any_capture):
    scan = real_scan(any_capture("vlp16_strongest_gps.pcap"))
    first_channel = np.unwrap(np.radians(scan.azimuth_deg[:, 0]))
    assert np.degrees(first_channel[-1] - first_channel[0]) == pytest.approx(359.8, abs=0.4)


def test_less_than_a_turn_is_refused_with_what_there_is(any_capture):
    packets = packets_of(any_capture("vlp16_strongest_gps.pcap"))[:20]
    with pytest.raises(CaptureError, match=r"needs one whole turn of a lidar, got \d+ deg in 20 data packets"):
        first_scan(packets, geometry_of_packets(packets))


@pytest.mark.extended
@pytest.mark.parametrize("name", ["vlp16_dual.pcap", "vls128_strongest.pcap"])
def test_a_picture_is_written_and_not_blank(any_capture, tmp_path, name):
    path = tmp_path / "scan.png"
    real_scan(any_capture(name)).draw(path, title="a real scan")
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape[0] > 1000
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 500


@pytest.mark.parametrize("distance", [0, 1, 65_535])
def test_a_picture_is_drawn_of_a_turn_with_one_range_or_none(tmp_path, distance):
    packets = turning(32, 20, 4000)
    packets["blocks"]["channels"]["distance"] = distance
    first_scan(packets, HDL_32E_GEOMETRY).draw(tmp_path / "scan.png", title="by hand")
    assert (tmp_path / "scan.png").stat().st_size > 10_000


def test_the_scale_of_ranges_holds_all_but_the_outermost_hundredths():
    range_m = np.concatenate([np.full(5, 0.4), np.geomspace(2.0, 60.0, 990), np.full(5, 150.0)])
    nearest_m, farthest_m = range_limits_m(range_m)
    assert (nearest_m, farthest_m) == (pytest.approx(2.0, rel=0.03), pytest.approx(60.0, rel=0.03))


@pytest.mark.parametrize("range_m", [np.zeros(0), np.full(9, 7.0), np.array([0.002])])
def test_the_scale_of_ranges_is_sound_for_any_ranges(range_m):
    nearest_m, farthest_m = range_limits_m(range_m)
    assert 0.0 < nearest_m < farthest_m


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("scan.bmp", r'scan\.bmp: a picture must end in \.png, \.svg or \.pdf, got "\.bmp"'),
        ("scan", r'scan: a picture must end in .*, got ""'),
        ("nowhere/scan.png", r"nowhere/scan\.png: the picture cannot be written: its directory must exist, and .*nowhere does not"),
        ("folder.png", r"folder\.png: the picture cannot be written: this is a directory"),
    ],
)
def test_a_picture_that_could_not_be_written_is_refused_before_it_is_drawn(tmp_path, name, fault):
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(CaptureError, match=fault):
        check_picture_path(tmp_path / name)
    check_picture_path(tmp_path / "scan.PNG")


def test_an_unwritable_picture_is_a_clear_error(tmp_path):
    with pytest.raises(CaptureError, match=r"nowhere/scan\.png: the picture cannot be written"):
        first_scan(turning(32, 20, 4000), HDL_32E_GEOMETRY).draw(tmp_path / "nowhere" / "scan.png", title="x")


def test_the_vls128_has_as_many_different_beams_as_lasers():
    beams = set(zip(VLS_128.geometry.elevation_deg, VLS_128.geometry.azimuth_offset_deg, strict=True))
    assert (len(beams), min(VLS_128.geometry.elevation_deg), max(VLS_128.geometry.elevation_deg)) == (128, -25.0, 15.0)
