"""Every rule of a rig's ``[vehicle]``, by its words."""

import re

import pytest

from hilsim.parts.vehicle.specs import (
    RATES_HZ,
    ControllerSpec,
    FlightWaypointSpec,
    GroundStationSpec,
    VehicleRigSpec,
    host_and_port,
    is_address,
)

SERIAL = {"kind": "serial", "port": "/dev/ttyACM0"}


def refused(spec, message, /, **values):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        spec(**values)


@pytest.mark.parametrize("text", ["127.0.0.1:1", "10.1.2.3:65535"])
def test_an_address_is_four_numbers_and_a_port(text):
    assert is_address(text)


@pytest.mark.parametrize(
    "text", ["", "127.0.0.1", "127.0.0.1:", ":14550", "127.0.0.1:0", "127.0.0.1:65536", "127.0.0.1:+1", "localhost:14550", "1.2.3:4"]
)
def test_anything_else_is_none(text):
    assert not is_address(text)


def test_an_address_is_taken_apart():
    assert host_and_port("127.0.0.1:14550") == ("127.0.0.1", 14550)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"kind": "serial"}, 'port must be given for kind "serial" and only for it'),
        ({"kind": "tcp", "port": "/dev/ttyACM0"}, 'port must be given for kind "serial" and only for it'),
        (SERIAL | {"port": "ttyACM0"}, 'port must be absolute, such as "/dev/serial/by-id/usb-…", got "ttyACM0"'),
        (SERIAL | {"baud": 1199}, "baud must be 1200 to 12000000, got 1199"),
        (SERIAL | {"baud": 12_000_001}, "baud must be 1200 to 12000000, got 12000001"),
        ({"kind": "tcp", "address": "localhost:4560"}, 'address must be like "127.0.0.1:4560", got "localhost:4560"'),
        ({"kind": "udp"}, 'address must be given for kind "udp"'),
        (SERIAL | {"address": "127.0.0.1:1"}, 'address must not be given for kind "serial", got "127.0.0.1:1"'),
        ({"address": "127.0.0.1:1"}, 'address must not be given for kind "hold", got "127.0.0.1:1"'),
        (SERIAL | {"lockstep": True}, 'lockstep must be with kind "tcp": hardware runs by its own clock, got "serial"'),
        ({"rate_hz": 240}, "rate_hz must be one of 50, 100, 125, 200, 250, 500, got 240"),
        ({"magnetometer_hz": 24}, "magnetometer_hz must be 25 to 100, got 24"),
        ({"magnetometer_hz": 101}, "magnetometer_hz must be 25 to 100, got 101"),
        ({"barometer_hz": 9}, "barometer_hz must be 10 to 100, got 9"),
        ({"barometer_hz": 101}, "barometer_hz must be 10 to 100, got 101"),
        ({"gps_hz": 0}, "gps_hz must be 1 to 20, got 0"),
        ({"gps_hz": 21}, "gps_hz must be 1 to 20, got 21"),
        ({"system_id": 0}, "system_id must be 1 to 255, got 0"),
        ({"system_id": 256}, "system_id must be 1 to 255, got 256"),
        ({"component_id": 0}, "component_id must be 1 to 255, got 0"),
        ({"component_id": 256}, "component_id must be 1 to 255, got 256"),
    ],
)
def test_a_controllers_rule_says_what_is_wrong(values, message):
    refused(ControllerSpec, message, **values)


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_sensor_frames_are_whole_steps_apart(rate_hz):
    assert 1_000_000_000 // ControllerSpec(rate_hz=rate_hz).rate_hz % 1_000_000 == 0


@pytest.mark.parametrize(
    ("values", "endpoint"),
    [
        ({"kind": "tcp"}, ("127.0.0.1", 4560)),
        ({"kind": "ardupilot"}, ("127.0.0.1", 9002)),
        ({"kind": "tcp", "address": "10.0.0.1:5000"}, ("10.0.0.1", 5000)),
        ({"kind": "udp", "address": "10.0.0.1:14560"}, ("10.0.0.1", 14560)),
    ],
)
def test_a_controller_without_an_address_has_the_usual_one(values, endpoint):
    assert ControllerSpec(**values).endpoint == endpoint


def test_a_ground_stations_address_is_one():
    refused(GroundStationSpec, 'address must be like "127.0.0.1:14550", got "qgc:14550"', address="qgc:14550")
    assert GroundStationSpec() == GroundStationSpec(kind="udp", address="127.0.0.1:14550", actuators=False)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"time_s": -1.0, "position_m": (0.0, 0.0, 0.0)}, "time_s must be at least 0, got -1.0"),
        ({"time_s": float("inf"), "position_m": (0.0, 0.0, 0.0)}, "time_s must be at least 0, got inf"),
        ({"time_s": 0.0, "position_m": (0.0, float("nan"), 0.0)}, "position_m must be finite, got (0.0, nan, 0.0)"),
    ],
)
def test_a_waypoints_rule_says_what_is_wrong(values, message):
    refused(FlightWaypointSpec, message, **values)


def waypoints(*times):
    return tuple(FlightWaypointSpec(time_s=time_s, position_m=(0.0, 0.0, 1.0)) for time_s in times)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"position_m": (float("nan"), 0.0, 0.0)}, "position_m must be finite, got (nan, 0.0, 0.0)"),
        ({"yaw_deg": float("inf")}, "yaw_deg must be finite, got inf"),
        ({"year": 2024.9}, "year must be 2025 to 2030, got 2024.9"),
        ({"year": 2030.1}, "year must be 2025 to 2030, got 2030.1"),
        (
            {"controller": ControllerSpec(**SERIAL), "waypoint": waypoints(0.0)},
            'waypoint must be with controller.kind "hold": a controller flies its own mission',
        ),
        ({"waypoint": waypoints(0.0, 2.0, 2.0)}, "waypoints' time_s must rise, got [0.0, 2.0, 2.0]"),
        (
            {"ground_station": (GroundStationSpec(),)},
            'ground_station must be with a controller that speaks MAVLink with hilsim, got kind "hold"',
        ),
        (
            {"controller": ControllerSpec(kind="ardupilot"), "ground_station": (GroundStationSpec(),)},
            'ground_station must be with a controller that speaks MAVLink with hilsim, got kind "ardupilot"',
        ),
    ],
)
def test_a_vehicles_rule_says_what_is_wrong(values, message):
    refused(VehicleRigSpec, message, **values)


def test_two_ground_stations_at_one_place_are_refused():
    stations = (GroundStationSpec(), GroundStationSpec(kind="tcp"), GroundStationSpec(actuators=True))
    message = "ground stations must differ in kind or address, got udp 127.0.0.1:14550, tcp 127.0.0.1:14550, udp 127.0.0.1:14550"
    refused(VehicleRigSpec, message, controller=ControllerSpec(**SERIAL), ground_station=stations)
    assert len(VehicleRigSpec(controller=ControllerSpec(**SERIAL), ground_station=stations[:2]).ground_station) == 2


def test_a_vehicle_that_says_nothing_is_an_iris_that_holds_its_place():
    spec = VehicleRigSpec()
    assert (spec.profile, spec.controller.kind, spec.ground_station, spec.waypoint) == ("iris", "hold", (), ())
