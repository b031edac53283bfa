"""What a link carries; the rows are what was measured on a real PX4 v1.12."""

import pytest

from hilsim.errors import LinkError
from hilsim.transmit.links.budget import LinkRates, plan_link
from hilsim.transmit.links.line import NETWORK, Line, LineKind


def test_usb_carries_250_hz_whatever_its_baud_number():
    budget = plan_link(LinkRates(), line=Line(LineKind.USB, 57_600))
    assert (budget.sensor_hz, budget.is_lowered, budget.line_bytes_per_s) == (250.0, False, None)
    assert (budget.downlink_bytes_per_s, budget.actuator_hz) == (38_900, 196.0)


def test_921600_baud_carry_250_hz_and_all_that_px4_sends():
    budget = plan_link(LinkRates(), line=Line(LineKind.UART, 921_600))
    assert budget.uplink_bytes_per_s == 250 * 76 + 10 * 51 + 21 + 24 + 10 * 28 + 1000
    assert (budget.line_bytes_per_s, budget.downlink_bytes_per_s, budget.actuator_hz) == (92_160, 19_700, 196.0)


def test_115200_baud_are_lowered_from_250_hz_to_what_fits():
    budget = plan_link(LinkRates(), line=Line(LineKind.UART, 115_200))
    assert (budget.sensor_hz, budget.asked_sensor_hz, budget.is_lowered) == (119.0, 250.0, True)
    assert budget.uplink_bytes_per_s <= 0.95 * 11_520


def test_115200_baud_are_refused_for_250_hz_when_they_must_not_be_lowered():
    message = (
        r"the line must carry 20835 bytes/s \(250 Hz HIL_SENSOR at 76 bytes, 1835 for all else\), got 10944 of 115200 baud, which fits 119 Hz: "
        r"set at least 230400 baud on both sides, or a sensor rate of at most 119 Hz"
    )
    with pytest.raises(LinkError, match=message):
        plan_link(LinkRates(), line=Line(LineKind.UART, 115_200), may_lower=False)


def test_115200_baud_carry_100_hz():
    assert plan_link(LinkRates(sensor_hz=100.0), line=Line(LineKind.UART, 115_200), may_lower=False).sensor_hz == 100.0


def test_px4s_default_rate_at_115200_baud_leaves_about_as_many_actuator_messages_as_were_measured():
    budget = plan_link(LinkRates(sensor_hz=100.0), line=Line(LineKind.UART, 115_200))
    assert budget.downlink_bytes_per_s == 5760
    assert budget.actuator_hz == pytest.approx(55.5, rel=0.05)


def test_a_controller_set_to_send_more_than_the_line_carries_fills_the_line():
    budget = plan_link(LinkRates(sensor_hz=100.0), line=Line(LineKind.UART, 115_200), controller_bytes_per_s=80_000)
    assert budget.downlink_bytes_per_s == 11_520


def test_57600_baud_are_refused_because_50_hz_do_not_fit():
    with pytest.raises(LinkError, match=r"must carry 5635 bytes/s \(50 Hz .*\), got 5472 of 57600 baud, which fits 47 Hz: set at least 115200 baud"):
        plan_link(LinkRates(), line=Line(LineKind.UART, 57_600))


def test_57600_baud_are_refused_because_px4_would_not_switch_hil_on():
    lean = LinkRates(sensor_hz=50.0, gps_hz=5.0, station_bytes_per_s=300.0)
    with pytest.raises(LinkError, match=r"data rate must be above 5000 bytes/s, .*, got 2880 at 57600 baud: .*\(MAV_n_RATE\)"):
        plan_link(lean, line=Line(LineKind.UART, 57_600))
    assert plan_link(lean, line=Line(LineKind.UART, 57_600), controller_bytes_per_s=5700).sensor_hz == 50.0


def test_a_usb_port_with_too_low_a_rate_is_refused_as_well():
    with pytest.raises(LinkError, match=r"must be above 5000 bytes/s, .*, got 5000 at 921600 baud"):
        plan_link(LinkRates(), line=Line(LineKind.USB, 921_600), controller_bytes_per_s=5000)


@pytest.mark.parametrize("kind", [LineKind.UART, LineKind.USB])
def test_the_true_state_is_refused_on_a_serial_line(kind):
    with pytest.raises(LinkError, match="state_quaternion_hz must be 0 on a serial line, got 50: there PX4 takes it for its own estimate"):
        plan_link(LinkRates(state_quaternion_hz=50.0), line=Line(kind, 921_600))


def test_the_true_state_is_carried_by_a_network():
    budget = plan_link(LinkRates(state_quaternion_hz=50.0), line=NETWORK)
    assert (budget.sensor_hz, budget.line_bytes_per_s) == (250.0, None)


@pytest.mark.parametrize(
    ("rates", "fault"),
    [
        ({"sensor_hz": 49.0}, "sensor_hz must be 50 to 1000, got 49"),
        ({"gps_hz": -1.0}, "gps_hz must be 0 to 1000, got -1"),
        ({"obstacle_hz": 1001.0}, "obstacle_hz must be 0 to 1000, got 1001"),
        ({"station_bytes_per_s": 0.0}, "station_bytes_per_s must be positive, got 0"),
    ],
)
def test_an_impossible_rate_is_refused(rates, fault):
    with pytest.raises(ValueError, match=fault):
        LinkRates(**rates)
