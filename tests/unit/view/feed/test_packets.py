"""Packets of a feed: what a reader gets of them, and what becomes of those that it does not take."""

import numpy as np

from hilsim.api.packet import read_capture
from hilsim.capture.batches import CaptureBatches
from hilsim.show.view.feed import packets as module
from hilsim.show.view.feed.packets import LatestPackets


def test_packets_are_those_of_the_capture_with_their_headers(capture):
    path = capture("vlp16_strongest_gps.pcap")
    latest = LatestPackets()
    for batch in CaptureBatches(path):
        latest.add_rows("10.0.0.100", batch, np.arange(batch.size.size))
    expected = list(read_capture(path))
    taken = latest.take()
    assert {packet.stream for packet in taken} == {"data", "position"}
    assert list(taken) == sorted(expected, key=lambda packet: packet.time_ns)
    assert (latest.take(), latest.dropped) == ([], 0)


def test_the_oldest_packets_are_dropped_and_counted_where_none_takes_them(any_capture, monkeypatch):
    monkeypatch.setattr(module, "_MAX_WAITING", 5)
    packets = list(read_capture(any_capture("vlp16_strongest_gps.pcap")))[:8]
    latest = LatestPackets()
    latest.add(packets)
    assert (latest.take(), latest.dropped) == (packets[3:], 3)


def test_datagrams_whose_destination_is_not_known_are_left_out(any_capture):
    (batch, *_) = CaptureBatches(any_capture("vlp16_strongest_gps.pcap"))
    latest = LatestPackets()
    latest.add_rows("a", batch._replace(header_size=0), np.arange(3))
    assert latest.take() == []
