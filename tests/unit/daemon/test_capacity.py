"""Does a rig fit the machine: the report for people."""

import re

import pytest
from click.testing import CliRunner

from hilsim.assembly.build import build_scenery
from hilsim.cli.check import check
from hilsim.cli.diagnosis.machine import examine
from hilsim.cli.doctor import doctor
from hilsim.config.rig import load_rig
from hilsim.config.tables.render import REAL_TIME_SHARE
from hilsim.daemon import precompile
from hilsim.daemon.streaming.capacity import Capacity, carried, carried_sentence, measure_capacity
from hilsim.daemon.streaming.pacing import FULL_SHARE, SensorLoad, fits
from tests.support import ROOM, write_rig


def load(name, share, rays=1):
    return SensorLoad(name=name, rate_hz=750.0, cost_ns=share * 1e9 / 750.0, rays=rays, wanted_rays=rays)


def of(*shares, rays=1, cores=2):
    return Capacity(loads=tuple(load(f"s{number}", share, rays) for number, share in enumerate(shares)), cores=cores)


@pytest.mark.parametrize(
    ("capacity", "said"),
    [
        (of(0.6), "rendering s0 needs 0.60 of a core, 2 available (measured)"),
        (
            of(0.8, 0.8),
            "rendering 2 sensor(s) needs 1.60 of a core, 2 available (measured): it fits, but not under real-time scheduling, so packets are less punctual on a busy machine",
        ),
        (
            of(*[0.3] * 10),
            "rendering 10 sensor(s) needs 3.00 of a core, 2 available (measured): it does not fit, and packets will be missing: use fewer sensors or more cores",
        ),
        (
            of(0.9, 0.9, 0.9, rays=7),
            (
                "rendering 3 sensor(s) needs 2.70 of a core, 2 available (measured): it does not fit; with fewer rays a beam (s0: 1 of 7, s1: 1 of 7) it needs 1.53, "
                "and is rendered with these"
            ),
        ),
    ],
)
def test_needed_and_available_cores_are_reported(capacity, said):
    assert capacity.sentence == said


def test_the_cost_of_a_sensor_is_measured(tmp_path):
    rig = load_rig(write_rig(tmp_path))

    (measured,) = measure_capacity(rig, build_scenery(rig)).loads

    assert 1_000 < measured.cost_ns < 100_000_000
    assert measured.rate_hz == pytest.approx(753.5, abs=0.1)


def test_check_says_what_rendering_costs(tmp_path):
    done = CliRunner().invoke(check, [str(write_rig(tmp_path)), "--cost"])

    assert done.exit_code == 0
    assert "note: rendering lidar needs 0." in done.stderr


def test_check_compiles_nothing_by_default(tmp_path, monkeypatch):
    monkeypatch.setattr(precompile, "is_compiled", lambda _rig: False)

    done = CliRunner().invoke(check, [str(write_rig(tmp_path))])

    assert "the cost of rendering is unknown, because not all kernels of this rig are compiled yet" in done.stderr
    assert "needs" not in CliRunner().invoke(check, [str(write_rig(tmp_path)), "--no-cost"]).stderr


def test_the_doctor_says_whether_a_rig_fits(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.cli.diagnosis.machine.is_compiled", lambda _rig: True)

    found = {finding.subject: finding for finding in examine(load_rig(write_rig(tmp_path)))}

    assert "needs 0." in found["rendering room"].fact
    assert re.fullmatch(
        r"of \d+ core\(s\) a VLP-16 takes 0\.\d\d of a core with 1 ray a beam \(\d+ of them fit under real-time scheduling, \d+ if nothing else runs\)",
        found["sensors like lidar"].fact,
    )


def test_the_doctor_measures_a_single_ray_beside_the_rays_that_the_rig_has(tmp_path, monkeypatch):
    monkeypatch.setattr("hilsim.cli.diagnosis.machine.is_compiled", lambda _rig: True)
    monkeypatch.setattr("hilsim.cli.diagnosis.machine.RENDERED_S", 0.05)
    path = write_rig(tmp_path, ROOM.replace("sub_rays = 1\n", "").replace('name = "lidar"', 'name = "lidar"\nsub_rays = 7'))

    found = {finding.subject: finding for finding in examine(load_rig(path))}

    assert re.search(r"with 7 rays a beam \(.*\), 0\.\d\d of a core with 1 ray a beam \(", found["sensors like lidar"].fact)


@pytest.mark.parametrize("share", [0.051, 0.21, 0.3, 0.61, 0.94, 0.949])
@pytest.mark.parametrize("cores", [1, 2, 4, 16])
@pytest.mark.parametrize("limit", [REAL_TIME_SHARE, FULL_SHARE])
def test_as_many_are_carried_as_fit_and_not_one_more(share, cores, limit):
    one = load("a", share)
    most = carried(one, cores, share=limit)
    assert most * share <= limit * cores < (most + 1) * share
    assert limit != FULL_SHARE or most == 0 or (fits([one] * most, cores) and not fits([one] * (most + 1), cores))


def test_a_sensor_too_expensive_for_one_core_is_carried_by_no_number_of_cores():
    assert carried(load("a", 0.96), 64) == 0


def test_how_many_are_carried_is_reported():
    assert (
        carried_sentence(load("roof", 0.5, 7), 2)
        == "0.50 of a core with 7 rays a beam (2 of them fit under real-time scheduling, 3 if nothing else runs)"
    )


def test_a_stretch_costs_about_what_a_few_packets_cost(tmp_path):
    rig = load_rig(write_rig(tmp_path))
    scenery = build_scenery(rig)
    (stretch,), (few,) = measure_capacity(rig, scenery, seconds=0.3).loads, measure_capacity(rig, scenery).loads
    assert few.cost_ns / 5 < stretch.cost_ns < 5 * few.cost_ns  # another process may take half of a core's speed


def test_a_rig_is_given_to_the_doctor_once(tmp_path):
    path = str(write_rig(tmp_path))
    for arguments in ([path, "--rig", path], [path, "--link", "/dev/null"]):
        done = CliRunner().invoke(doctor, arguments)
        assert (done.exit_code, "give either RIG or --" in done.stderr) == (2, True)
