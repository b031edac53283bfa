"""Poses of a vehicle in flight, between its states and a little ahead of them."""

import math
import threading

import numpy as np
import pytest
from numba import config

from hilsim.world.geometry.rotations import about_axis, from_roll_pitch_yaw, multiply
from hilsim.world.platforms import live
from hilsim.world.platforms.live import MAX_NS, SLOTS, build_live_pose, live_motion, live_state, write_state
from hilsim.world.platforms.platform import live_platform, platform_state

MS = 1_000_000


def state(position=(0.0, 0.0, 0.0), velocity=(0.0, 0.0, 0.0), turn=(1.0, 0.0, 0.0, 0.0), rates=(0.0, 0.0, 0.0)):
    return np.array([*position, *velocity, *turn, *rates])


def circling(time_ns, radius_m=5.0, rate=2.0):
    """On a circle, nose ahead: position, velocity, orientation, rates known at every time."""
    angle = rate * time_ns * 1e-9
    position = (radius_m * np.cos(angle), radius_m * np.sin(angle), 1.0)
    velocity = (-radius_m * rate * np.sin(angle), radius_m * rate * np.cos(angle), 0.0)
    return state(position, velocity, about_axis((0.0, 0.0, 1.0), angle + np.pi / 2), (0.0, 0.0, rate))


def apart(found, expected):
    """Metres and radians between a pose and a state."""
    (position, turn), (x, y, z) = found, expected[:3]
    chord = min(np.linalg.norm(turn - expected[6:10]), np.linalg.norm(turn + expected[6:10]))
    return np.linalg.norm(np.array(position) - (x, y, z)), 4.0 * np.arcsin(0.5 * chord)


def test_before_the_first_state_a_vehicle_is_at_the_origin():
    assert live_state(build_live_pose(), 5 * MS) == ((0.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0))


def test_a_state_is_carried_on_with_its_velocity_and_its_rates():
    live = build_live_pose()
    write_state(live, 10 * MS, state((1.0, 2.0, 3.0), (4.0, -2.0, 1.0), from_roll_pitch_yaw(10.0, 20.0, 30.0), (0.5, -1.0, 2.0)))
    position, turn = live_state(live, 14 * MS)
    assert position == pytest.approx((1.016, 1.992, 3.004))
    rate = np.linalg.norm((0.5, -1.0, 2.0))
    expected = multiply(from_roll_pitch_yaw(10.0, 20.0, 30.0), about_axis(tuple(np.array((0.5, -1.0, 2.0)) / rate), rate * 0.004))
    assert turn == pytest.approx(expected)


def test_a_vehicle_whose_thread_has_stalled_goes_no_farther_than_50_ms():
    live = build_live_pose()
    write_state(live, 0, state(velocity=(10.0, 0.0, 0.0)))
    assert live_state(live, MAX_NS)[0] == live_state(live, 100 * MAX_NS)[0] == pytest.approx((0.5, 0.0, 0.0))


def test_between_states_and_4_ms_ahead_poses_are_as_near_as_the_motion_is_smooth():
    live = build_live_pose()
    for step in range(600):
        write_state(live, step * MS, circling(step * MS))
    for time_ns in range(300 * MS, 599 * MS, 777_777):
        metres, radians = apart(live_state(live, time_ns), circling(time_ns))
        assert metres < 2e-5
        assert radians < 1e-7
    metres, _ = apart(live_state(live, 603 * MS), circling(603 * MS))
    assert metres < 0.5 * 20.0 * 0.004**2 * 1.1  # a = v^2 / r


def test_states_older_than_half_of_what_is_kept_are_answered_by_the_oldest():
    live = build_live_pose()
    for step in range(3 * SLOTS):
        write_state(live, step * MS, state((float(step), 0.0, 0.0)))
    oldest = 3 * SLOTS - SLOTS // 2
    assert live_state(live, 0)[0] == (oldest, 0.0, 0.0)
    assert live_state(live, (oldest + 7) * MS)[0] == (oldest + 7, 0.0, 0.0)


def analytic(time_ns):
    """State on a path with changing speed and a tumbling body: 20 m/s, up to 90 deg/s about an axis that turns."""
    t = 1e-9 * time_ns
    position = (30.0 * math.sin(0.66 * t), 20.0 * math.cos(0.66 * t), 2.0 * math.sin(1.5 * t))
    velocity = (30.0 * 0.66 * math.cos(0.66 * t), -20.0 * 0.66 * math.sin(0.66 * t), 3.0 * math.cos(1.5 * t))
    yaw, tilt = 1.2 * t, 0.6 * math.sin(1.7 * t)
    turn = multiply(about_axis((0.0, 0.0, 1.0), yaw), about_axis((1.0, 0.0, 0.0), tilt))
    rates = (0.6 * 1.7 * math.cos(1.7 * t), 1.2 * math.sin(tilt), 1.2 * math.cos(tilt))
    return state(position, velocity, turn, rates)


