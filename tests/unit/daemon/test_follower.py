"""Followers with a real transmitter and real sinks: PCAP files, a sink that counts, and one that stalls for ever."""

import contextlib
import os
import resource
import socket
import threading
import time

import dpkt
import numpy as np
import pytest
from structlog.testing import capture_logs

from hilsim.capture.pcap import CaptureFile
from hilsim.capture.sinks.pcap import PcapSeriesSink, RecordSpec
from hilsim.daemon.sinks import follower
from hilsim.daemon.sinks.follower import Follower, queue_slots
from hilsim.families.velodyne.recognition import VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE
from hilsim.protocols.ethernet import PAYLOAD_ONLY, build_framing
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter

SECOND = 1_000_000_000
UTC_NS = 1_800_000_000 * SECOND
SIZE = 84  # of a frame below; a record of it is 100 bytes


def framed(source_port, style=VELODYNE_DATA_STYLE):
    return build_framing(
        style,
        FlowKey("192.168.1.201", source_port, "192.168.1.77", 2368),
        source_mac="60:76:88:10:00:01",
        destination_mac="ff:ff:ff:ff:ff:ff",
    )


def frames(numbers):
    """Ethernet frames of 84 bytes whose payload begins with a number."""
    made = np.zeros((len(numbers), SIZE), np.uint8)
    made[:, :42] = framed(2368).template
    made[:, 16:18], made[:, 38:40] = (0, 70), (0, 50)  # the lengths in the headers
    made[:, 42:50] = np.asarray(numbers, np.int64).view(np.uint8).reshape(-1, 8)
    return made


def numbers_in(path):
    return [int.from_bytes(datagram.payload[:8], "little") for datagram in CaptureFile(path)]


