"""The replays of a rig on a real transmitter over loopback."""

import contextlib
import socket
import threading
import time
from dataclasses import replace

import numpy as np
import pytest

from hilsim.config.rig import Rig, RigSpec
from hilsim.daemon.flows import Flows
from hilsim.daemon.parts import RigClock, RigContext, played
from hilsim.errors import CaptureError, ConfigError, TransmitError
from hilsim.parts.replays.flows import FlowRule
from hilsim.parts.replays.part import Replays
from hilsim.parts.replays.player import Word
from hilsim.parts.replays.recorded.timeline import LEAD_IN_NS
from hilsim.parts.replays.specs import ReplaySpec
from hilsim.transmit.specs import TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter
from tests.unit.replays.streams import CAMERA, LATENCY_NS, OTHER_SENSOR, POSITION, SENSOR, Recording, position_packet, stamp_us_of

MS = 1_000_000
LIMIT_S = 30.0
FAST = 0.01


def await_that(condition):
    deadline_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.002)


class Bench:
    """Replays on a transmitter, and a socket that hears them."""

    def __init__(self, directory):
        self.directory = directory
        self.receiver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        self.receiver.bind(("127.0.0.1", 0))
        self.port = self.receiver.getsockname()[1]
        self.transmitter = None
        self.context = RigContext(rig=self.rig())
        self.replays = Replays(self.context)

    def spec(self, name, file, **settings):
        return ReplaySpec(**{"name": name, "file": file, "destination_port": self.port, "interval_scale": FAST} | settings)

    def rig(self, *specs):
        transmit = TransmitSpec(scheduling="plain", lock_memory=False, late_policy="send")
        spec = RigSpec(name="bench", parts={"replay": specs or (self.spec("none", "none.pcap"),)}, transmit=transmit)
        return Rig(path=self.directory / "rig.toml", spec=spec, lidars=())

    def prepare(self, *specs):
        self.context.rig = self.rig(*specs)
        self.replays.prepare()

    def open(self, *specs, flows=8):
        self.prepare(*specs)
        transmit = self.context.rig.spec.transmit
        self.transmitter = Transmitter(transmit, flows=flows, capacity=max(self.replays.capacity, 1300)).__enter__()
        self.replays.open(Flows(self.transmitter, lambda *_: None))
        self.replays.warm()
        return self

    def start(self, *specs, **settings):
        self.open(*specs, **settings)
        self.transmitter.start()
        self.epoch_ns = time.monotonic_ns() + 20 * MS
        self.utc_ns = time.time_ns() + 20 * MS
        self.replays.start(RigClock(self.epoch_ns, self.utc_ns))
        return self

    @property
    def rows(self):
        return {row: flow.name for row, flow in self.transmitter.flows.items()} if self.transmitter else {}

    def change(self, rig):
        """As a running rig does it."""
        change = self.replays.change(rig)
        with self.transmitter.reserved(change.flows, change.retired):
            return change.make(RigClock(self.epoch_ns, self.utc_ns))

    def hear(self, count):
        """Datagrams with their senders' addresses."""
        self.receiver.settimeout(LIMIT_S)
        return [self.receiver.recvfrom(4096) for _ in range(count)]

    def sent(self):
        return {name: int(self.transmitter.statistics.counters[row, Counter.PACKETS]) for row, name in dict(self.rows).items()}

    def close(self):
        self.replays.stop()
        if self.transmitter is not None:
            self.transmitter.__exit__(None, None, None)
        self.receiver.close()


@pytest.fixture
def bench(tmp_path):
    with contextlib.closing(Bench(tmp_path)) as made:
        yield made


@pytest.fixture
def turning(tmp_path):
    recording = Recording().add_turning(300)
    recording.write(tmp_path / "turning.pcap")
    return recording


