"""The recording thread with a real transmitter and real files, and its files by themselves."""

import contextlib
import os
import resource
import socket
import threading
import time
from pathlib import Path

import dpkt
import numpy as np
import pytest
from structlog.testing import capture_logs

from hilsim.capture.pcap import CaptureFile
from hilsim.config.rig import RecordSpec
from hilsim.daemon.streaming import recorder
from hilsim.daemon.streaming.recorder import CaptureSeries, Recorder, tape_slots
from hilsim.errors import CaptureError
from hilsim.protocols.ethernet import PAYLOAD_ONLY, VELODYNE_DATA_STYLE, VELODYNE_POSITION_STYLE, framing
from hilsim.protocols.flow_key import FlowKey
from hilsim.transmit.ring import push
from hilsim.transmit.specs import FlowSpec, SocketSpec, TransmitSpec
from hilsim.transmit.statistics import Counter
from hilsim.transmit.transmitter import Transmitter

SECOND = 1_000_000_000
UTC_NS = 1_800_000_000 * SECOND
SIZE = 84  # of a frame below; a record of it is 100 bytes


def framed(source_port, style=VELODYNE_DATA_STYLE):
    return framing(
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


def write(series, numbers, stamp_ns=None):
    stamps = UTC_NS + np.asarray(numbers, np.int64) * SECOND if stamp_ns is None else stamp_ns
    series.write(stamps, frames(numbers), np.full(len(numbers), SIZE, np.int32))


def numbers_in(path):
    return [int.from_bytes(datagram.payload[:8], "little") for datagram in CaptureFile(path)]


def files(directory):
    return {path.name: numbers_in(path) for path in sorted(directory.iterdir())}


@contextlib.contextmanager
def series(directory, **spec):
    made = CaptureSeries(RecordSpec(file="drive.pcap", **spec), directory)
    made.check()
    made.open()
    try:
        yield made
    finally:
        made.close()


@contextlib.contextmanager
def largest_file(size):
    """No file of this process may grow above ``size`` bytes: the kernel refuses the rest, as a full disk does."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


# -- files ---------------------------------------------------------------------------------------------------------------------------------


def test_without_rotation_there_is_one_file_of_the_given_name_and_a_former_one_is_replaced(tmp_path):
    for first in (0, 10):
        with series(tmp_path) as made:
            write(made, range(first, first + 5))
    assert files(tmp_path) == {"drive.pcap": [10, 11, 12, 13, 14]}


def test_a_recording_of_nothing_is_a_capture_too(tmp_path):
    with series(tmp_path):
        assert files(tmp_path) == {"drive.pcap": []}


def test_no_file_grows_above_the_size_given_and_the_next_goes_on_where_it_ended(tmp_path):
    with series(tmp_path, rotate_mb=0.01) as made:
        write(made, range(150))
        write(made, range(150, 250))
    sizes = [path.stat().st_size for path in sorted(tmp_path.iterdir())]
    assert files(tmp_path) == {"drive-0001.pcap": [*range(99)], "drive-0002.pcap": [*range(99, 198)], "drive-0003.pcap": [*range(198, 250)]}
    assert sizes[:2] == [24 + 99 * 100] * 2
    assert made.recorded == 250


def test_a_frame_larger_than_the_size_given_has_a_file_of_its_own(tmp_path):
    with series(tmp_path, rotate_mb=0.01) as made:
        big = np.zeros((3, 20_000), np.uint8)
        made.write(UTC_NS + np.arange(3), big, np.full(3, 20_000, np.int32))
    assert [path.stat().st_size for path in sorted(tmp_path.iterdir())] == [24 + 16 + 20_000] * 3


def test_files_begin_at_whole_multiples_of_the_time_given_after_the_first_frame(tmp_path):
    offsets_s = np.array([0.0, 0.9, 1.999, 2.0, 2.1, 7.5, 7.9, 8.0])
    with series(tmp_path, rotate_s=2.0) as made:
        write(made, range(8), UTC_NS + (offsets_s * SECOND).astype(np.int64))
    assert [*files(tmp_path).values()] == [[0, 1, 2], [3, 4], [5, 6], [7]]


def test_time_and_size_together_rotate_by_what_comes_first(tmp_path):
    with series(tmp_path, rotate_s=120.0, rotate_mb=0.01) as made:
        write(made, range(250))
    assert [(found[0], found[-1]) for found in files(tmp_path).values()] == [(0, 98), (99, 119), (120, 218), (219, 239), (240, 249)]


def test_numbers_go_on_where_an_earlier_run_stopped_and_nothing_is_replaced(tmp_path):
    (tmp_path / "drive-0007.pcap").write_bytes(b"an earlier run's")
    (tmp_path / "drive-x.pcap").write_bytes(b"something else")
    with series(tmp_path, rotate_s=1.0) as made:
        write(made, range(2))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["drive-0007.pcap", "drive-0008.pcap", "drive-0009.pcap", "drive-x.pcap"]
    assert (tmp_path / "drive-0007.pcap").read_bytes() == b"an earlier run's"


def test_numbers_grow_beyond_four_digits(tmp_path):
    (tmp_path / "drive-9999.pcap").touch()
    with series(tmp_path, rotate_s=1.0, keep=2) as made:
        write(made, range(3))
    assert files(tmp_path) == {"drive-10001.pcap": [1], "drive-10002.pcap": [2]}


def test_only_the_newest_files_are_kept_and_other_files_are_left_alone(tmp_path):
    for name in ("drive-0001.pcap", "drive.pcap", "drive-old.pcap", "overdrive-0001.pcap"):
        (tmp_path / name).touch()
    with series(tmp_path, rotate_s=1.0, keep=3) as made:
        write(made, range(10))
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["drive-0009.pcap", "drive-0010.pcap", "drive-0011.pcap", "drive-old.pcap", "drive.pcap", "overdrive-0001.pcap"]


def test_what_a_full_disk_took_is_counted_to_the_frame_and_can_be_read(tmp_path):
    with series(tmp_path) as made:
        write(made, range(10))
        with largest_file(24 + 4999 * 100 + 50), pytest.raises(CaptureError, match=r"drive\.pcap: cannot be written: File too large"):
            write(made, range(10, 6000))
        assert numbers_in(made.path) == [*range(made.recorded)]
        assert 10 <= made.recorded < 5000


def test_a_file_whose_very_header_does_not_fit_is_not_left_behind(tmp_path):
    with series(tmp_path, rotate_s=1.0) as made:
        write(made, [0])
        with largest_file(10), pytest.raises(CaptureError, match=r"drive-0002\.pcap: cannot be written: File too large"):
            write(made, [1])
    assert files(tmp_path) == {"drive-0001.pcap": [0]}


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full to stand for a full disk")
def test_a_device_that_takes_nothing_is_a_fault_and_is_not_deleted(tmp_path):
    (tmp_path / "drive.pcap").symlink_to("/dev/full")
    with pytest.raises(CaptureError, match=r"drive\.pcap: cannot be written: No space left on device"), series(tmp_path):
        pass
    assert (tmp_path / "drive.pcap").is_symlink()


@pytest.mark.parametrize(
    ("file", "fault"),
    [
        ("nowhere/drive.pcap", "nowhere/drive.pcap: the directory of a recording must exist, and .*nowhere does not"),
        ("taken", "taken: a recording must be a file, and this is a directory"),
    ],
)
def test_a_place_that_cannot_hold_files_is_named(tmp_path, file, fault):
    (tmp_path / "taken").mkdir()
    with pytest.raises(CaptureError, match=fault):
        CaptureSeries(RecordSpec(file=file), tmp_path).check()


def test_a_tape_holds_two_seconds_within_bounds():
    assert [tape_slots(rate) for rate in (10.0, 20_000.0, 1e6)] == [4096, 40_000, 65_536]


# -- the thread ----------------------------------------------------------------------------------------------------------------------------


class Bench:
    """A transmitter that sends to a loopback socket, and a recorder of it; rig time is CLOCK_MONOTONIC."""

    def __init__(self, stack, directory, flows, **spec):
        self.receiver = stack.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.receiver.bind(("127.0.0.1", 0))
        self.receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
        settings = TransmitSpec(scheduling="plain", late_policy="send", slots=4096, lock_memory=False)
        self.transmitter = stack.enter_context(Transmitter(settings, flows=4, capacity=1248, tape_slots=4096))
        self.recorder = Recorder(RecordSpec(file="drive.pcap", **spec), directory)
        self.rows = [self.add(f"flow{number}", flow) for number, flow in enumerate(flows)]
        self.recorder.open(self.transmitter)
        stack.callback(self.recorder.stop)
        self.recorder.start(utc_offset_ns=UTC_NS)
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
        self.recorder.add_flow(self.transmitter.flow_number(row), flow)
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
        deadline = time.monotonic() + 30
        while self.recorder.reading().recorded_packets < count:
            assert time.monotonic() < deadline
            time.sleep(0.001)

    def end(self):
        self.transmitter.stop()
        self.recorder.stop()


@pytest.fixture
def bench(tmp_path):
    with contextlib.ExitStack() as stack:
        yield lambda *flows, **spec: Bench(stack, tmp_path, flows, **spec)


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
    assert len(running.recorder._framings) < 30
    assert running.recorder._links.framed.size < 30


def test_an_error_of_this_program_ends_the_recording_as_a_fault_with_its_traceback(bench, monkeypatch):
    running = bench(framed(2368))
    running.send(running.rows[0], b"first")
    running.await_recorded(1)

    def broken(*_arguments):
        raise RuntimeError("no such row")

    monkeypatch.setattr(running.recorder._series, "write", broken)
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
    running.send_many(running.rows[0], 7000)  # 52 fit into the pipe, 256 into the thread's hands and 4096 onto the tape
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
    assert np.all(np.diff(found) > 0)  # in order, with a gap where the tape was full


def test_the_end_does_not_wait_for_ever_for_a_disk_that_hangs(bench, hanging_disk, monkeypatch):
    monkeypatch.setattr(recorder, "_LONGEST_END_S", 0.2)
    running = bench(framed(2368))
    running.send_many(running.rows[0], 1000)
    running.end()
    assert running.recorder.fault.endswith("drive.pcap: the disk took nothing for 0.2 s")
    left = next(thread for thread in threading.enumerate() if thread.name == "record")
    with capture_logs() as events:
        hanging_disk()
        left.join()
    assert [event["packets"] for event in events] == [1000]  # what the disk took after all
