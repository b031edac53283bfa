"""Scans out of packets, and pictures of them."""

import dpkt
import numpy as np
import pytest
from PIL import Image
from velodyne_decoder import Config, Model, read_pcap

from hilsim.config.parse import parse_table, read_toml
from hilsim.config.profiles import profiles_directory
from hilsim.errors import CaptureError
from hilsim.packets.velodyne_data import decode_data_packets
from hilsim.picture.draw import draw_scan
from hilsim.picture.scan import first_scan
from hilsim.sensor.velodyne_specs import VelodyneSpec


@pytest.fixture
def spec():
    return parse_table(VelodyneSpec, read_toml(profiles_directory() / "sensors" / "vlp16.toml"), "vlp16")


def packets_of(path):
    with path.open("rb") as file:
        payloads = [frame[42:] for _, frame in dpkt.pcap.Reader(file) if len(frame) == 1248]
    return decode_data_packets(np.frombuffer(b"".join(payloads), np.uint8).reshape(-1, 1206))


def test_points_of_a_real_scan_lie_where_an_independent_decoder_puts_them(capture, spec):
    path = capture("vlp16_strongest_gps.pcap")
    scan = first_scan(packets_of(path), spec)
    points, _ = scan.points_m()
    decoded = [np.asarray(cloud) for _, cloud in read_pcap(str(path), Config(model=Model.VLP16, min_range=0.0))]
    theirs = max(decoded[:3], key=len)
    ours_radius = np.sort(np.linalg.norm(points, axis=1))
    assert points.shape[0] == pytest.approx(len(theirs), rel=0.02)
    np.testing.assert_allclose(
        np.quantile(ours_radius, [0.1, 0.5, 0.9]), np.quantile(np.linalg.norm(theirs[:, :3], axis=1), [0.1, 0.5, 0.9]), rtol=0.02
    )


def test_a_scan_covers_one_turn(capture, spec):
    scan = first_scan(packets_of(capture("vlp16_strongest_gps.pcap")), spec)
    first_channel = np.unwrap(np.radians(scan.azimuth_deg[:, 0]))
    assert np.degrees(first_channel[-1] - first_channel[0]) == pytest.approx(359.8, abs=0.4)


def test_less_than_a_turn_is_refused_with_what_there_is(capture, spec):
    with pytest.raises(CaptureError, match=r"needs one whole turn of a lidar, got \d+ deg in 20 data packets"):
        first_scan(packets_of(capture("vlp16_strongest_gps.pcap"))[:20], spec)


def test_a_picture_is_written_and_not_blank(capture, spec, tmp_path):
    path = tmp_path / "scan.png"
    draw_scan(first_scan(packets_of(capture("vlp16_dual.pcap")), spec), path, title="a real scan")
    with Image.open(path) as image:
        pixels = np.asarray(image.convert("RGB"))
    assert pixels.shape[0] > 1000
    assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 500


def test_an_unwritable_picture_is_a_clear_error(capture, spec, tmp_path):
    with pytest.raises(CaptureError, match=r"nowhere/scan\.png: the picture cannot be written"):
        draw_scan(first_scan(packets_of(capture("vlp16_dual.pcap")), spec), tmp_path / "nowhere" / "scan.png", title="x")