# -- looking over -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("turning")
def test_every_capture_that_cannot_be_replayed_is_named_at_once(bench, tmp_path):
    (tmp_path / "text.pcap").write_text("time,x,y\n1,2,3\n" * 10)
    specs = (bench.spec("a", "missing.pcap"), bench.spec("b", "turning.pcap"), bench.spec("c", "text.pcap"))
    with pytest.raises(CaptureError, match=r"(?s)missing\.pcap: cannot be opened: No such file.*\n.*text\.pcap: .*text") as error:
        bench.prepare(*specs)
    assert "turning.pcap" not in str(error.value)


@pytest.mark.usefixtures("turning")
def test_a_rig_is_looked_over_without_anything_being_opened(bench):
    bench.prepare(bench.spec("front", "turning.pcap"))
    assert (list(bench.replays.playing), bench.rows) == (["front"], {})


@pytest.mark.usefixtures("turning")
def test_room_and_load_are_those_of_all_captures_together(bench, tmp_path):
    Recording().add(0, CAMERA, bytes(4000)).add(100 * MS, CAMERA, b"x").write(tmp_path / "large.pcap")
    bench.prepare(bench.spec("front", "turning.pcap"), bench.spec("camera", "large.pcap"))
    assert bench.replays.flow_count == 2
    assert bench.replays.capacity == 65_535
    assert bench.replays.packet_rate_hz == pytest.approx(1e9 / 1_327_104 + 10.0, rel=1e-3)


# -- flows ------------------------------------------------------------------------------------------------------------------------------


def test_flows_are_named_by_replay_and_kind(bench, tmp_path):
    recording = Recording().add_turning(20).add(MS, POSITION, position_packet(5)).add(2 * MS, POSITION._replace(source_port=9), b"x")
    recording.write(tmp_path / "one.pcap")
    bench.open(bench.spec("front", "one.pcap"))
    assert sorted(bench.rows.values()) == ["front/data", "front/port-8308", "front/position"]


def test_sensors_of_one_capture_are_distinguished_by_their_recorded_addresses_also_where_they_leave(bench, tmp_path):
    recording = Recording().add_turning(50).add_turning(50, flow=OTHER_SENSOR)
    recording.write(tmp_path / "two.pcap")
    bench.start(bench.spec("rig", "two.pcap"))
    heard = bench.hear(100)
    assert sorted(bench.rows.values()) == ["rig/192.168.1.201/data", "rig/192.168.1.202/data"]
    assert {sender[0] for _, sender in heard} == {"127.0.1.201", "127.0.1.202"}
    routes = {(name, recorded): (flow.socket.source, flow.socket.destination_port) for name, recorded, flow in bench.replays.routes}
    assert routes == {("rig", SENSOR): ("127.0.1.201", bench.port), ("rig", OTHER_SENSOR): ("127.0.1.202", bench.port)}


@pytest.mark.usefixtures("turning")
def test_the_same_capture_twice_leaves_from_two_addresses(bench):
    bench.start(bench.spec("front", "turning.pcap"), bench.spec("rear", "turning.pcap"))
    assert {sender[0] for _, sender in bench.hear(600)} == {"127.0.1.201", "127.1.1.201"}


def test_a_flow_that_begins_far_into_the_capture_is_opened_when_it_is_read(bench, tmp_path):
    recording = Recording().add_turning(5000).add(6_700 * MS, CAMERA, b"late")
    recording.write(tmp_path / "late.pcap")
    bench.open(bench.spec("front", "late.pcap", flow=(FlowRule(send=f">:{bench.port}"),)))
    assert list(bench.rows.values()) == ["front/data"]
    bench.transmitter.start()
    bench.replays.start(RigClock(time.monotonic_ns(), time.time_ns()))
    await_that(lambda: sum(bench.sent().values()) == 5001)
    assert "front/port-5001" in bench.rows.values()


def test_replays_that_find_flows_at_the_same_time_get_a_row_each(bench, tmp_path):
    specs = []
    for number in range(6):
        recording = Recording()
        for flow in range(20):
            recording.add(flow * MS, CAMERA._replace(source_port=1000 + flow, destination_port=2000 + flow), b"x")
        recording.write(tmp_path / f"{number}.pcap")
        specs.append(bench.spec(f"replay-{number}", f"{number}.pcap"))
    bench.open(*specs, flows=120)
    assert len(bench.rows) == len(set(bench.rows.values())) == len(bench.transmitter.flows) == 120


