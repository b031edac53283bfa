"""Faults of the network without a clock: any stretch of rig time, in any order, gives the same packets."""

import random
from itertools import chain, pairwise

import dpkt
import pytest

import hilsim
from hilsim.offline.record import record
from tests.support import ROOM, write_rig

SECOND = '[[sensor]]\nname = "rear"\nsub_rays = 1\n[sensor.network]\nsource = "127.0.1.202"\ndata_port = 2370\nposition_port = 8310\n'
FAULTS = """
[[fault]]
kind = "wifi"
[[fault]]
kind = "pareto_delay"
on = "*/data"
jitter_ms = 0.5
[[fault]]
kind = "reorder"
on = "rear"
share = 0.2
[[fault]]
kind = "corrupt"
share = 0.3
at_s = 0.1
for_s = 0.2
[[fault]]
kind = "duplicate"
on = "rear/data"
share = 0.1
delay_ms = 3.0
"""
SLOW = FAULTS + '[[fault]]\nkind = "rate_limit"\nrate_bps = 8e6\nqueue_bytes = 20_000\nat_s = 0.05\n'


def packets(emulator, *stretch):
    return [(packet.time_ns, packet.sensor, packet.stream, packet.frame) for packet in emulator.packets(*stretch)]


@pytest.mark.parametrize("faults", [FAULTS, SLOW])
def test_stretches_in_any_order_give_the_packets_of_the_whole(tmp_path, faults):
    emulator = hilsim.Emulator(write_rig(tmp_path, ROOM + SECOND + faults))
    whole = packets(emulator, 0.0, 0.5)
    edges = [0.0, 0.03, 0.0301, 0.17, 0.2, 0.41, 0.5]
    stretches = list(pairwise(edges))
    random.Random(3).shuffle(stretches)  # noqa: S311 - no secret
    found = {stretch: packets(emulator, *stretch) for stretch in stretches}
    assert list(chain.from_iterable(found[stretch] for stretch in sorted(stretches))) == whole
    assert [time_ns for time_ns, *_ in whole] == sorted(time_ns for time_ns, *_ in whole)


def test_a_recording_has_what_an_emulator_gives(tmp_path):
    path = write_rig(tmp_path, ROOM + SECOND + SLOW)
    recording = hilsim.record(path, tmp_path / "one.pcap", duration_s=0.5)
    steps = {"duration_ns": 500_000_000, "utc_epoch_ns": hilsim.Emulator(path).utc_epoch_ns, "batch_ms": 7, "threads": 2}
    record(hilsim.load_rig(path), tmp_path / "other.pcap", **steps, progress=lambda _: None)
    assert (tmp_path / "one.pcap").read_bytes() == (tmp_path / "other.pcap").read_bytes()
    emulator = hilsim.Emulator(path)
    expected = packets(emulator, 0.0, 0.5)
    with (tmp_path / "one.pcap").open("rb") as file:
        frames = [frame for _, frame in dpkt.pcap.UniversalReader(file)]
    assert recording.packets == len(frames)
    assert frames == [frame for *_, frame in expected]


def test_a_network_without_faults_is_as_one_whose_faults_are_over(tmp_path):
    over = hilsim.Emulator(write_rig(tmp_path, ROOM + SECOND + '[[fault]]\nkind = "loss"\nshare = 1.0\nat_s = 0.1\nfor_s = 0.1\n'))
    intact = hilsim.Emulator(write_rig(tmp_path, ROOM + SECOND, "intact.toml"))
    assert packets(over, 0.2, 0.4) == packets(intact, 0.2, 0.4)
    assert packets(over, 0.0, 0.1) == packets(intact, 0.0, 0.1)
    assert not packets(over, 0.1, 0.2)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ('kind = "loss"\non = "roof"\n', 'fault[0].on must name what sends (lidar, rear), a flow of it like NAME/data, or be a pattern, got "roof"'),
        ('kind = "vlan"\non = "rear"\n', 'fault[0]: vlan needs frames, network.mode = "ethernet", and rear has mode = "udp"'),
        ('kind = "loss"\nshare = 1.5\n', "share must be 0 to 1, got 1.5"),
        ('kind = "hold"\nhold_ms = 0.0\n', "hold_ms must be 0.01 to 10000, got 0.0"),
        ('kind = "hold"\nevery_ms = 10.0\n', "hold_ms must be less than every_ms, got 20.0 and 10.0"),
    ],
)
def test_a_fault_that_cannot_be_is_refused(tmp_path, table, message):
    with pytest.raises(hilsim.ConfigError) as caught:
        hilsim.load_rig(write_rig(tmp_path, ROOM + SECOND + "[[fault]]\n" + table))
    assert message in str(caught.value)


@pytest.mark.parametrize("on", ["*", "lidar", "lidar/data", "*/position", "re*"])
def test_flows_are_found_by_their_names_and_their_sensors(tmp_path, on):
    path = write_rig(tmp_path, ROOM + SECOND + f'[[fault]]\nkind = "loss"\nshare = 1.0\non = "{on}"\n')
    left = {(sensor, stream) for _, sensor, stream, _ in packets(hilsim.Emulator(path), 0.0, 0.05)}
    lost = {
        "*": {"lidar", "rear", "data", "position"},
        "lidar": {"lidar"},
        "lidar/data": {"lidar data"},
        "*/position": {"position"},
        "re*": {"rear"},
    }[on]
    every = {(sensor, stream) for sensor in ("lidar", "rear") for stream in ("data", "position")}
    assert left == {(sensor, stream) for sensor, stream in every if not {sensor, stream, f"{sensor} {stream}"} & lost}


def test_a_rig_that_is_stepped_has_no_network(tmp_path):
    emulator = hilsim.Emulator(write_rig(tmp_path, ROOM), faults=[{"kind": "loss"}])
    with pytest.raises(hilsim.ConfigError, match="faults of the network must not be given for a rig that is stepped"):
        emulator.step(0.1)