@contextlib.contextmanager
def largest_file(size):
    """No file of this process may grow above ``size`` bytes: the kernel refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_queue_holds_two_seconds_within_bounds():
    assert [queue_slots(rate) for rate in (10.0, 20_000.0, 1e6)] == [4096, 40_000, 65_536]


class Bench:
    """A transmitter that sends to a loopback socket, and followers of it, a PCAP file first; rig time is CLOCK_MONOTONIC."""

    def __init__(self, stack, directory, flows, *others):
        self.receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        settings = TransmitSpec(scheduling="plain", late_policy="send", slots=4096, lock_memory=False)
        self.transmitter = stack.enter_context(Transmitter(settings, flows=4, capacity=1248, queues=1 + len(others), queue_slots=4096))
        sinks = [("record", PcapSeriesSink(RecordSpec(file="drive.pcap"), directory)), *((type(sink).__name__, sink) for sink in others)]
        self.followers = [Follower(name, sink, queue) for queue, (name, sink) in enumerate(sinks)]
        self.recorder = self.followers[0]
        self.rows = [self.add(f"flow{number}", flow) for number, flow in enumerate(flows)]
        stack.callback(self.end)
        for each in self.followers:
            each.open(self.transmitter)
        for each in self.followers:
            each.start(utc_offset_ns=UTC_NS)
        self.transmitter.start()

    @property
    def sent(self):
        return self.transmitter.statistics.counters[:, Counter.PACKETS].sum()

    def send_many(self, row, count):
        """VLP-16 payloads, as fast as the loop goes."""
        data, until = np.zeros(1206, np.uint8), self.sent + count
        due_ns, deadline = time.monotonic_ns(), time.monotonic() + 30
        for number in range(count):
            data[:8] = np.array([number], np.int64).view(np.uint8)
            while not push(self.transmitter.rings, row, due_ns, 0, data, data.size):
                time.sleep(0.001)
        while self.sent < until:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def add(self, name, flow):
        target = SocketSpec(source="127.0.0.1", source_port=0, destination="127.0.0.1", destination_port=self.receiver.getsockname()[1])
        row = self.transmitter.add_flow(FlowSpec(name=name, socket=target, packet_rate_hz=100))
        for each in self.followers:
            each.add_flow(self.transmitter.flow_number(row), name, flow)
        return row

    def send(self, row, payload):
        before = self.transmitter.statistics.counters[row, Counter.PACKETS]
        data = np.frombuffer(payload, np.uint8).copy()
        assert push(self.transmitter.rings, row, time.monotonic_ns(), 0, data, data.size)
        deadline = time.monotonic() + 30
        while self.transmitter.statistics.counters[row, Counter.PACKETS] == before:
            assert time.monotonic() < deadline
            time.sleep(0.0005)

    def await_recorded(self, count):
        self.await_written(self.recorder, count)

    @staticmethod
    def await_written(each, count):
        deadline = time.monotonic() + 30
        while each.reading().recorded_packets < count:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def end(self):
        self.transmitter.stop()
        for each in self.followers:
            each.end()
        for each in self.followers:
            each.stop()


@pytest.fixture
def bench(tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda *flows, others=(): Bench(stack, tmp_path, flows, *others)


def test_payloads_get_their_flows_headers_and_frames_stay_as_they_are(bench, tmp_path):
    running = bench(framed(2368), framed(8308, VELODYNE_POSITION_STYLE), PAYLOAD_ONLY)
    whole = frames([77])[0].tobytes()
    begun_ns = time.monotonic_ns()
    for number in range(3):
        running.send(running.rows[0], b"data%d" % number)
        running.send(running.rows[1], b"position%d" % number)
        running.send(running.rows[2], whole)
    running.end()
    with (tmp_path / "drive.pcap").open("rb") as file:
        records = [frame for _, frame in dpkt.pcap.Reader(file)]
    assert records[2::3] == [whole] * 3
    for number in range(3):
        data, position = (dpkt.ethernet.Ethernet(frame).data for frame in records[3 * number : 3 * number + 2])
        assert (data.data.data, data.data.sport, data.ttl, data.id, data.data.sum) == (b"data%d" % number, 2368, 255, 0, 0)
        assert (position.data.data, position.data.sport, position.ttl, position.id) == (b"position%d" % number, 8308, 64, number + 1)
        assert position.data.sum != 0
    stamps = [datagram.host_stamp_ns - UTC_NS for datagram in CaptureFile(tmp_path / "drive.pcap")]
    assert stamps == sorted(stamps)
    assert begun_ns < stamps[0]
    assert stamps[-1] < time.monotonic_ns()
    assert stamps[-1] == running.transmitter.statistics.counters[running.rows[2], Counter.LAST_SEND_NS]


def test_a_flow_that_takes_over_a_row_is_recorded_under_its_own_headers_and_the_others_count_on(bench, tmp_path):
    running = bench(framed(1111), framed(2222, VELODYNE_POSITION_STYLE))
    running.send(running.rows[0], b"first")
    running.send(running.rows[1], b"other")
    running.await_recorded(2)
    running.transmitter.remove_flow(running.rows[0])
    assert running.add("again", framed(3333, VELODYNE_POSITION_STYLE)) == running.rows[0]
    running.send(running.rows[0], b"again")
    running.send(running.rows[1], b"other")
    running.end()
    found = list(CaptureFile(tmp_path / "drive.pcap"))
    assert [(datagram.source_port, bytes(datagram.payload)) for datagram in found] == [
        (1111, b"first"),
        (2222, b"other"),
        (3333, b"again"),
        (2222, b"other"),
    ]
    assert [int.from_bytes(datagram.link[18:20], "big") for datagram in found] == [0, 1, 1, 2]  # IP identification


def test_reloads_without_end_take_no_memory_and_no_frame_another_flows_headers(bench, tmp_path):
    running = bench(framed(1000), framed(2222, VELODYNE_POSITION_STYLE))
    row = running.rows[0]
    for reload in range(60):
        running.send(row, b"%d" % reload)
        running.transmitter.remove_flow(row)
        row = running.add(f"again{reload}", framed(1001 + reload))
        running.await_recorded(max(reload - 5, 0))  # the recorder lags behind, as a disk does
    running.end()
    assert [(datagram.source_port, int(bytes(datagram.payload))) for datagram in CaptureFile(tmp_path / "drive.pcap")] == [
        (1000 + reload, reload) for reload in range(60)
    ]
    assert len(running.recorder._sent._framings) < 30
    assert running.recorder._sent._links.framed.size < 30


def test_datagrams_of_a_flow_that_was_not_announced_are_counted_and_make_no_frames(bench, tmp_path):
    running = bench(framed(1111), framed(2222))
    target = running.transmitter.flows[running.rows[0]]
    running.send(running.rows[0], b"first")
    running.transmitter.retarget_flow(running.rows[0], target, lambda _number: None)  # once: a number that was announced would be used again
    for _ in range(3):
        running.send(running.rows[0], b"no flow's")
    running.send(running.rows[1], b"other")
    running.end()
    found = list(CaptureFile(tmp_path / "drive.pcap"))
    assert [(datagram.source_port, bytes(datagram.payload)) for datagram in found] == [(1111, b"first"), (2222, b"other")]
    assert running.recorder.reading().unrecorded_packets == 3


def test_an_error_of_this_program_ends_the_recording_as_a_fault_with_its_traceback(bench, monkeypatch):
    running = bench(framed(2368))
    running.send(running.rows[0], b"first")
    running.await_recorded(1)

    def broken(*_arguments):
        raise RuntimeError("no such row")

    monkeypatch.setattr(running.recorder.sink, "write", broken)
    with capture_logs() as events:
        running.send(running.rows[0], b"second")
        deadline = time.monotonic() + 30
        while not running.recorder.fault:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    assert running.recorder.fault == "an error of this program: RuntimeError: no such row"
    assert [event["event"] for event in events] == ["recording.broke", "recording.ended"]
    assert events[0]["exc_info"] is True
    assert running.recorder.reading().running is False
    assert running.recorder.reading().unrecorded_packets == 1


def test_everything_that_was_sent_before_the_end_is_in_the_file(bench, tmp_path):
    running = bench(framed(2368))
    running.send_many(running.rows[0], 3000)
    running.end()
    assert numbers_in(tmp_path / "drive.pcap") == [*range(3000)]
    assert (running.recorder.reading().recorded_packets, running.recorder.reading().unrecorded_packets) == (3000, 0)


def test_a_full_disk_ends_the_recording_and_not_the_stream(bench, tmp_path):
    running = bench(framed(2368))
    with largest_file(24 + 20 * 1264 + 100):
        for number in range(40):
            running.send(running.rows[0], number.to_bytes(8, "little") + bytes(1198))
        deadline = time.monotonic() + 30
        while not running.recorder.fault:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    for number in range(40, 60):
        running.send(running.rows[0], number.to_bytes(8, "little") + bytes(1198))
    reading = running.recorder.reading()
    assert running.recorder.fault.endswith(f"File too large; {24 + reading.recorded_packets * 1264} bytes were kept")
    assert (reading.running, reading.recorded_packets + reading.unrecorded_packets) == (False, 60)
    running.end()
    assert numbers_in(tmp_path / "drive.pcap") == [*range(reading.recorded_packets)]
    running.receiver.setblocking(False)  # noqa: FBT003 - the socket's own signature
    assert [int.from_bytes(running.receiver.recv(2000)[:8], "little") for _ in range(60)] == [*range(60)]


@pytest.fixture
def hanging_disk(tmp_path):
    """A pipe in the recording's place: what is written stays there until ``read`` takes it; gives ``read``, which ends with the recording."""
    os.mkfifo(tmp_path / "drive.pcap")
    descriptor = os.open(tmp_path / "drive.pcap", os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)

    def read():
        pieces = []
        while piece := os.read(descriptor, 1 << 20):
            pieces.append(piece)
        (tmp_path / "read.pcap").write_bytes(b"".join(pieces))

    yield read
    os.close(descriptor)


