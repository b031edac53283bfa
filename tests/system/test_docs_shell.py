"""Every block of shell commands on a page runs, line by line, and each line ends with 0.

The blocks of a page run one after the other, in a folder that has what the page speaks of (``shell_pages.py``), each in a shell of its own.
Differences from the page are in two tables: ``AS_TESTED`` has replacements of lines, ``NOT_RUN`` the blocks that do not run, with reasons.
"""

import os
import re
import shutil
import signal
import subprocess

import pytest

from tests import commands
from tests.pages import blocks, by_page
from tests.system.shell_pages import programs_in, shell_of

pytestmark = pytest.mark.system

NOT_RUN = {
    ("README.md", "git clone"): ("clones and installs, which fetches packages: what precedes every run of the tests", ""),
    ("README.md", "make test"): ("is the run that this test is of", ""),
    ("CONTRIBUTING.md", "git clone"): ("is the run that this test is of", ""),
    ("control.md", "curl"): (
        "asks a daemon that serves HTTP and whose rig has a replay",
        "tests/system/test_changes.py::test_a_rig_is_changed_over_http_and_a_stream_shows_it",
    ),
    ("control.md", "hilsim control bench.sock packets"): (
        "needs Wireshark, and runs until Ctrl-C",
        "tests/system/test_packet_streams.py::test_the_stream_has_the_bytes_of_the_recording_over_both_transports",
    ),
    ("record-what-was-sent.md", "hilsim control bench.sock packets"): (
        "needs Wireshark, and runs until Ctrl-C",
        "tests/system/test_packet_streams.py::test_the_stream_has_the_bytes_of_the_recording_over_both_transports",
    ),
    ("sensor-web-page.md", "curl"): (
        "asks a sensor at a fixed port",
        "tests/system/test_sensor_web.py::test_settings_act_on_the_stream_and_are_timed_changes",
    ),
    ("verify-a-sensor.md", "hilsim verify drive.pcap       "): (
        "needs a capture of a real Ouster, which is no part of the project, and a live one",
        "tests/unit/families/ouster/conformance/test_checker.py::test_figures_are_those_of_the_stream",
    ),
    ("compare-two-streams.md", "hilsim compare os2.pcap"): (
        "needs a capture of a real unit, which is no part of the project",
        "tests/unit/families/ouster/test_comparison.py::test_a_stream_is_like_itself",
    ),
    ("ouster.md", "hilsim run ouster --set"): (
        "runs until Ctrl-C, at a fixed port",
        "tests/system/test_ouster_sensor.py::test_packets_follow_what_clients_set_while_they_flow",
    ),
    ("ouster.md", "export http_proxy"): (
        "runs ouster-cli, which is in an environment of its own, against a fixed port",
        "tests/system/test_ouster_sensor.py::test_ouster_cli_reads_whole_frames_and_changes_the_mode",
    ),
    ("livox.md", "hilsim run livox"): (
        "runs until Ctrl-C, at fixed ports",
        "tests/interop/test_livox_control.py::test_two_sensors_of_a_rig_send_the_sdk_points_of_each_type_and_inertial_packets",
    ),
    ("hesai-control.md", "printf"): (
        "asks a daemon that runs, at fixed ports",
        "tests/system/test_hesai_sensor.py::test_what_a_client_sets_acts_on_the_stream_is_a_timed_change_and_outlasts_the_daemon",
    ),
    ("fleet.md", "hilsim doctor fleet"): (
        "ends with 1 on a machine that is too small for eight sensors",
        "tests/unit/diagnosis/test_addresses.py::test_a_rig_whose_addresses_and_ports_are_free_is_one_good_finding",
    ),
    ("fleet.md", "sudo ip address add"): ("needs root and changes the host's network", ""),
    ("fleet.md", "sudo ip netns add"): ("needs root and changes the host's network", ""),
    ("fleet.md", "hilsim run gateway.toml --only left"): (
        "is for two hosts with addresses of their own",
        "tests/system/test_fleet.py::test_daemons_with_one_instant_send_together_what_one_daemon_sends",
    ),
    ("fly-with-an-autopilot.md", "sim_vehicle.py"): (
        "ArduPilot's simulation is not installed",
        "tests/system/test_flight_controller.py::test_ardupilots_link_climbs_hovers_and_lands_steps_no_frame_twice_and_begins_anew_at_a_restart",
    ),
    ("other-tools.md", "hilsim publish"): (
        "follows a daemon and a port until Ctrl-C",
        "tests/system/test_publish.py::test_a_capture_is_published_to_foxglove",
    ),
    ("other-tools.md", "source /opt/ros"): (
        "needs a ROS 2 that is installed",
        "tests/interop/test_ros2.py::test_arguments_of_ros_rename_topics_and_unknown_ones_are_refused",
    ),
    ("calibrate-a-unit.md", "sudo tcpdump"): (
        "needs root and a sensor",
        "tests/unit/cli/test_calibrate.py::test_a_unit_is_printed_written_and_used_by_a_rig",
    ),
    ("gazebo.md", "sudo apt"): (
        "installs a Debian package",
        "tests/interop/test_gazebo_transport.py::test_a_real_subscriber_gets_every_scan_in_its_time_while_others_come_stall_and_die",
    ),
    ("install-as-a-service.md", "sudo python3 -m venv"): (
        "needs root and systemd, and changes the host",
        "tests/service/test_service.py::test_it_is_ready_once_packets_flow_and_not_before",
    ),
    ("install-as-a-service.md", "sudo systemctl disable"): ("needs root and systemd, and takes away what the first block made", ""),
    ("monitor-with-prometheus.md", "sudo cp"): (
        "needs root and changes the host's Prometheus",
        "tests/system/test_prometheus.py::test_promtool_accepts",
    ),
    ("install-as-a-service.md", "podman build"): (
        "builds an image, which fetches packages",
        "tests/service/test_container.py::test_it_streams_and_stops",
    ),
}
"""Blocks, by page and how they begin, that no test can run: why, and the test that does the same for real where there is one."""

