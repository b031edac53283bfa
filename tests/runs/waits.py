"""Waits of the tests that a busy machine could turn into a failure, found in their sources.

A short fixed pause, a time-out below 10 s, or a comparison of elapsed wall time judges the machine as much as the code.
Each is listed here with the reason why it cannot fail on a slow machine; the test of this module finds those that are not.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHORTEST_PAUSE_S = 0.05
SHORTEST_LIMIT_S = 10.0
_LIMITS = {"settimeout", "wait", "join", "wait_for"}
_LIMIT_WORDS = {"timeout", "timeout_s"}

SILENCE = "nothing may arrive in it: a slow machine makes the test weaker, not red"
ON_PURPOSE = "the pause is what is tested"
RETRIED = "when it ends the loop around it tries again"
EXPECTED = "the time-out is what is tested"


def waits_of(path):
    """``function`` names of a file with a wait that could judge the machine, with what was found."""
    found = {}
    for function in ast.walk(ast.parse(path.read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            reasons = sorted(set(_waits(function.body, is_loop=False)))
            if reasons:
                found[function.name] = reasons
    return found


def _waits(nodes, *, is_loop):
    for node in nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue  # it is looked at by itself
        if isinstance(node, ast.Call):
            yield from _of_call(node, is_loop=is_loop)
        if isinstance(node, ast.Compare) and any(_is_elapsed(side) for side in (node.left, *node.comparators)):
            yield "elapsed wall time"
        yield from _waits(ast.iter_child_nodes(node), is_loop=is_loop or isinstance(node, ast.While))


def _of_call(call, *, is_loop):
    name = getattr(call.func, "attr", getattr(call.func, "id", ""))
    first = _number(call.args[0]) if call.args else None
    if name in {"sleep", "usleep"} and not is_loop and first is not None and first >= SHORTEST_PAUSE_S:
        yield "pause"
    limits = [first] if name in _LIMITS else []
    limits += [_number(word.value) for word in call.keywords if word.arg in _LIMIT_WORDS]
    if any(limit is not None and 0 < limit < SHORTEST_LIMIT_S for limit in limits) and not is_loop:
        yield "limit"


def _is_elapsed(node):
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and "monotonic" in ast.unparse(node)


def _number(node):
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) else None


def all_waits():
    """``path::function`` of every wait of the tests, with what was found there."""
    paths = sorted((ROOT / "tests").rglob("*.py"))
    return {f"{path.relative_to(ROOT)}::{name}": found for path in paths for name, found in waits_of(path).items()}


LISTED = {
    "tests/flight.py::steer_on": "decides when the next command is due, judges nothing",
    "tests/interop/cepton_observer.py::observe_live": SILENCE,
    "tests/interop/cepton_observer.py::observe_file": SILENCE,
    "tests/interop/test_gazebo_transport.py::test_a_real_subscriber_gets_every_scan_in_its_time_while_others_come_stall_and_die": (
        "subscribers that are stopped or killed before they listen disturb less"
    ),
    "tests/runs/__main__.py::run_groups": "decides when to print, judges nothing",
    "tests/service/machine.py::await_restart": "its callers give it 60 s",
    "tests/system/reception.py::__init__": RETRIED,
    "tests/system/replaying.py::_gather": "the event loop reads what waits in its sockets before it looks at its timers",
    "tests/system/sitl.py::__init__": RETRIED,
    "tests/system/sitl.py::_drain": RETRIED,
    "tests/system/test_changes.py::test_a_vehicle_is_put_elsewhere_blown_and_reset_at_rig_times": "what happens in it is waited for at most, and it only gets longer",
    "tests/system/test_rangefinders.py::distances_cm": "readings that were sent before are passed over, and a longer pause passes over more",
    "tests/system/test_daemon.py::test_a_daemon_that_stands_still_says_exactly_which_packets_it_left_out": ON_PURPOSE,
    "tests/system/test_external.py::test_a_session_that_was_followed_live_and_its_recording_give_the_same_packets": "packets follow for any time",
    "tests/system/test_flight_controller.py::stand_still": ON_PURPOSE,
    "tests/system/test_neighbour_queue.py::released": "what the kernel released waits in the socket",
    "tests/system/test_rangefinders.py::test_a_rangefinder_whose_cable_is_pulled_and_plugged_in_again_goes_on_without_a_burst": ON_PURPOSE,
    "tests/system/test_rangefinders.py::test_a_board_that_does_not_read_for_a_while_gets_nothing_old_and_what_it_does_not_get_is_counted": ON_PURPOSE,
    "tests/system/test_recording.py::__init__": RETRIED,
    "tests/system/test_replay.py::test_a_replay_is_paused_sought_and_resumed_while_it_runs": SILENCE,
    "tests/system/test_replay_in_a_rig.py::test_a_reload_leaves_the_replays_that_did_not_change_alone": SILENCE,
    "tests/system/test_testing_plugin.py::test_a_daemon_that_dies_is_named_instead_of_packets_that_do_not_come": "the daemon is dead before",
    "tests/system/test_testing_plugin.py::test_without_a_clock_a_receiver_that_is_not_there_or_does_not_read_is_named": EXPECTED,
    "tests/system/test_testing_plugin.py::run": RETRIED,
    "tests/system/test_view_editor.py::test_an_object_that_is_added_dragged_and_removed_on_the_page_is_in_the_packets_that_leave": (
        "poses of a drag are apart by any time"
    ),
    "tests/system/test_view_feed.py::test_a_view_that_is_killed_changes_nothing_on_the_wire": ON_PURPOSE,
    "tests/unit/autopilot/test_forwarding.py::test_a_frame_whose_rest_waits_at_the_socket_while_the_event_loop_is_busy_is_whole": ON_PURPOSE,
    "tests/unit/autopilot/test_loop.py::test_a_controller_in_lockstep_is_waited_for": SILENCE,
    "tests/unit/capture/test_live.py::test_the_stamp_is_the_kernels_and_not_that_of_reading": ON_PURPOSE,
    "tests/unit/cli/test_arguments.py::test_a_name_server_that_does_not_answer_is_not_waited_for": ON_PURPOSE,
    "tests/unit/daemon/test_control_http.py::check": SILENCE,
    "tests/unit/daemon/test_obstacle_sender.py::test_each_message_is_reported_once_for_what_is_new_and_not_again": SILENCE,
    "tests/unit/daemon/test_obstacle_sender.py::test_a_beam_into_which_no_ray_looked_is_not_reported": SILENCE,
    "tests/unit/daemon/test_rangefinder_port.py::test_a_port_that_is_not_there_is_reported_once_and_waited_for": SILENCE,
    "tests/unit/daemon/test_running_rig.py::test_nothing_is_sent_before_the_rings_are_full": SILENCE,
    "tests/unit/gazebo/test_transport.py::test_topics_without_a_subscriber_are_not_measured": SILENCE,
    "tests/unit/pose_sources/test_mavlink.py::test_datagrams_of_a_socket_are_read": EXPECTED,
    "tests/unit/pose_sources/test_osi.py::test_datagrams_are_messages": EXPECTED,
    "tests/unit/replay/test_source.py::test_seeking_while_it_is_paused_takes_effect_when_it_goes_on": SILENCE,
    "tests/unit/runs/test_standstills.py::test_a_stopped_watcher_shows_its_gap_when_it_goes_on": ON_PURPOSE,
    "tests/unit/telemetry/test_guarded.py::run": "a task that sleeps, and is awaited",
    "tests/unit/telemetry/test_guarded.py::work": "a task that sleeps, and is cancelled",
    "tests/unit/telemetry/test_server.py::slow_source": ON_PURPOSE,
    "tests/unit/telemetry/test_loop_faults.py::test_connections_that_cannot_be_accepted_are_reported_once_and_without_traceback": SILENCE,
    "tests/unit/transmit/test_loop.py::test_packets_leave_while_a_thread_holds_the_interpreter_lock": (
        "the lock is held for 0.9 s: packets that are due within 60 ms have 0.6 s more, a second look apart"
    ),
    "tests/unit/view/feed/test_feeds.py::rests": RETRIED,
    "tests/unit/view/feed/test_feeds.py::test_a_capture_is_paused_and_sought": SILENCE,
    "tests/unit/view/feed/test_feeds.py::test_a_capture_plays_at_its_own_rate_in_a_loop": "the time has a lower bound alone",
}
"""Why each of ``all_waits`` stays."""
