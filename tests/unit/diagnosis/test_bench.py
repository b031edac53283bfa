"""``hilsim bench``: what it prints for people and for programs."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from hilsim.cli.bench import bench
from hilsim.cli.diagnosis import fleet, ray_speed
from hilsim.cli.diagnosis.fleet import Fleet
from hilsim.cli.diagnosis.ray_speed import RaySpeed
from hilsim.daemon.streaming.pacing import SensorLoad
from tests.support import write_rig
from tests.unit.diagnosis.test_fleet import trial

SPEED = RaySpeed(scene="the demo's street", triangles=65_023, build_s=0.134, rays_per_beam=7, one_core_mrays_per_s=19.31, all_cores_mrays_per_s=38.6)


def fleet_of(rays, *trials):
    load = SensorLoad(name="sensor-1", rate_hz=753.5, cost_ns=110e3, rays=rays, wanted_rays=rays)
    return Fleet(model="VLP-16", load=load, beside_others=15, alone=22, trials=tuple(replace(each, rays_per_beam=rays) for each in trials))


@pytest.fixture
def measured(monkeypatch):
    """What is taken for measured: fleets by rays a beam."""

    def take(one, seven):
        monkeypatch.setattr(ray_speed, "ray_speeds", lambda _cores, _say: iter([SPEED]))
        monkeypatch.setattr(fleet, "measure_fleet", lambda _path, rays, *_: {1: one, 7: seven}[rays])

    return take


def test_a_person_reads_what_was_measured_tried_and_concluded(measured, tmp_path):
    measured(fleet_of(1, trial(15, left_out=80), trial(11)), fleet_of(7, trial(4, rays_given_up=True)))
    done = CliRunner().invoke(bench, [str(write_rig(tmp_path))])
    assert done.exit_code == 0, done.output
    assert "the demo's street          65,023     0.13 s             7       19.3        38.6" in done.stdout
    one, seven = done.stdout.split("VLP-16, 1 ray a beam")[1].split("VLP-16, 7 rays a beam")
    assert "one takes 110 us a packet, 754 packets a second: 0.08 of a core" in one
    assert "tried 15 for 10 s: 30,000 packets, 80 left out, late 10 us (median), 50 us (p99), 0.50 cores, fifo" in one
    assert "15 should fit beside other work, 22 if nothing else runs" in one
    assert one.strip().endswith("this machine carries 11")
    assert "with fewer rays a beam to keep up" in seven
    assert "this machine carries none: use fewer rays a beam" in seven


def test_a_machine_that_carries_not_even_one_is_an_exit_code_of_1(measured, tmp_path):
    measured(fleet_of(1, trial(1, left_out=999)), fleet_of(7))
    assert CliRunner().invoke(bench, [str(write_rig(tmp_path))]).exit_code == 1


@pytest.mark.extended
def test_a_program_reads_what_was_really_measured_and_sent(tmp_path):
    done = CliRunner().invoke(bench, [str(write_rig(tmp_path)), "--no-rays", "--seconds", "1", "--most", "1", "--json"])
    told = json.loads(done.stdout)
    assert told["machine"]["cores"] >= 1
    assert told["rays"] == []
    assert [(each["model"], each["rays_per_beam"]) for each in told["fleets"]] == [("VLP-16", 1), ("VLP-16", 7)]
    for each in told["fleets"]:
        assert each["one"]["packets_per_s"] == pytest.approx(753.5, abs=0.1)
        assert each["one"]["cores"] == pytest.approx(each["one"]["us_per_packet"] * 753.5e-6, rel=0.01)
        assert each["carried"] in (0, 1)
        assert each["trials"][0]["sensors"] == 1
        assert each["trials"][0]["packets"] + each["trials"][0]["left_out_packets"] == pytest.approx(753.5 * each["trials"][0]["seconds"], rel=0.1)
    assert done.exit_code == (0 if any(each["carried"] for each in told["fleets"]) else 1)


def test_a_scene_that_cannot_be_read_is_reported_before_anything_is_measured(tmp_path):
    done = CliRunner().invoke(bench, [str(write_rig(tmp_path, 'name = "x"\n[[sensor]]\nname = "a"\nprofile = "vlp17"\n'))])
    assert done.exit_code != 0
    assert "vlp17" in str(done.exception or done.output)