_RUN = r"^hilsim run (?!.*(?:--duration-s|& *(?:#|$)))"
_SHIPPED_OR_MADE = r"^(hilsim run (?:demo|flight|hall\.toml))"
_PORTS = r"--set sensor[0].network.data_port={data} --set sensor[0].network.position_port={position}"

AS_TESTED = (
    # Addresses of other machines, and of interfaces.
    (r"bench3\.lab:2369", "127.0.0.1:{data}"),
    (r"bench3\.lab|192\.168\.1\.77|0\.0\.0\.0", "127.0.0.1"),
    (r"--from 192\.168\.1\.201", "--from 127.0.1.201"),
    (r"tcp://10\.0\.0\.5:8786", "local"),  # a scheduler elsewhere: test_background_cluster.py
    # Ports, which another program of this host may have.
    (r"127\.0\.0\.1:(?:2368|8808)", "127.0.0.1:{data}"),
    (r"^(hilsim verify --listen \S+)", r"\1 --position-port {position}"),
    (r"metrics\.port=9500", "metrics.port={metrics}"),
    (r"127\.0\.0\.1([:/])9465", r"127.0.0.1\g<1>{control}"),
    (r"tcp:127\.0\.0\.1:4560", "tcp:127.0.0.1:{simulation}"),
    (_SHIPPED_OR_MADE, rf"\1 {_PORTS}"),
    (r"^(hilsim run cepton)", r"\1 --set sensor[0].network.data_port={data}"),
    (r"^(hilsim run \S+)(?!.*metrics\.port)", r"\1 --set metrics.port=0"),
    # Places and devices of the host.
    (r"/run/hilsim/|/tmp/", "{here}/"),
    (r"/data/", "{here}/data/"),
    (r"/dev/serial/by-id/usb-…|/dev/ttyUSB0", "{here}/board"),
    # What runs until Ctrl-C ends by itself; a daemon in the background runs until the block ends.
    (_RUN + r"(.*?)( *#.*)?$", r"hilsim run \1 --duration-s 1\2"),
    (r"^(hilsim replay .*?)( *#.*)?$", r"\1 --duration-s 0.3\2"),
    (r"--loop seamless", "--loop seamless --loops 2"),
    (r"^cat ({here}/driver)$", r"head -n 1 \1"),
    # A busy machine sends in bursts.
    (r"^hilsim verify (drive\.pcap)$", r"verify-contents \1"),
    # Less time, and nothing of the checkout changed.
    (r"^(hilsim (?:export|record) demo -o .*--duration-s )\d+\b", r"\g<1>0.4"),
    (r"--duration-s (?:[2-9]|\d\d+)\b", "--duration-s 1"),
    (r"^(hilsim doctor --link \S+)", r"\1 --seconds 2"),
    (r"^make docs$", "python -m tools.reference"),
)
"""In this order: what a line says, and what it has in its place; ``{{data}}`` and the like are ports and the folder of this run."""


_END = "trap '{ status=$?; set +ex; } 2> /dev/null; kill $(jobs -p) 2> /dev/null; wait; exit $status' EXIT"
"""As a terminal that is closed: what is still there in the background ends."""


def as_tested(line, values):
    """A line of a page as it runs here."""
    for pattern, replacement in AS_TESTED:
        line = re.sub(pattern, replacement, line)
    for name, value in values.items():
        line = line.replace(f"{{{name}}}", str(value))
    return line


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Programs that pages call, by page: ``hilsim`` of the README is a new process, that of others a fork."""
    new, forked = (tmp_path_factory.mktemp("environment") for _ in range(2))
    door = forked / "door"
    with commands.door(door):
        by_page = {"README.md": programs_in(new)}
        yield lambda page: by_page.get(page.name) or by_page.setdefault("", programs_in(forked, door))


def entries(block):
    """What ``NOT_RUN`` has of a block."""
    return [(page, words) for page, words in NOT_RUN if page == block.page.name and block.text.startswith(words)]


RUN = [block for block in blocks("sh") if not entries(block)]


def run(block, shell):
    """Run a block; ends what its lines left in the background. An exit status other than 0 of any line ends it, and the test."""
    values = shell.ports | {"here": shell.here}
    lines = [as_tested(line, values) for line in block.text.splitlines()]
    script, said = shell.here / "block.sh", shell.here / "said.txt"
    script.write_text("\n".join([_END, "set -ex", *lines]) + "\n")
    with said.open("w") as output:
        bash = subprocess.Popen(
            ["bash", script],
            cwd=shell.here,
            env=shell.environment,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = bash.wait(200)
        except subprocess.TimeoutExpired:
            status = "none in time"
            os.killpg(bash.pid, signal.SIGKILL)
            bash.wait()
    assert status == 0, f"{block.place}: exit status {status}\n{script.read_text()}\n{said.read_text()[-4000:]}"


@pytest.mark.parametrize("page", by_page(sorted({block.page for block in RUN})))
def test_the_commands_of_a_page_run(page, tmp_path, programs):
    shown = [block for block in RUN if block.page == page]
    if any("socat" in block.text for block in shown) and shutil.which("socat") is None:
        pytest.skip("socat is not installed (Debian package socat)")
    with shell_of(page, tmp_path, programs(page)) as shell:
        for block in shown:
            run(block, shell)