@pytest.mark.usefixtures("turning")
def test_an_address_of_a_sensor_or_of_another_replay_is_given_to_no_other(bench):
    told = bench.spec("told", "turning.pcap", source="127.0.1.201")
    bench.start(bench.spec("front", "turning.pcap"), told)
    assert {flow.socket.source for _, _, flow in bench.replays.routes} == {"127.1.1.201", "127.0.1.201"}
    after = bench.rig(
        bench.spec("front", "turning.pcap"), told, bench.spec("next", "turning.pcap"), bench.spec("late", "turning.pcap", source="127.2.1.201")
    )
    bench.change(after)
    assert sorted(flow.socket.source for _, _, flow in bench.replays.routes) == ["127.0.1.201", "127.1.1.201", "127.2.1.201", "127.3.1.201"]


def test_more_flows_than_rows_are_a_fault_of_opening(bench, tmp_path):
    recording = Recording().add_turning(50).add_turning(50, flow=OTHER_SENSOR)
    recording.write(tmp_path / "two.pcap")
    with pytest.raises(TransmitError, match=r"there must be at most 1 flows, got one more: rig/192\.168\.1\.202/data"):
        bench.open(bench.spec("rig", "two.pcap"), flows=1)


# -- clocks -----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("turning")
def test_replays_begin_at_their_offsets_on_one_clock(bench):
    bench.start(bench.spec("front", "turning.pcap"), bench.spec("rear", "turning.pcap", offset_s=0.25))
    epochs = {name: int(playing.replay_source._player.words[Word.EPOCH_NS]) - bench.epoch_ns for name, playing in bench.replays.playing.items()}
    assert epochs == {"front": 0, "rear": 250 * MS}


