"""Sensors of a plug-in's family in the Python interface: a head that turns, and lasers that are swept."""

import numpy as np
import pytest

import hilsim
from hilsim.config.places import profiles_directory
from hilsim.testing.sensor_rig import ROOM
from tests.plugins import distribution, install_example

SWEPT = """
from dataclasses import dataclass
from typing import Literal
from hilsim.plugins import CeptonFamily, CeptonSpec

@dataclass(frozen=True, kw_only=True)
class Spec(CeptonSpec):
    family: Literal["swept"]

@dataclass(frozen=True)
class Swept(CeptonFamily):
    name, title, profile = "swept", "Swept", Spec

    def info_packet(self, utc_epoch_ns):
        packet = super().info_packet(utc_epoch_ns)
        packet[-1] = 0x5A
        return packet
"""


def rig(**sensor):
    return {"name": "bench", "scene": ROOM, "sensor": [{"name": "lidar", **sensor}]}


def test_a_turning_sensor_of_a_plugin_gives_packets_and_points_of_its_own_lasers(plugin_site):
    install_example(plugin_site)
    emulator = hilsim.Emulator(rig(profile="spinner16", network={"position_port": 7100}))
    packets = list(emulator.packets(0.0, 0.02))
    assert {(packet.stream, packet.destination[1]) for packet in packets} == {("points", 7000), ("status", 7100)}
    points = emulator.points(0.0, 0.1)
    elevation_deg = np.degrees(np.arctan2(points["z"], np.hypot(points["x"], points["y"])))
    assert set(points["ring"]) == set(range(16))
    np.testing.assert_allclose(elevation_deg, 2.0 * points["ring"] - 10.0, atol=0.01)  # float32 at 20 m
    assert (points["label"] >= 0).all()


def test_a_swept_sensor_of_a_plugin_sends_its_own_information_beside_its_points(plugin_site):
    (plugin_site / "stranger.py").write_text(SWEPT)
    distribution(plugin_site, "swept", entry_points={"hilsim.families": {"swept": "stranger:Swept"}})
    shipped = (profiles_directory() / "sensors" / "hr80w-like.toml").read_text()
    (plugin_site / "own.toml").write_text(shipped.replace('family = "cepton"', 'family = "swept"'))
    packets = list(hilsim.Emulator(rig(profile=str(plugin_site / "own.toml"), cepton={"info_packets": True})).packets(0.0, 0.6))
    information = [packet.payload for packet in packets if packet.stream == "info"]
    assert {payload[-1] for payload in information} == {0x5A}
    assert {packet.payload[:4] for packet in packets if packet.stream == "points"} == {b"STDV"}


@pytest.mark.extended
def test_a_plugins_own_packets_are_made_by_its_own_kernels(plugin_site):
    install_example(plugin_site)
    emulator = hilsim.Emulator(rig(profile="lantern8", unit="ideal", sub_rays=1))
    packets = list(emulator.packets(0.0, 0.1))
    assert {(packet.stream, packet.destination[1]) for packet in packets} == {("data", 4500)}
    assert [packet.payload[:8] for packet in packets] == [b"LNTN" + (50 * number).to_bytes(4, "little") for number in range(len(packets))]
    assert len(packets) == 19  # of 5 ms each; the last one of a turn is due behind it
    column = np.dtype([("azimuth_cdeg", "<u2"), ("beams", [("distance_cm", "<u2"), ("reflectivity", "u1")], 8)])
    columns = np.concatenate([np.frombuffer(packet.payload, column, offset=8) for packet in packets])
    np.testing.assert_allclose(columns["azimuth_cdeg"], np.arange(950) * 36, atol=1)
    lowest = columns["beams"]["distance_cm"][:, 7]  # 12 degrees down: it meets the floor, a metre below, before it meets a wall
    np.testing.assert_allclose(lowest[(lowest > 440) | (lowest < 360)], 100.0 / np.sin(np.radians(12.0)), atol=1)
    assert ((lowest > 440) | (lowest < 360)).mean() > 0.9  # the rest meets the pillar
    level = columns["beams"]["distance_cm"][:, 3]
    assert level[0] == 1000  # ahead
    assert level[250] == 600  # to the right
    assert (columns["beams"]["reflectivity"][:, :4] > 0).all()  # the floor, at a flat angle, is black here and there
    assert (columns["beams"]["reflectivity"][:, 4:] > 0).mean() > 0.95
    again = list(hilsim.Emulator(rig(profile="lantern8", unit="ideal", sub_rays=1)).packets(0.05, 0.1))
    assert [packet.payload for packet in again] == [packet.payload for packet in packets[-len(again) :]]
