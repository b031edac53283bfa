"""How many sensors a machine carries: the rig that is tried, and what is concluded from trials."""

import pytest

from hilsim.cli.diagnosis import fleet
from hilsim.cli.diagnosis.fleet import Fleet, FleetTrial, fleet_rig, measure_fleet, try_fleet
from hilsim.cli.diagnosis.ray_speed import hills, ray_speeds, scan, town
from hilsim.config.places import rig_path
from hilsim.daemon.streaming.pacing import SensorLoad
from hilsim.errors import ConfigError
from hilsim.world.scene.world import SceneObject
from tests.support import ROOM, write_rig

CEPTON = ROOM.split("[[sensor]]")[0] + '[[sensor]]\nname = "front"\nprofile = "hr80t-like"\n'


def trial(sensors=4, *, left_out=0, packets=30_000, rays_given_up=False):
    return FleetTrial(
        sensors=sensors,
        rays_per_beam=1,
        rays_given_up=rays_given_up,
        seconds=10.0,
        packets=packets,
        left_out_packets=left_out,
        lateness_p50_us=10.0,
        lateness_p99_us=50.0,
        used_cores=0.5,
        scheduling="fifo",
    )


def test_a_fleet_repeats_the_rigs_first_sensor_with_a_separate_address_for_each(tmp_path):
    path = write_rig(tmp_path, ROOM.replace('name = "lidar"', 'name = "lidar"\nmount_position_m = [0.0, 0.0, 1.5]\nreturn_mode = "dual"'))
    rig = fleet_rig(path, 3, 7, (40_001, 40_002))
    assert [lidar.name for lidar in rig.lidars] == ["sensor-1", "sensor-2", "sensor-3"]
    assert {lidar.setup.sub_rays for lidar in rig.lidars} == {7}
    assert {lidar.setup.mount_position_m for lidar in rig.lidars} == {(0.0, 0.0, 1.5)}
    assert {lidar.setup.return_mode for lidar in rig.lidars} == {"dual"}
    assert len({sensor.network.source for sensor in rig.spec.sensor}) == 3
    assert {(sensor.network.destination, sensor.network.data_port, sensor.network.position_port) for sensor in rig.spec.sensor} == {
        ("127.0.0.1", 40_001, 40_002)
    }
    assert len(rig.spec.scene.box) == len(fleet_rig(path, 1, 1, (1, 2)).spec.scene.box) > 0
    assert not rig.spec.metrics.enabled


def test_a_sensor_without_position_packets_is_given_no_port_for_them(tmp_path):
    rig = fleet_rig(write_rig(tmp_path, CEPTON), 2, 1, (40_001, 40_002))
    assert {(sensor.network.data_port, sensor.network.position_port) for sensor in rig.spec.sensor} == {(40_001, None)}


@pytest.mark.parametrize(
    ("rig", "message"),
    [
        ("rovers", "a rig must have a sensor to see how many of them this machine carries, got none"),
        ("flight", 'platform.kind must not be "vehicle" here'),
    ],
)
def test_a_rig_that_cannot_be_multiplied_is_refused(rig, message):
    with pytest.raises(ConfigError, match=message):
        fleet_rig(rig_path(rig), 2, 1, (1, 2))


@pytest.mark.parametrize(
    ("tried", "holds"),
    [
        (trial(), True),
        (trial(left_out=3), True),
        (trial(left_out=4), False),
        (trial(rays_given_up=True), False),
        (trial(packets=0, left_out=9), False),
    ],
)
def test_a_fleet_is_carried_when_all_rays_and_all_but_one_packet_in_ten_thousand_come(tried, holds):
    assert tried.holds == holds


@pytest.mark.parametrize(("too_many", "tried", "carried"), [(99, [5], 5), (4, [5, 3], 3), (1, [5, 3, 2], 0)])
def test_fewer_are_tried_until_some_are_carried(tmp_path, monkeypatch, too_many, tried, carried):
    numbers = []
    monkeypatch.setattr(
        fleet, "try_fleet", lambda _path, sensors, *_: numbers.append(sensors) or trial(sensors, left_out=9 if sensors >= too_many else 0)
    )
    found = measure_fleet(write_rig(tmp_path), 1, 1.0, lambda _text: None, most=5)
    assert numbers == tried
    assert found.carried == carried
    assert found.alone >= found.beside_others >= 5
    assert found.model == "VLP-16"


def test_a_sensor_too_expensive_for_one_core_is_not_tried():
    load = SensorLoad(name="s", rate_hz=750.0, cost_ns=2e6, rays=7, wanted_rays=7)
    assert Fleet(model="VLP-16", load=load, beside_others=0, alone=0, trials=()).carried == 0


def test_a_trial_counts_what_was_really_sent(tmp_path):
    tried = try_fleet(write_rig(tmp_path), 2, 1, 1.0)
    assert tried.packets + tried.left_out_packets == pytest.approx(2 * 753.5 * tried.seconds, rel=0.1)
    assert 0.0 < tried.lateness_p50_us <= tried.lateness_p99_us
    assert 0.0 < tried.used_cores < 32
    assert tried.scheduling


@pytest.mark.extended
def test_rays_are_cast_into_scenes_of_their_size():
    said = []
    scenes = {"blocks": lambda: [SceneObject(mesh=part) for part in town(20)], "hills": lambda: [SceneObject(mesh=hills(30))]}
    speeds = list(ray_speeds(2, said.append, scenes))
    assert [(speed.scene, speed.triangles, speed.rays_per_beam) for speed in speeds] == [
        ("blocks", 2 + 20 * 12, 1),
        ("blocks", 2 + 20 * 12, 7),
        ("hills", 2 * 30**2, 1),
        ("hills", 2 * 30**2, 7),
    ]
    assert all(0.01 < speed.one_core_mrays_per_s < 1e4 and 0.01 < speed.all_cores_mrays_per_s < 1e4 for speed in speeds)
    assert said == ["compiling the kernels that cast rays", "casting rays: blocks", "casting rays: hills"]


def test_a_scan_goes_round_once_with_its_rays_about_each_beam():
    one, seven = scan([0.0, 10.0], 1).reshape(2, -1, 1, 3), scan([0.0, 10.0], 7).reshape(2, -1, 7, 3)
    assert (one[:, :, 0] == seven[:, :, 0]).all()
    apart = (seven[:, :, 1:] - seven[:, :, :1]) ** 2
    assert apart.sum(axis=-1) ** 0.5 == pytest.approx(1.5e-3, rel=0.02)
