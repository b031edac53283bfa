"""What goes to the controller, in what order and how fast; the line's time is an argument."""

import socket

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.send_queue import OutboxCount, allocate_outbox, build_pace, empty, flush, offer_sample, post
from hilsim.protocols.mavlink.codec import write_frame
from hilsim.protocols.mavlink.frames import LARGEST_FRAME, allocate_stream, append, next_frame
from hilsim.protocols.mavlink.messages import HEARTBEAT, HIL_SENSOR, build_draft, build_origin
from hilsim.transmit.links.descriptors import Outcome
from hilsim.transmit.links.line import SerialSpec
from hilsim.transmit.links.serial_port import open_serial
from hilsim.transmit.packet_queue import allocate_packet_queue, put, waiting
from tests.mavlink import hil_sensor_bytes, mixture, unknown_bytes

MS = 1_000_000
S = 1_000_000_000
START = 5 * S
USB = build_pace(line_bytes_per_s=None, station_bytes_per_s=100_000)
UART_115200 = build_pace(line_bytes_per_s=11_520, station_bytes_per_s=1000)


class Way:
    """An outbox before a socket, whose other end says what came."""

    def __init__(self, kind=socket.SOCK_STREAM):
        self.near, self.far = socket.socketpair(socket.AF_UNIX, kind)
        self.near.settimeout(0)
        self.far.settimeout(0)
        self.outbox, self.stations, self.sender = allocate_outbox(8), allocate_packet_queue(16, LARGEST_FRAME), build_origin(1, 200)

    def beat(self):
        frame = np.zeros(LARGEST_FRAME, np.uint8)
        beat = build_draft(HEARTBEAT)
        beat.record["mavlink_version"] = 3
        return bool(post(self.outbox, frame, write_frame(HEARTBEAT, beat.payload, self.sender, frame)))

    def offer(self, time_usec):
        sample = build_draft(HIL_SENSOR)
        sample.record["time_usec"], sample.record["fields_updated"] = time_usec, 0x1FFF
        offer_sample(self.outbox, sample.payload)

    def station(self, data):
        return bool(put(self.stations, 0, 0, 0, np.frombuffer(data, np.uint8), len(data)))

    def flush(self, now_ns, at_pace=USB):
        return Outcome(flush(self.outbox, self.stations, self.sender, self.near.fileno(), True, now_ns, at_pace))  # noqa: FBT003

    def came(self):
        """Message ids and frames that arrived."""
        data = b""
        try:
            while True:
                data += self.far.recv(1 << 16)
        except BlockingIOError:
            pass
        stream, frames = allocate_stream(1 << 20), []
        append(stream, np.frombuffer(data, np.uint8))
        while (frame := next_frame(stream)).state:
            frames.append((frame.id, stream.buffer[frame.start : frame.start + frame.size].tobytes(), frame.sequence))
        assert stream.place[0] == stream.place[1]
        return frames

    def count(self, name):
        return int(self.outbox.counts[name])


@pytest.fixture
def way():
    made = Way()
    yield made
    made.near.close()
    made.far.close()


def ids(frames):
    return [number for number, _, _ in frames]


def test_own_frames_go_first_then_ground_stations_then_the_sample(way):
    way.offer(1)
    way.station(unknown_bytes())
    way.beat()
    assert way.flush(START) == Outcome.DONE
    came = way.came()
    assert ids(came) == [0, 163, 107]
    assert [sequence for number, _, sequence in came if number != 163] == [0, 1]


def test_ground_stations_frames_go_byte_for_byte(way):
    for each in mixture():
        assert way.station(each)
    way.flush(START)
    way.flush(START + S)
    assert [data for _, data, _ in way.came()] == mixture()
    assert way.count(OutboxCount.STATION_FRAMES) == len(mixture())


def test_a_sample_that_was_not_sent_is_replaced_and_no_sequence_number_is_missing(way):
    for time_usec in (1, 2, 3):
        way.offer(time_usec)
    way.flush(START)
    way.offer(4)
    way.flush(START)
    assert [(data[10], sequence) for _, data, sequence in way.came()] == [(3, 0), (4, 1)]
    assert (way.count(OutboxCount.SAMPLES), way.count(OutboxCount.SAMPLES_REPLACED)) == (2, 2)


def test_without_a_sample_there_is_nothing_to_send(way):
    assert way.flush(START) == Outcome.DONE
    assert way.came() == []


