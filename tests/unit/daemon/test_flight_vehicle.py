"""How a vehicle's link is paced by its budget, and what a rig says of links and ground stations."""

import json
import time
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hilsim.daemon.control.grammar import parse_request
from hilsim.daemon.control.requests import state_answer
from hilsim.daemon.parts import RigClock
from hilsim.parts.vehicle.autopilot.loop_setup import open_line
from hilsim.parts.vehicle.autopilot.passing_state import Errors
from hilsim.parts.vehicle.flying import FlyingVehicle, paced_line, rate_within
from hilsim.parts.vehicle.ground_stations.endpoints import Protocol
from hilsim.parts.vehicle.link import rates_of, station_of
from hilsim.parts.vehicle.physics.surroundings import look_around
from hilsim.parts.vehicle.specs import ControllerSpec, GroundStationSpec, VehicleRigSpec
from hilsim.protocols.mavlink.messages import HIL_ACTUATOR_CONTROLS
from hilsim.telemetry.readings import Reading
from hilsim.transmit.links.addresses import RATES_HZ
from hilsim.transmit.links.budget import LinkRates, plan_link
from hilsim.transmit.links.line import Line, LineKind
from hilsim.transmit.scheduling import ThreadSettings
from hilsim.world.platforms.live import build_live_pose
from hilsim.world.scene.materials import DEFAULTS
from hilsim.world.scene.primitives import plane
from hilsim.world.scene.world import SceneObject, build_world
from tests.flight import vehicle_spec
from tests.unit.vehicle.vehicles import BARE


def uart(baud, sensor_hz=250.0):
    return plan_link(LinkRates(sensor_hz=sensor_hz), line=Line(LineKind.UART, baud))


@pytest.mark.parametrize(("baud", "rate_hz"), [(921_600, 250), (460_800, 250), (230_400, 250), (115_200, 100)])
def test_a_line_gets_the_highest_rate_of_sensors_that_it_carries(baud, rate_hz):
    assert rate_within(uart(baud)) == rate_hz


@pytest.mark.parametrize("rate_hz", RATES_HZ)
def test_a_line_without_a_rate_of_its_own_gets_what_was_asked_for(rate_hz):
    budget = plan_link(LinkRates(sensor_hz=rate_hz), line=Line(LineKind.USB, 57_600))
    assert rate_within(budget) == rate_hz
    assert paced_line("serial", budget) == open_line("serial")


@pytest.mark.parametrize("baud", [115_200, 921_600])
def test_a_uart_is_paced_by_its_rate_and_ground_stations_have_what_is_left_over(baud):
    budget = uart(baud)
    line = paced_line("serial", budget)
    assert line.pace.ns_per_byte == round(1e10 / baud)
    left = 0.95 * baud / 10 - budget.uplink_bytes_per_s
    assert line.pace.station_ns_per_byte == round(1e9 / (1000.0 + left))
    assert (line.is_stream, line.is_simulator) == (True, False)


@pytest.mark.parametrize(
    ("kind", "is_stream", "is_simulator"), [("serial", True, False), ("tcp", True, True), ("udp", False, False), ("hold", False, False)]
)
def test_a_line_is_a_stream_or_datagrams_and_only_the_simulator_link_is_without_an_aircraft(kind, is_stream, is_simulator):
    line = open_line(kind)
    assert (line.is_stream, line.is_simulator, line.pace.ns_per_byte) == (is_stream, is_simulator, 0)


def test_rates_are_those_of_the_rig():
    rates = rates_of(VehicleRigSpec(controller=ControllerSpec(kind="tcp", rate_hz=500, gps_hz=5)))
    assert (rates.sensor_hz, rates.gps_hz) == (500, 5)


def test_a_station_that_listens_is_sent_to_from_an_address_that_reaches_it():
    near = station_of(GroundStationSpec(address="127.0.0.1:14550"))
    assert (near.protocol, near.address, near.port, near.remote) == (Protocol.UDP, "127.0.0.1", 0, ("127.0.0.1", 14550))
    far = station_of(GroundStationSpec(address="192.168.1.9:14551"))
    assert (far.address, far.remote) == ("0.0.0.0", ("192.168.1.9", 14551))  # noqa: S104 - named, not bound


@pytest.mark.parametrize(("kind", "protocol"), [("udp_server", Protocol.UDP), ("tcp", Protocol.TCP)])
def test_a_station_that_comes_to_hilsim_finds_it_at_its_address(kind, protocol):
    spec = station_of(GroundStationSpec(kind=kind, address="127.0.0.1:5760"))
    assert (spec.name, spec.protocol, spec.address, spec.port, spec.remote) == (f"{kind} 127.0.0.1:5760", protocol, "127.0.0.1", 5760, None)


def test_actuators_are_withheld_from_a_station_unless_it_asks_for_them():
    assert station_of(GroundStationSpec()).withhold == (HIL_ACTUATOR_CONTROLS.id,)
    assert station_of(GroundStationSpec(actuators=True)).withhold == ()


_FLOOR = build_world([SceneObject(mesh=plane((100.0, 100.0), DEFAULTS["grass"]))])
_FLOWN = FlyingVehicle(spec=vehicle_spec(), profile=BARE, seed=1, world=_FLOOR, live=build_live_pose(), settings=ThreadSettings(scheduling="plain"))
_metres = st.floats(-1e6, 1e6)


@given(st.tuples(_metres, _metres, _metres), st.floats())
def test_the_state_is_json_wherever_the_vehicle_is_and_whatever_its_autopilot_reports(place_m, error_m):
    flight = _FLOWN.loop_setup.flight
    flight.state.motion[:3] = place_m
    look_around(_FLOOR, _FLOWN.loop_setup.context.multirotor, flight.state, 0, flight.around)
    _FLOWN.autopilot.errors = Errors(position_m=(error_m, 0.0, 0.0))
    running = SimpleNamespace(
        rig=SimpleNamespace(name="bench"),
        reading=lambda: Reading(parts={"vehicle": (_FLOWN.reading(),)}),
        clock=RigClock(time.monotonic_ns()),
        changer=SimpleNamespace(made=(), object_names=list),
        injected=lambda _rig_ns: (),
        live_pose=_FLOWN.live,
    )
    vehicle = parse_request(json.dumps(state_answer(running)))["vehicle"]  # JSON without NaN and Infinity
    is_above = max(abs(place_m[0]), abs(place_m[1])) < 49.0 and 0.0 < place_m[2] < 199.0
    assert (vehicle["height_m"] is not None) or not is_above
