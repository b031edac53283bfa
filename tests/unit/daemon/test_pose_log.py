"""A vehicle's truth as a file, from states written as the loop that flies writes them."""

import csv
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from hilsim.errors import CaptureError
from hilsim.parts.vehicle.autopilot.passing_state import AutopilotStatus, Errors
from hilsim.parts.vehicle.autopilot.session import SessionState
from hilsim.parts.vehicle.pose_log import COLUMNS, PoseLog, newest_truth, samples_since
from hilsim.world.platforms.live import LivePose, build_live_pose, write_state

MS = 1_000_000


@dataclass
class Flown:
    live: LivePose = field(default_factory=build_live_pose)
    autopilot: AutopilotStatus = field(default_factory=AutopilotStatus)
    state: SessionState = SessionState.FLYING
    is_armed: bool = True
    is_crashed: bool = False
    contacts: tuple = (2, 1)


def fly(live, begin_ms, end_ms):
    """A climb of 1 m/s, a state a millisecond."""
    for at in range(begin_ms, end_ms):
        state = np.zeros(13)
        state[2], state[5], state[6] = at * 1e-3, 1.0, 1.0
        write_state(live, at * MS, state)


def test_samples_are_at_whole_periods_each_once_and_what_is_overwritten_is_left_out():
    live = build_live_pose()
    assert samples_since(live, -1, 20 * MS) == []
    fly(live, 0, 101)
    first = samples_since(live, -1, 20 * MS)
    assert [at for at, _ in first] == [number * 20 * MS for number in range(6)]
    assert first[-1][1][2] == pytest.approx(0.1)
    fly(live, 101, 2000)
    later = samples_since(live, first[-1][0], 20 * MS)
    assert later[0][0] >= 1480 * MS
    assert later[-1][0] == 1980 * MS
    assert newest_truth(live).position_m[2] == pytest.approx(1.999)


@pytest.mark.parametrize("name", ["truth.csv", "truth.parquet"])
def test_every_row_has_its_truth_and_what_the_autopilot_was_off_by(tmp_path, name):
    flown = Flown(autopilot=AutopilotStatus(errors=Errors(position_m=(0.1, 0.2, 0.3))))
    fly(flown.live, 0, 401)
    made = PoseLog(tmp_path / name, 50, flown)
    made.close()
    if name.endswith("csv"):
        rows = list(csv.DictReader((tmp_path / name).read_text().splitlines()))
    else:
        rows = pytest.importorskip("pyarrow.parquet").read_table(tmp_path / name).to_pylist()
    assert tuple(rows[0]) == COLUMNS
    assert [float(row["time_s"]) for row in rows] == pytest.approx(np.arange(21) * 0.02)
    last = rows[-1]
    assert float(last["position_up_m"]) == pytest.approx(0.4)
    assert float(last["velocity_up_mps"]) == pytest.approx(1.0)
    assert float(last["yaw_deg"]) == pytest.approx(90.0)
    assert (int(last["contacts"]), int(last["contact_kinds"]), int(last["armed"]), last["session"]) == (2, 1, 1, "flying")
    assert float(last["estimate_minus_truth_north_m"]) == pytest.approx(0.2)
    assert last["estimate_minus_truth_yaw_deg"] in {"", None}


def test_a_file_that_cannot_be_created_is_named(tmp_path):
    with pytest.raises(CaptureError, match=r"nowhere/truth\.csv: cannot be created: No such file or directory"):
        PoseLog(tmp_path / "nowhere" / "truth.csv", 50, Flown())


def test_a_disk_that_is_full_ends_the_log_alone():
    flown = Flown()
    made = PoseLog(Path("/dev/full"), 50, flown)
    fly(flown.live, 0, 401)
    made.close()
    assert made.rows == 0