def test_250_hz_on_115200_baud_send_what_the_line_carries_and_nothing_old(way):
    sent_us = []
    for tick in range(2500):  # 10 s
        now_ns = START + tick * 4 * MS
        way.offer(now_ns // 1000)
        way.flush(now_ns, UART_115200)
        for _, data, _ in way.came():
            sent_us.append(now_ns // 1000 - int.from_bytes(data[10:18], "little"))
    rate = len(sent_us) / 10
    assert 11_520 / 74 - 1 <= rate <= 11_520 / 74 + 1
    assert max(sent_us) <= 0
    assert way.count(OutboxCount.SAMPLES_REPLACED) == pytest.approx(2500 - len(sent_us), abs=1)


def test_a_gps_fix_waits_for_one_frame_at_most(way):
    waited = []
    for tick in range(1000):
        now_ns = START + tick * MS
        way.offer(tick)
        if tick % 100 == 50:
            way.beat()
            posted_ns = now_ns
        way.flush(now_ns, UART_115200)
        waited += [now_ns - posted_ns for number in ids(way.came()) if number == 0]
    assert len(waited) == 10
    assert max(waited) <= 74 * S / 11_520


def test_a_ground_station_that_floods_gets_its_share_and_the_samples_theirs(way):
    flood, samples, station_bytes = hil_sensor_bytes(), 0, 0
    for tick in range(5000):  # 10 s at 2 ms
        while way.station(flood):
            pass
        if tick % 5 == 0:
            way.offer(tick)
        way.flush(START + tick * 2 * MS, UART_115200)
        for _, data, _ in way.came():
            station_bytes += len(data) if data == flood else 0
            samples += data != flood
    assert station_bytes == pytest.approx(10 * 1000 + 560, abs=150)
    assert samples >= 995
    assert way.count(OutboxCount.SAMPLES_REPLACED) <= 5


def test_frames_that_were_held_back_do_not_leave_in_a_burst_after_a_stall(way):
    for _ in range(8):
        way.beat()
    way.flush(START, UART_115200)
    burst = len(way.came())
    assert burst == 1 + 4 * 11_520 // 1000 // 21
    way.flush(START + 10 * S, UART_115200)
    assert len(way.came()) == burst


def test_a_frame_written_in_part_is_finished_first(cable):
    plug = cable()
    port = open_serial(SerialSpec(port=plug.device))
    outbox, stations, sender = allocate_outbox(), allocate_packet_queue(512, LARGEST_FRAME), build_origin(1, 200)
    frame = np.frombuffer(hil_sensor_bytes(), np.uint8)
    try:
        filled = 0
        while flush(outbox, stations, sender, port.descriptor, True, START + filled * S, USB) == Outcome.DONE or outbox.state[0] == 0:  # noqa: FBT003
            assert put(stations, 0, 0, 0, frame, frame.size)
            filled += 1
        written = outbox.counts[OutboxCount.BYTES]
        assert outbox.state[0] == written % frame.size > 0
        came = plug.read_whole(written)
        assert flush(outbox, stations, sender, port.descriptor, True, START + filled * S, USB) == Outcome.DONE  # noqa: FBT003
        came += plug.read_whole(outbox.counts[OutboxCount.BYTES] - written)
    finally:
        port.close()
    assert came == frame.tobytes() * (len(came) // frame.size)


def test_a_lost_link_is_gone_and_what_waited_is_thrown_away(way):
    way.far.close()
    way.beat()
    assert way.flush(START) == Outcome.GONE
    way.beat()
    way.offer(1)
    way.station(unknown_bytes())
    empty(way.outbox, way.stations)
    assert way.count(OutboxCount.THROWN_AWAY) == 4
    assert (waiting(way.outbox.own), waiting(way.stations)) == (0, 0)
    assert way.flush(START) == Outcome.DONE


def test_own_frames_beyond_the_queue_are_refused_and_counted(way):
    assert [way.beat() for _ in range(10)] == [True] * 8 + [False] * 2
    assert way.count(OutboxCount.OWN_REFUSED) == 2


def test_each_frame_is_a_datagram_of_its_own():
    way = Way(socket.SOCK_DGRAM)
    with way.near, way.far:
        way.beat()
        way.offer(1)
        assert flush(way.outbox, way.stations, way.sender, way.near.fileno(), False, START, USB) == Outcome.DONE  # noqa: FBT003
        assert [len(way.far.recv(1000)) for _ in range(2)] == [21, 74]


@pytest.mark.parametrize(
    ("arguments", "fault"),
    [
        ({"line_bytes_per_s": 0, "station_bytes_per_s": 1}, "line_bytes_per_s must be positive, got 0"),
        ({"line_bytes_per_s": None, "station_bytes_per_s": 0}, "station_bytes_per_s must be positive, got 0"),
        ({"line_bytes_per_s": None, "station_bytes_per_s": 1, "ahead_ns": -1}, "ahead_ns must be at least 0, got -1"),
    ],
)
def test_an_impossible_pace_is_refused(arguments, fault):
    with pytest.raises(ValueError, match=fault):
        build_pace(**arguments)
