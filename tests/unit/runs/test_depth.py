"""Properties are tried with the same examples in each run, and with many more where that is asked for."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
COUNTING = (
    "from hypothesis import given, strategies\nfrom tests.runs.depth import EXAMPLES\nseen = []\n\n"
    "@given(strategies.integers())\ndef test_a(value):\n    seen.append(value)\n\n"
    "def test_b():\n    print('seen', len(seen), hash(tuple(seen)))\n"
)


@pytest.mark.parametrize(("depth", "factor", "is_repeated"), [("", 1, True), ("deep", 25, False)])
def test_examples_are_few_and_fixed_by_default_and_many_and_new_in_depth(tmp_path, depth, factor, is_repeated):
    (tmp_path / "conftest.py").write_text("from tests.conftest import *  # noqa: F403\n")
    (tmp_path / "test_inner.py").write_text(COUNTING)
    environment = os.environ | {"PYTHONPATH": str(ROOT), "HILSIM_TEST_DEPTH": depth}
    command = [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)]
    outputs = [subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    lines = [next(line.split("seen ")[1] for line in output.splitlines() if "seen " in line) for output in outputs]
    assert [int(line.split()[0]) for line in lines] == [pytest.approx(40 * factor, rel=0.05)] * 2
    assert (lines[0] == lines[1]) is is_repeated