def test_a_disk_that_pauses_too_long_costs_the_recording_packets_and_the_stream_none(bench, hanging_disk, tmp_path):
    running = bench(framed(2368))
    running.send_many(running.rows[0], 7000)  # 52 fit into the pipe, 256 into the thread's hands and 4096 onto the queue
    assert running.sent == 7000
    assert running.recorder.reading().unrecorded_packets >= 7000 - 52 - 256 - 4096
    reader = threading.Thread(target=hanging_disk)
    reader.start()
    with capture_logs() as events:
        running.end()
    reader.join()
    reading = running.recorder.reading()
    assert reading.recorded_packets + reading.unrecorded_packets == 7000
    assert [event["event"] for event in events] == ["recording.packets_missed", "recording.ended"]
    found = numbers_in(tmp_path / "read.pcap")
    assert len(found) == reading.recorded_packets
    assert np.all(np.diff(found) > 0)  # in order, with a gap where the queue was full


def test_the_end_does_not_wait_for_ever_for_a_disk_that_hangs(bench, hanging_disk, monkeypatch):
    monkeypatch.setattr(follower, "_LONGEST_END_S", 0.2)
    running = bench(framed(2368))
    running.send_many(running.rows[0], 1000)
    running.end()
    assert running.recorder.fault.endswith("drive.pcap: the sink took nothing for 0.2 s")
    left = next(thread for thread in threading.enumerate() if thread.name == "sink-record")
    with capture_logs() as events:
        hanging_disk()
        left.join()
    assert [event["packets"] for event in events] == [1000]  # what the disk took after all