def test_stamps_show_utc_or_the_rigs_clock_or_what_was_recorded(bench, turning):
    settings = {"interval_scale": 1.0, "duration_s": 0.05}
    bench.start(
        bench.spec("utc", "turning.pcap", **settings),
        bench.spec("device", "turning.pcap", retime="device", clock_offset_s=100.0, offset_s=0.1, **settings),
        bench.spec("none", "turning.pcap", retime="none", offset_s=0.2, **settings),
    )
    stamps = {}
    count = sum(1 for host_ns, *_ in turning.packets if host_ns - turning.packets[0][0] < 50 * MS)
    for payload, sender in bench.hear(3 * count):
        stamps.setdefault(sender[0], []).append(stamp_us_of(payload))
    cycles_us = np.arange(count) * 1327.104
    utc, device, none = (np.array(stamps[source]) for source in ("127.0.1.201", "127.1.1.201", "127.2.1.201"))
    first_us = (LEAD_IN_NS - LATENCY_NS) / 1000
    assert np.abs(device - 100_100_000 - first_us - cycles_us).max() <= 2
    assert np.abs((utc - bench.utc_ns // 1000) % 3_600_000_000 - first_us - cycles_us).max() <= 2
    assert none.tolist() == [stamp_us_of(payload) for payload in turning.payloads()[:count]]


# -- changes while packets flow ---------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("turning")
def test_a_reload_leaves_alone_what_is_the_same_and_ends_and_begins_what_is_not(bench):
    looped = {"loop": "plain", "interval_scale": 1.0}
    front, rear, side = (bench.spec(name, "turning.pcap", **looped) for name in ("front", "rear", "side"))
    bench.start(front, rear, side)
    kept = bench.replays.playing["front"].replay_source
    replaced = bench.replays.playing["rear"].replay_source
    after = bench.rig(front, replace(rear, offset_s=1.0), bench.spec("top", "turning.pcap", **looped))
    done = bench.change(after)
    assert done == ("front: unchanged", "side: removed", "rear: started with its new settings", "top: started with its new settings")
    assert bench.replays.playing["front"].replay_source is kept
    assert kept.alive
    assert not replaced.alive
    assert sorted(bench.rows.values()) == ["front/data", "rear/data", "top/data"]
    assert set(bench.transmitter.flows) == set(bench.rows)
    await_that(lambda: all(count > 10 for count in bench.sent().values()))
    assert bench.replays.faults(0) == ()


@pytest.mark.usefixtures("turning")
def test_a_replay_that_cannot_be_opened_while_packets_flow_leaves_nothing_behind(bench):
    looped = {"loop": "plain", "interval_scale": 1.0}
    front = bench.spec("front", "turning.pcap", **looped)
    bench.start(front)
    after = bench.rig(front, bench.spec("rear", "turning.pcap", source="203.0.113.7", **looped))
    threads = threading.active_count()
    with pytest.raises(TransmitError, match=r"203\.0\.113\.7"):
        bench.change(after)
    assert list(bench.rows.values()) == ["front/data"]
    assert set(bench.replays.playing) == {"front"}
    assert threading.active_count() == threads
    assert bench.replays.playing["front"].replay_source.alive


@pytest.mark.usefixtures("turning")
def test_larger_datagrams_than_the_ones_that_flow_need_a_restart(bench, tmp_path):
    Recording().add(0, CAMERA, bytes(4000)).write(tmp_path / "large.pcap")
    front = bench.spec("front", "turning.pcap")
    bench.start(front)
    with pytest.raises(ConfigError, match="replay camera has larger datagrams than the ones that flow; restart the service for it"):
        bench.replays.change(bench.rig(front, bench.spec("camera", "large.pcap")))


# -- what is reported -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("turning")
def test_all_have_begun_when_each_has_sent_or_begins_later_and_ended_when_all_was_played(bench):
    bench.start(bench.spec("front", "turning.pcap"), bench.spec("rear", "turning.pcap", offset_s=0.5))
    await_that(lambda: bench.replays.has_begun)
    assert bench.sent()["front/data"] > 0
    await_that(lambda: all(each.state().has_ended for each in played([bench.replays]).values()))
    await_that(lambda: sum(bench.sent().values()) == 600)
    assert {reading.replay: (reading.played_packets, reading.has_ended) for reading in bench.replays.readings()} == {
        "front": (300, True),
        "rear": (300, True),
    }
    assert bench.replays.faults(0) == ()


@pytest.mark.usefixtures("turning")
def test_a_file_that_cannot_be_read_on_is_a_fault_of_its_replay(bench, tmp_path):
    bench.open(bench.spec("front", "turning.pcap", loop="plain"))
    (tmp_path / "turning.pcap").unlink()
    bench.transmitter.start()
    bench.replays.start(RigClock(time.monotonic_ns(), time.time_ns()))
    await_that(lambda: any("front: " in fault.sentence and "cannot be opened" in fault.sentence for fault in bench.replays.faults(0)))


@pytest.mark.usefixtures("turning")
def test_notes_name_the_replay_they_are_about(bench, tmp_path):
    Recording().add(0, CAMERA, b"x").write(tmp_path / "camera.pcap")
    bench.open(bench.spec("front", "turning.pcap"), bench.spec("camera", "camera.pcap"))
    noted = [(name, note) for name, playing in bench.replays.playing.items() for note in playing.replay_source.notes]
    assert [name for name, _ in noted] == ["camera"]
    assert "not recognised" in noted[0][1]


@pytest.mark.usefixtures("turning")
def test_a_replay_that_is_not_there_cannot_be_chosen(bench):
    bench.start(bench.spec("front", "turning.pcap"), bench.spec("rear", "turning.pcap"))
    assert len(played([bench.replays])) == 2
    assert played([bench.replays], "rear") == {"rear": bench.replays.playing["rear"].replay_source}
    with pytest.raises(ConfigError, match="a replay must be one of front, rear, got side"):
        played([bench.replays], "side")
    with pytest.raises(ConfigError, match=r"a replay must be one of \(none\), got side"):
        played([], "side")
