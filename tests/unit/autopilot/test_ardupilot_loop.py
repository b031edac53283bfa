"""ArduPilot's link answers whoever steers and outlives whatever else comes to its port."""

import errno
import json
import socket
import struct
import threading
import time

import numpy as np
import pytest

from hilsim.parts.vehicle.autopilot.ardupilot_loop import SILENT_NS, JsonPilot
from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.parts.vehicle.autopilot.loop_setup import build_loop_setup, open_line
from hilsim.parts.vehicle.autopilot.session import SessionState, SessionWord
from hilsim.world.platforms.live import build_live_pose
from tests.compiled import compiled_only
from tests.flight import _FLOOR, vehicle_spec
from tests.unit.vehicle.vehicles import profile

pytestmark = compiled_only
PEER, OTHER = ("127.0.0.1", 40_001), ("127.0.0.1", 40_002)


class Unreachable(socket.socket):
    """A port whose answers cannot be sent."""

    def sendto(self, *_arguments):
        raise OSError(errno.ENETUNREACH, "Network is unreachable")


def piloted(kind=socket.socket):
    opened = kind(socket.AF_INET, socket.SOCK_DGRAM)
    opened.bind(("127.0.0.1", 0))
    made = build_loop_setup(vehicle_spec("ardupilot"), profile("iris"), open_line("ardupilot"), seed=1, rate_hz=250)
    return JsonPilot(
        context=made.context,
        vehicle=profile("iris"),
        flight=made.flight,
        world=_FLOOR,
        live=build_live_pose(),
        shared=made.shared,
        opened=opened,
        epoch_ns=time.monotonic_ns(),
    )


@pytest.fixture
def pilot():
    made = piloted()
    yield made
    made.opened.close()


def frame(count=1, rate=400, pwm=1000, outputs=16):
    magic = 18458 if outputs == 16 else 29569
    return struct.pack(f"<HHI{outputs}H", magic, rate, count, *[pwm] * outputs)


def count(pilot, name):
    return int(pilot.shared.counts[FlightCount[name]])


@pytest.mark.parametrize("rate", [0, 9, 20_001, 65_535])
def test_a_frame_rate_that_the_physics_cannot_step_is_reported_and_answered_with_usual_steps_so_that_ardupilot_can_take_another(pilot, rate):
    assert json.loads(pilot.answer(frame(1, rate), PEER))["timestamp"] == pytest.approx(1 / 1200, abs=1e-6)
    fault = f"127.0.0.1:40001: SITL servo packet's frame rate (SIM_RATE_HZ) must be 10 to 20000 Hz, got {rate} at byte 2"
    assert pilot.trouble == f"{fault}; frames are answered with steps of 1/1200 s until it is set right"
    assert json.loads(pilot.answer(frame(2, 400), PEER))["timestamp"] == pytest.approx(1 / 1200 + 1 / 400, abs=1e-6)


@pytest.mark.parametrize("rate", [10, 400, 999, 1001, 19_999, 20_000])
def test_every_frame_rate_that_is_taken_steps_the_vehicle(pilot, rate):
    assert json.loads(pilot.answer(frame(rate=rate), PEER))["timestamp"] == pytest.approx(1.0 / rate, rel=0.01)


def test_another_sender_neither_steers_nor_resets_a_vehicle_that_is_flown_and_may_have_it_when_its_pilot_is_gone(pilot):
    for number in range(100, 110):
        pilot.answer(frame(number, pwm=1900), PEER)
    motion = pilot.flight.state.motion.copy()
    assert pilot.answer(frame(1), OTHER) == b""
    np.testing.assert_array_equal(pilot.flight.state.motion, motion)
    assert "the vehicle must have one simulation at a time, got a second one beside 127.0.0.1:40001" in pilot.trouble
    assert pilot.answer(frame(110, pwm=1900), PEER) != b""
    pilot._received_ns -= SILENT_NS + 1
    assert json.loads(pilot.answer(frame(1), OTHER))["timestamp"] == pytest.approx(0.0025, abs=1e-6)  # anew


@pytest.mark.parametrize("count", [1000, pytest.param(3000, marks=pytest.mark.extended)])
def test_the_next_frame_is_answered_after_any_datagram(pilot, count):
    draw = np.random.default_rng(7)
    for number in range(count):
        size = int(draw.integers(0, 90))
        noise = draw.bytes(size) if number % 2 else frame(int(draw.integers(0, 2**32)), int(draw.integers(0, 30_000)), int(draw.integers(0, 65_536)))
        pilot.answer(noise, PEER)
    assert np.isfinite(pilot.flight.state.motion).all()
    assert json.loads(pilot.answer(frame(2**32 - 1), PEER))


def test_an_answer_that_cannot_be_sent_is_counted_and_reported_and_the_thread_goes_on():
    made = piloted(Unreachable)
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sitl:
        end_s = time.monotonic() + 20
        number = 0
        while count(made, "UNANSWERED") < 3 and time.monotonic() < end_s:
            number += 1
            sitl.sendto(frame(number), made.opened.getsockname())
            time.sleep(0.01)
    assert thread.is_alive()
    assert count(made, "UNANSWERED") >= 3
    assert "an answer must be sendable, got Network is unreachable" in made.trouble
    made.shared.control[0] = 1
    thread.join(20)
    made.opened.close()


def test_a_simulation_that_stops_leaves_its_vehicle_still_and_is_reported_to_be_silent_before_it_is_gone(pilot):
    for number in range(1, 200):
        pilot.answer(frame(number, pwm=1900), PEER)
    word = pilot.shared.session.word
    assert word[SessionWord.STATE] == SessionState.FLYING
    newest = pilot.live.state[(int(pilot.live.written[0]) - 1) % len(pilot.live.time_ns)]
    assert abs(newest[5]) > 0.1
    pilot._received_ns -= 300_000_000
    pilot._note_silence()
    assert word[SessionWord.STATE] == SessionState.SILENT
    newest = pilot.live.state[(int(pilot.live.written[0]) - 1) % len(pilot.live.time_ns)]
    assert newest[3:6].tolist() == [0.0] * 3
    pilot._received_ns -= SILENT_NS
    pilot._note_silence()
    assert word[SessionWord.STATE] == SessionState.CALLING