@pytest.mark.parametrize(("rate_hz", "most_m", "most_rad"), [(10, 2e-5, 2e-5), (100, 2e-9, 2e-9), (1000, 1e-12, 1e-12)])
def test_between_states_the_pose_follows_a_smooth_path_to_the_fourth_order(rate_hz, most_m, most_rad):
    live, step_ns = build_live_pose(), 1_000_000_000 // rate_hz
    for step in range(400):
        write_state(live, step * step_ns, analytic(step * step_ns))
    errors = [apart(live_state(live, time_ns), analytic(time_ns)) for time_ns in range(150 * step_ns, 399 * step_ns, step_ns * 7 // 23)]
    metres, radians = np.max(errors, axis=0)
    assert metres < most_m
    assert radians < most_rad


def test_a_turn_of_almost_half_a_circle_between_states_keeps_its_rate():
    live = build_live_pose()
    for step in range(5):
        write_state(live, step * 1000 * MS, state(turn=about_axis((0.0, 0.0, 1.0), 3.0 * step), rates=(0.0, 0.0, 3.0)))
    for time_ns in range(0, 4000 * MS, 77 * MS):
        assert apart(live_state(live, time_ns), state(turn=about_axis((0.0, 0.0, 1.0), 3e-9 * time_ns)))[1] < 1e-7


def test_any_kept_state_is_found_in_a_large_ring():
    live = build_live_pose(4096)
    for step in range(2048):
        write_state(live, step * MS, state((float(step), 0.0, 0.0), (1000.0, 0.0, 0.0)))
    for time_ns in range(0, 2047 * MS, 3_333_333):
        assert live_state(live, time_ns)[0][0] == pytest.approx(time_ns / MS)


def test_a_platform_follows_its_vehicle():
    live = build_live_pose()
    platform = live_platform(live)
    write_state(live, 0, state((1.0, 2.0, 3.0)))
    assert platform_state(platform, 2 * MS)[0] == (1.0, 2.0, 3.0)
    write_state(live, MS, state((4.0, 2.0, 3.0)))
    assert platform_state(platform, 2 * MS)[0] == (4.0, 2.0, 3.0)


@pytest.mark.skipif(bool(config.DISABLE_JIT), reason="kernels as plain Python hold the GIL: nothing runs at once")
def test_a_reader_beside_the_writer_never_sees_half_a_state():
    live = build_live_pose()
    stop = threading.Event()

    def write():
        step = 0
        while not stop.is_set():
            write_state(live, step * MS, state((float(step), float(step), float(step))))
            step += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(20_000):
            (x, y, z), _ = live_state(live, 1 << 60)
            assert x == y == z
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize(("ask", "inner"), [(live_state, "_state_at"), (live_motion, "_motion_at")], ids=["pose", "motion"])
def test_a_reader_that_was_held_up_while_the_writer_came_round_looks_again(monkeypatch, ask, inner):
    """As plain Python, so that the reader can be held up at the one place where it matters."""
    vessel, plain = build_live_pose(), getattr(getattr(live, inner), "py_func", getattr(live, inner))
    counts = []

    def held_up(poses, time_ns, count):
        found = plain(poses, time_ns, count)
        counts.append(count)
        if len(counts) == 1:
            for step in range(SLOTS):
                write_state(vessel, (1000 + step) * MS, state((float(step), 0.0, 0.0)))
        return found

    monkeypatch.setattr(live, inner, held_up)
    monkeypatch.setattr(live, "load_acquire", lambda array, index: int(array[index]))
    monkeypatch.setattr(live, "fence_acquire", lambda: None)
    monkeypatch.setattr(live, "_is_overtaken", getattr(live._is_overtaken, "py_func", live._is_overtaken))
    write_state(vessel, 0, state((-5.0, 0.0, 0.0)))
    found = getattr(ask, "py_func", ask)(vessel, 1 << 60)
    assert counts == [1, 1 + SLOTS]
    assert found[0][0] == SLOTS - 1


def test_motion_is_that_of_the_newest_state_that_is_not_later():
    live = build_live_pose()
    for step in range(3):
        write_state(live, step * 10 * MS, state((float(step), 0.0, 0.0), (0.0, float(step), 0.0)))
    assert live_motion(live, 10 * MS) == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    assert live_motion(live, 20 * MS - 1) == ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    assert live_motion(live, 500 * MS) == ((2.0, 0.0, 0.0), (0.0, 2.0, 0.0))


def test_motion_before_the_first_state_or_what_is_kept_is_that_of_the_oldest():
    live = build_live_pose()
    assert live_motion(live, 5 * MS) == ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    write_state(live, 10 * MS, state((7.0, 0.0, 0.0)))
    assert live_motion(live, 0)[0] == (7.0, 0.0, 0.0)
    for step in range(3 * SLOTS):
        write_state(live, (20 + step) * MS, state((float(step), 0.0, 0.0)))
    assert live_motion(live, 0)[0] == (3 * SLOTS - SLOTS // 2, 0.0, 0.0)
