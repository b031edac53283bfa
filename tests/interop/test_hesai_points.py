"""hydra4, an independent decoder of XT32 packets, on a recorded room: every point on its surfaces, and as many as hilsim reads itself."""

from itertools import islice

import numpy as np
import pytest
from click.testing import CliRunner

import hilsim
from hilsim.capture.pcap import CaptureFile
from hilsim.cli.calibrate import calibrate
from hilsim.families.hesai.protocol.models import XT32
from hilsim.families.hesai.recognition import HesaiKind, recognise

decoders = pytest.importorskip("hydra4.decoders")
messages = pytest.importorskip("hydra4.msgs.pandar_msgs")
NOISE_M = 0.005
RIG = {
    "name": "rig",
    "scene": {"box": [{"position_m": [0.0, 0.0, 0.0], "size_m": [14.0, 10.0, 6.0]}]},
    "sensor": [{"name": "top", "profile": "xt32", "sub_rays": 1}],
}


def text_of(angles_deg):
    """A calibration text."""
    return "\n".join(["Channel,Elevation,Azimuth", *(f"{channel},{each[0]},{each[1]}" for channel, each in enumerate(angles_deg, 1))])


def read(payloads, tmp_path, angles_deg=tuple((elevation, 0.0) for elevation in XT32.elevation_deg)):
    """Places by hydra4, turned on by what the head turns from a block to each firing: it takes all firings to look at the block's azimuth."""
    (tmp_path / "angles.csv").write_text(text_of(angles_deg))
    decoder, points = decoders.PandarXT32(tmp_path / "angles.csv", 0.1, 120.0), []
    for payload in payloads:
        packet = messages.pandar_msgs__msg__PandarPacket(stamp=None, data=np.frombuffer(payload, np.uint8), size=len(payload))
        points += [(x, y, z, ring, azimuth) for block in decoder(packet) for x, y, z, _, ring, azimuth, _ in block.points]
    x, y, z, ring, azimuth = np.array(points).T
    turned = np.radians(600 * 6e-9 * np.array(XT32.firing_ns)[ring.astype(int)])
    return np.stack([x * np.cos(turned) + y * np.sin(turned), y * np.cos(turned) - x * np.sin(turned), z], axis=1), azimuth


def off_walls_m(place):
    return np.abs(np.abs(place) - np.array([5.0, 7.0, 3.0])).min(axis=1)


@pytest.mark.parametrize("mode", ["strongest", "dual"])
def test_every_point_is_on_a_surface_within_noise(mode, tmp_path):
    rig = hilsim.load_rig({**RIG, "sensor": [{**RIG["sensor"][0], "return_mode": mode}]})
    payloads = [packet.payload for packet in hilsim.Emulator(rig).packets(0.0, 0.1)]
    assert {recognise(payload) for payload in payloads} == {HesaiKind.POINTS}
    place, azimuth = read(payloads, tmp_path)
    assert place.shape[0] == hilsim.decode(payloads).size > 63_000
    assert np.unique(azimuth).size > 1980
    off_m = off_walls_m(place)
    assert np.sqrt((off_m**2).mean()) < 1.1 * NOISE_M
    assert off_m.max() < 6.0 * NOISE_M


def test_a_unit_with_a_texts_angles_has_straight_walls_by_these_angles_alone(tmp_path):
    angles_deg = [(elevation - 0.3, 0.5 - 0.03 * channel) for channel, elevation in enumerate(XT32.elevation_deg)]
    (tmp_path / "unit.csv").write_text(text_of(angles_deg))
    done = CliRunner().invoke(calibrate, [str(tmp_path / "unit.csv"), "--profile", "xt32", "-o", str(tmp_path / "unit.toml")])
    assert done.exit_code == 0, done.output
    rig = hilsim.load_rig({**RIG, "sensor": [{**RIG["sensor"][0], "unit": str(tmp_path / "unit.toml")}]})
    payloads = [packet.payload for packet in hilsim.Emulator(rig).packets(0.0, 0.1)]
    assert np.sqrt((off_walls_m(read(payloads, tmp_path, angles_deg)[0]) ** 2).mean()) < 1.1 * NOISE_M
    assert np.sqrt((off_walls_m(read(payloads, tmp_path)[0]) ** 2).mean()) > 3.0 * NOISE_M


def test_points_of_a_recording_are_where_hydra_has_them(capture, tmp_path):
    payloads = [datagram.payload for datagram in islice(CaptureFile(capture("hesai/hesai_xt32_dual_600rpm.pcap")), 500)]
    place, _ = read(payloads, tmp_path)
    points = hilsim.decode(payloads)
    first = points[points["return"] == 0]  # hydra4 reads the first block of each pair
    assert place.shape[0] == first.size > 60_000
    found = np.stack([first["x"], first["y"], first["z"]], axis=1)
    assert np.abs(found - place).max() < 1e-4 * first["range"].max()  # 599 rpm for 600 is 0.0003 degrees
