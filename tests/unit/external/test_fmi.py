"""A real FMU, compiled here, that moves a body on a circle."""

import math
import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest

from hilsim.errors import AssetError
from hilsim.parts.external.sources.fmi import Fmu, FmuSpec, FmuVariables
from hilsim.world.geometry.rotations import roll_pitch_yaw_rad

pytest.importorskip("fmpy")
pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
NAMES = ("x", "y", "z", "roll", "pitch", "yaw", "vx", "vy", "vz", "p", "q", "r", "radius", "speed", "fail_at")
INPUTS = ("radius", "speed", "fail_at")
BODY = FmuVariables(position=("x", "y", "z"), angles=("roll", "pitch", "yaw"), velocity=("vx", "vy", "vz"), rates=("p", "q", "r"))


def description(version):
    rows = []
    for number, name in enumerate(NAMES):
        causality, variability = ("input", "continuous") if name in INPUTS else ("output", "continuous")
        start = ' start="1.0"' if name in INPUTS else ""
        if version == 3:
            rows.append(f'<Float64 name="{name}" valueReference="{number}" causality="{causality}" variability="{variability}"{start}/>')
        else:
            rows.append(
                f'<ScalarVariable name="{name}" valueReference="{number}" causality="{causality}" variability="{variability}"><Real{start}/></ScalarVariable>'
            )
    outputs = [number for number, name in enumerate(NAMES) if name not in INPUTS]
    if version == 3:
        listed = "".join(f'<Output valueReference="{number}"/>' for number in outputs)
        return (
            '<?xml version="1.0"?><fmiModelDescription fmiVersion="3.0" modelName="circling" instantiationToken="{1}">'
            f'<CoSimulation modelIdentifier="circling"/><ModelVariables>{"".join(rows)}'
            '<Float64 name="time" valueReference="99" causality="independent" variability="continuous"/></ModelVariables>'
            f"<ModelStructure>{listed}</ModelStructure></fmiModelDescription>"
        )
    listed = "".join(f'<Unknown index="{number + 1}"/>' for number in outputs)
    return (
        '<?xml version="1.0"?><fmiModelDescription fmiVersion="2.0" modelName="circling" guid="{1}">'
        f'<CoSimulation modelIdentifier="circling"/><ModelVariables>{"".join(rows)}</ModelVariables>'
        f"<ModelStructure><Outputs>{listed}</Outputs></ModelStructure></fmiModelDescription>"
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    path = tmp_path_factory.mktemp("fmu") / "circling.so"
    subprocess.run(["gcc", "-O1", "-w", "-shared", "-fPIC", "-o", path, Path(__file__).parent / "circling.c", "-lm"], check=True)
    return path


@pytest.fixture(params=[2, 3])
def fmu(request, library, tmp_path):
    path = tmp_path / "circling.fmu"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("modelDescription.xml", description(request.param))
        archive.write(library, f"binaries/{'x86_64-linux' if request.param == 3 else 'linux64'}/circling.so")
    return path


def test_platform_goes_round_as_the_fmu_has_it(fmu):
    spec = FmuSpec(
        file=fmu, step_s=0.02, platform=BODY, objects={"car": FmuVariables(position=("y", "x", "z"))}, start={"radius": 20.0, "speed": 8.0}
    )
    with Fmu(spec) as running:
        found = list(running.snapshots(1.0))
        running.set("speed", 0.0)
        assert running.step().platform.velocity_mps == (0.0, 0.0, 0.0)
    assert [one.time_ns for one in found] == [20_000_000 * number for number in range(51)]
    turned = 8.0 / 20.0
    last = found[-1].platform
    np.testing.assert_allclose(last.position_m, (20.0 * math.cos(turned), 20.0 * math.sin(turned), 1.5), atol=1e-12)
    np.testing.assert_allclose(last.velocity_mps, (-8.0 * math.sin(turned), 8.0 * math.cos(turned), 0.0), atol=1e-12)
    np.testing.assert_allclose(roll_pitch_yaw_rad(last.orientation), (0.0, 0.0, turned + math.pi / 2), atol=1e-12)
    assert last.rates_radps == (0.0, 0.0, 0.4)
    (car,) = found[-1].objects
    assert (car.name, car.motion.position_m) == ("car", (last.position_m[1], last.position_m[0], 1.5))


def test_every_variable_that_the_fmu_lacks_is_named(fmu):
    spec = FmuSpec(file=fmu, platform=FmuVariables(position=("x", "up", "z")), start={"mass": 1.0})
    with pytest.raises(AssetError, match=r"must be one of the FMU's, got 'up'\n.*got 'mass'"):
        Fmu(spec).__enter__()


def test_failing_step_is_reported_with_its_time(fmu):
    with Fmu(FmuSpec(file=fmu, step_s=0.1, platform=BODY, start={"fail_at": 0.25})) as running:
        running.step()
        running.step()
        with pytest.raises(AssetError, match=r"step at 0\.2 s failed"):
            running.step()
        with pytest.raises(AssetError, match="input must be listed in start, got 'radius'"):
            running.set("radius", 1.0)


def test_unit_quaternion_is_required(fmu):
    moving = FmuVariables(position=("x", "y", "z"), quaternion=("x", "y", "z", "p"))
    with (
        Fmu(FmuSpec(file=fmu, platform=moving)) as running,
        pytest.raises(AssetError, match=r"at 0 s: x, y, z, p must be a unit quaternion, got length"),
    ):
        running.snapshot()


def test_file_that_is_no_fmu_is_refused(tmp_path):
    path = tmp_path / "a.fmu"
    path.write_bytes(b"no archive")
    with pytest.raises(AssetError, match=r"a\.fmu: must be an FMU that can be started"):
        Fmu(FmuSpec(file=path, platform=BODY)).__enter__()


@pytest.mark.parametrize(
    ("keys", "rule"),
    [
        ({"step_s": 0.0, "platform": BODY}, "step_s must be 1e-6 to 1, got 0.0"),
        ({}, "platform or objects must be given"),
    ],
)
def test_specification_has_its_rules(keys, rule):
    with pytest.raises(ValueError, match=rule):
        FmuSpec(file=Path("a.fmu"), **keys)
