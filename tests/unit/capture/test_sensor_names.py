"""Sensors of one stream, told apart by source address and the destination port of their points."""

import numpy as np
import pytest

from hilsim.capture.batches import gathered
from hilsim.capture.datagram import CapturedDatagram
from hilsim.capture.sensor_names import SensorNames
from tests.unit.background.recordings import stdv_payload, vlp16_payloads

A, B = "10.0.0.1", "10.0.0.2"
DATA, POSITION = vlp16_payloads(1)[0], bytes(512)


def datagram(source, port, payload=DATA):
    return CapturedDatagram(0, source, 2368, "10.0.0.9", port, payload, None, is_ethernet=False, frame=1)


def test_packets_that_come_before_their_sensors_points_are_the_sensors():
    datagrams = [datagram(*each) for each in [(A, 2368), (A, 8309, POSITION), (A, 2369), (A, 8308, POSITION)]]
    names = SensorNames()
    assert [names.of(each) for each in names.ahead(datagrams)] == [A, f"{A}:2369", f"{A}:2369", A]


@pytest.mark.parametrize(
    ("chosen", "stream", "expected"),
    [
        ("", [(A, 2368), (B, 2368), (A, 2368)], [A, B, A]),
        ("", [(A, 2368), (A, 2369), (A, 2368), (B, 2369), (A, 2369)], [A, f"{A}:2369", A, B, f"{A}:2369"]),
        (f"{A}:2368", [(A, 2368), (A, 2369)], [f"{A}:2368", f"{A}:2369"]),
        ("", [(A, 8308, POSITION), (A, 2368), (A, 2369), (A, 8309, POSITION), (A, 8308, POSITION)], [A, A, f"{A}:2369", f"{A}:2369", A]),
        ("", [(A, 3000), (A, 4000), (A, 5000, POSITION), (A, 6000, POSITION), (A, 5000, POSITION)], [A, f"{A}:4000", A, f"{A}:4000", A]),
        ("", [(A, 2368), (A, 8808, stdv_payload([(0, 5, 0, 9, 0, 0)])), (A, 9, b"?"), (B, 9, b"?")], [A, f"{A}:8808", A, B]),
    ],
)
def test_a_sensor_is_an_address_and_a_port_of_points(chosen, stream, expected):
    datagrams = [datagram(*each) for each in stream]
    names = SensorNames(chosen)
    assert [names.of(each) for each in datagrams] == expected
    batch, rows = gathered(datagrams), {}
    for name, own in SensorNames(chosen).rows(batch):
        rows |= dict.fromkeys(own.tolist(), name)
    assert set(rows) == set(range(len(stream)))
    if POSITION not in [each[-1] for each in stream]:
        assert [rows[row] for row in range(len(stream))] == expected
    names = SensorNames(chosen)
    for row in range(len(stream)):  # rows of a batch one by one are datagrams
        assert next(names.rows(batch, np.array([row])))[0] == expected[row]
