"""Shipped rigs with a vehicle and a controller, flown as they are but for their ports: from take-off to landing, judged by the controller and by the vehicle's truth."""

import pytest

from hilsim.config.profiles import profiles_directory
from hilsim.config.rig import load_rig
from tests.compiled import compiled_only
from tests.support import write_rig
from tests.system.flying import WHOLE, figures, order, report_of, serious

pytestmark = [pytest.mark.extended, pytest.mark.system, compiled_only]
_SERIAL = [path for path in sorted((profiles_directory() / "rigs").glob("*.toml")) if 'kind = "serial"' in path.read_text()]
_LEVEL_M, _HEIGHT_M = 0.5, 0.3


def on_other_ports(text, path, tmp_path, data_port, position_port, station_port):
    """A rig on ports of this test; whatever is not found in it is a failure."""
    [port] = {load_rig(path).spec.part("vehicle")[0].controller.port}
    for old, new in (
        (f'"{port}"', f'"{tmp_path / "board"}"'),
        ("127.0.0.1:14550", f"127.0.0.1:{station_port}"),
        ("[sensor.network]", f"[sensor.network]\ndata_port = {data_port}\nposition_port = {position_port}"),
    ):
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text + "\n[metrics]\nport = 0\n"


@pytest.mark.alone
@pytest.mark.parametrize("path", _SERIAL, ids=[path.stem for path in _SERIAL])
def test_a_shipped_rig_is_flown_from_take_off_to_landing(path, daemon, programs, lidar, receiver, free_port, tmp_path):
    text = on_other_ports(path.read_text(), path, tmp_path, lidar.port, receiver().port, free_port())
    running = daemon(write_rig(tmp_path, text))
    report = report_of(programs.start("px4", "--pty", tmp_path / "board", "--script", "hover", "--for", 90))
    assert serious(report, running) == {}
    assert order(report, *WHOLE)[-len(WHOLE) :] == WHOLE
    assert report["figures"]["hover_level_m"] < _LEVEL_M
    assert report["figures"]["hover_height_m"] < _HEIGHT_M
    assert figures(running)["hilsim_vehicle_crashed"] == 0


def test_the_shipped_rigs_that_a_controller_flies_are_among_those():
    assert "px4" in {path.stem for path in _SERIAL}
