"""``hilsim check`` of a rig that is moved from outside."""

import pytest
from click.testing import CliRunner

from hilsim.cli.check import check


@pytest.mark.parametrize("time", ["live", "lockstep"])
def test_a_rig_is_sound_whoever_runs_it(tmp_path, time):
    path = tmp_path / "rig.toml"
    path.write_text(
        f'name = "moved"\n[platform]\nkind = "external"\n[external]\nlisten = "udp:127.0.0.1:2400"\ntime = "{time}"\n'
        '[scene]\ngenerator = "street"\n[[sensor]]\nname = "top"\nprofile = "vlp16"\n',
        encoding="utf-8",
    )
    found = CliRunner().invoke(check, [str(path), "--no-cost"])
    assert found.exit_code == 0, found.output
    assert "sound; 1 sensor(s)" in found.output