class CountedBytes:
    """The smallest sink that is of use: bytes of payload by the name of their flow."""

    target = "memory"

    def __init__(self):
        self.written = 0
        self.bytes = {}
        self.lateness_ns = []
        self.is_open = False

    def check(self):
        """Always."""

    def open(self, flows):
        self.is_open, self.announced = True, [flow.name for flow in flows]

    def write(self, batch):
        for row, number in enumerate(batch.flow.tolist()):
            name = batch.flows[number].name
            self.bytes[name] = self.bytes.get(name, 0) + batch.datagram(row).size
        self.lateness_ns += (batch.stamp_ns - batch.deadline_ns).tolist()
        self.written += batch.size.size

    def close(self):
        self.is_open = False


class Stalled(CountedBytes):
    """A sink that never returns from its first batch."""

    def __init__(self):
        super().__init__()
        self.release = threading.Event()

    def write(self, batch):
        self.release.wait()
        super().write(batch)


class Broken(CountedBytes):
    """A sink whose network is gone."""

    def write(self, _batch):
        raise ConnectionResetError("the viewer has gone")


def test_another_sink_counts_bytes_by_flow_beside_the_file(bench, tmp_path):
    counted = CountedBytes()
    running = bench(framed(2368), framed(8308, VELODYNE_POSITION_STYLE), PAYLOAD_ONLY, others=[counted])
    for number in range(3):
        running.send(running.rows[0], bytes(1206))
        running.send(running.rows[1], bytes(512))
        running.send(running.rows[2], frames([number])[0].tobytes())
    running.end()
    assert counted.announced == ["flow0", "flow1", "flow2"]
    assert counted.bytes == {"flow0": 3 * 1206, "flow1": 3 * 512, "flow2": 3 * (SIZE - 42)}
    assert all(lateness_ns >= 0 for lateness_ns in counted.lateness_ns)
    assert not counted.is_open
    assert len(list(CaptureFile(tmp_path / "drive.pcap"))) == 9


def test_a_sink_that_stalls_for_ever_costs_the_stream_and_the_other_sinks_nothing(bench, monkeypatch, tmp_path):
    monkeypatch.setattr(follower, "_LONGEST_END_S", 0.2)
    stalled, counted = Stalled(), CountedBytes()
    running = bench(framed(2368), others=[stalled, counted])
    for _ in range(3):  # 4096 fit onto a queue; those of the others are emptied meanwhile
        running.send_many(running.rows[0], 3000)
        for each in (running.followers[0], running.followers[2]):
            running.await_written(each, running.sent)
    running.end()
    recorded, missing, whole = (each.reading() for each in running.followers)
    assert (running.sent, recorded.recorded_packets, recorded.unrecorded_packets) == (9000, 9000, 0)
    assert (whole.recorded_packets, whole.unrecorded_packets) == (9000, 0)
    assert counted.bytes == {"flow0": 9000 * 1206}
    assert len(numbers_in(tmp_path / "drive.pcap")) == 9000
    assert missing.unrecorded_packets >= 9000 - 4096 - 256
    assert running.followers[1].fault == "memory: the sink took nothing for 0.2 s"
    stalled.release.set()
    for thread in threading.enumerate():
        if thread.name == "sink-Stalled":
            thread.join()


def test_a_sink_that_fails_ends_alone(bench, tmp_path):
    counted = CountedBytes()
    running = bench(framed(2368), others=[Broken(), counted])
    running.send_many(running.rows[0], 100)
    deadline = time.monotonic() + 30
    while not running.followers[1].fault:
        assert time.monotonic() < deadline
        time.sleep(0.001)
    running.send_many(running.rows[0], 100)
    running.end()
    assert [each.fault for each in running.followers] == ["", "the viewer has gone", ""]
    assert running.followers[1].reading().unrecorded_packets == 200
    assert (counted.written, len(numbers_in(tmp_path / "drive.pcap"))) == (200, 200)
