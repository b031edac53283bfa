"""The table of what all runs skipped."""

import json
from types import SimpleNamespace

from tests import skips


def test_all_runs_stand_in_one_table_the_most_frequent_reason_first(tmp_path):
    (tmp_path / "1.json").write_text(json.dumps({"needs root": 2, "needs a capture": 3}))
    (tmp_path / "2.json").write_text(json.dumps({"needs a capture": 1}))
    assert skips.table(tmp_path) == ["skipped  because", "      4  needs a capture", "      2  needs root"]


def test_a_run_writes_its_reasons(tmp_path, monkeypatch):
    monkeypatch.setenv(skips.FOLDER, str(tmp_path / "skips"))
    skips.write([SimpleNamespace(longrepr=("a.py", 7, f"Skipped: {reason}")) for reason in ("needs root", "needs a device", "needs root")])
    assert skips.table(tmp_path / "skips") == ["skipped  because", "      2  needs root", "      1  needs a device"]


def test_nothing_skipped_is_reported(tmp_path):
    assert skips.table(tmp_path) == ["nothing was skipped"]
