"""Livox-SDK2, unchanged, as the host of Mid-360s on loopback: the units alone, and a running rig with two of them."""

import pytest

from tests.interop.livox_judge import ask, fault
from tests.livox_units import only_livox, unit_of, units_in_thread  # noqa: F401 - a fixture
from tests.support import write_rig
from tests.system.conftest import daemon  # noqa: F401 - a fixture

pytestmark = [pytest.mark.system, pytest.mark.usefixtures("only_livox")]

HOST, FIRST, SECOND = "127.0.0.1", "127.0.89.2", "127.0.89.3"
OK, OUT_OF_RANGE = [0, "000000"], [0, "030000"]
PACKET_NS, HAP_PACKET_NS, IMU_NS = 480_000, 212_390, 5_000_000
RIG = """
name = "rig"

[metrics]
port = 0

[[scene.box]]
position_m = [0.0, 0.0, 0.0]
size_m = [14.0, 10.0, 6.0]
"""
SENSOR = """
[[sensor]]
name = "{name}"
profile = "mid360"
sub_rays = 1
[sensor.livox]
work_mode = "idle"
[sensor.network]
source = "{address}"
[sensor.web]
boot_s = 1.6
"""


@pytest.fixture(scope="module", autouse=True)
def sdk():
    if fault() is not None:
        pytest.skip(f"the vendor's Livox-SDK2 does not load here: {fault()}")


def test_the_sdk_finds_units_starts_them_and_sets_and_reads_their_keys():
    with units_in_thread(unit_of(FIRST), unit_of(SECOND, serial="47MDK000000002")) as units:
        steps = ["find"], ["work_mode", 1], ["data_type", 3], ["data_type", 0x11], ["imu", False], ["query"], ["push", 1], ["reboot"]
        found, started, typed, refused, imu, read, pushed, rebooted = ask(HOST, [FIRST, SECOND], *steps)
        assert [(each["address"], each["serial"], each["type"]) for each in found] == [(FIRST, "47MDK000000001", 9), (SECOND, "47MDK000000002", 9)]
        assert [set(map(tuple, each.values())) for each in (started, typed, imu)] == [{tuple(OK)}] * 3
        assert set(map(tuple, refused.values())) == {tuple(OUT_OF_RANGE)}
        assert {number for _, number in read.values()} == {"001e00"}  # 30 keys
        assert {state for state, _ in rebooted.values()} == {0}
        for address, message in pushed.items():
            assert (message["pcl_data_type"], message["imu_data_en"], message["cur_work_state"], message["FW_TYPE"]) == (3, 0, 1, 1)
            assert message["lidar_ipcfg"]["lidar_ip"] == address
            assert message["imu_host_ipcfg"] == {"ip": HOST, "dst_port": 56_401, "src_port": 56_400}
        for packets, sensor in units:
            assert [each.values[0x0000] for each in packets.states][-1] == b"\3"
            assert (sensor.state.point_host.address, sensor.state.point_host.port) == (HOST, 56_301)
            assert sensor.state.starts == 2


def test_the_sdk_starts_a_hap():
    with units_in_thread(unit_of(FIRST, "hap")) as [(_, sensor)]:
        (found, started) = ask(HOST, [FIRST], ["find"], ["work_mode", 1])
        assert (found[0]["type"], started) == (10, {FIRST: OK})
        assert (sensor.state.imu_host.address, sensor.state.imu_host.port) == (HOST, 58_000)


def is_whole(summary, period_ns):
    """Whether packets that came and those that the count says were sent before them fill the time by the stamps within 1 %."""
    sent = summary["packets"] + (summary["lost"] if period_ns != IMU_NS else 0)
    return abs(sent * period_ns / summary["span_ns"] - 1.0) < 0.01


def test_two_sensors_of_a_rig_send_the_sdk_points_of_each_type_and_inertial_packets(daemon, tmp_path):  # noqa: F811 - the fixture
    path = write_rig(tmp_path, RIG + "".join(SENSOR.format(name=name, address=address) for name, address in (("left", FIRST), ("right", SECOND))))
    daemon(path)
    steps = [["find"], ["silence", 0.3], ["work_mode", 1], ["collect", 5.0]]
    for data_type in (2, 3):
        steps += [["data_type", data_type], ["silence", 0.3], ["collect", 1.0]]
    steps += [["imu", False], ["silence", 0.3], ["work_mode", 2], ["silence", 0.3], ["push", 1]]
    found, silent, _, first, _, _, second, _, _, third, _, (_, without_imu), _, idle, pushed = ask(HOST, [FIRST, SECOND], *steps)
    assert [each["serial"] for each in found] == ["47MDN000000100", "47MDN000000101"]
    assert silent == idle == [0, 0]
    assert without_imu == 0
    for collected, data_type, length in ((first, 1, 1380), (second, 2, 804), (third, 3, 996)):
        for summary in collected.values():
            points, imu = summary["points"], summary["imu"]
            assert (points["types"], points["lengths"], points["counts"]) == ([data_type], [length], [96])
            assert (imu["types"], imu["lengths"], imu["counts"]) == ([0], [60], [1])
            assert is_whole(points, PACKET_NS)
            assert is_whole(imu, IMU_NS)
    assert {(message["cur_work_state"], message["pcl_data_type"]) for message in pushed.values()} == {(2, 3)}


@pytest.mark.extended
def test_a_hap_of_a_rig_sends_the_sdk_points_and_inertial_packets(daemon, tmp_path):  # noqa: F811 - the fixture
    daemon(write_rig(tmp_path, RIG + SENSOR.format(name="front", address=FIRST).replace("mid360", "hap")))
    found, _, collected, read, pushed = ask(HOST, [FIRST], ["find"], ["work_mode", 1], ["collect", 3.0], ["query"], ["push", 1])
    assert (found[0]["type"], found[0]["serial"]) == (10, "0TFDH000000100")
    summary = collected[FIRST]
    assert (summary["points"]["types"], summary["points"]["lengths"], summary["points"]["counts"]) == ([1], [1380], [96])
    assert is_whole(summary["points"], HAP_PACKET_NS)
    assert is_whole(summary["imu"], IMU_NS)
    assert read[FIRST][0] == 0
    assert (pushed[FIRST]["cur_work_state"], pushed[FIRST]["pcl_data_type"]) == (1, 1)
