"""The shipped HDL-32E, which has only what a profile says beside the table of models, passes every rule of its model."""

import numpy as np
import pytest

from hilsim.read.analysis.conformance.checker import check

SPAN_NS = 2_000_000_000


@pytest.mark.parametrize("setting", [{"rotation_rate_rpm": 706}, {"rotation_rate_rpm": 600, "gps": None}, {"return_mode": "dual"}], ids=str)
def test_the_shipped_hdl32e_draws_no_error_and_no_warning(own_stream, setting):
    (sensor,) = check(own_stream.emulate(SPAN_NS, profile="hdl32e", **setting)).sensors
    assert [finding.message for finding in sensor.findings] == []
    assert sensor.summary.model == "HDL-32E"
    assert sensor.summary.position_rate_hz == pytest.approx(200.5, abs=1.0)


def test_without_imu_words_it_would_fail(own_stream, judge, mutate_own):
    blanked = mutate_own(own_stream.emulate(SPAN_NS, profile="hdl32e"))
    assert judge(blanked).errors == {"position.imu"}


@pytest.fixture
def mutate_own():
    """The datagrams with the IMU words of position packets set to zero."""

    def blank(payload):
        return payload[:14] + bytes(24) + payload[38:] if len(payload) == 512 else payload

    return lambda datagrams: [type(d)(**{name: getattr(d, name) for name in d.__slots__} | {"payload": blank(d.payload)}) for d in datagrams]


def test_position_stamps_lead_those_of_data_packets_as_a_real_units_do(own_stream):
    stamp_us, leads_us = None, []
    for datagram in own_stream.emulate(SPAN_NS, profile="hdl32e"):
        if len(datagram.payload) == 1206:
            stamp_us = int.from_bytes(datagram.payload[1200:1204], "little")
        elif stamp_us is not None:
            leads_us.append((int.from_bytes(datagram.payload[198:202], "little") - stamp_us) % 3_600_000_000)
    assert np.quantile(leads_us, [0.0, 0.5, 1.0]) == pytest.approx([261, 587, 813], abs=40)  # of a public capture
