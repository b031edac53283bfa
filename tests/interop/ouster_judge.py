"""ouster-sdk, the vendor's library, as a judge of packets, metadata and points.

It is installed in an environment of its own, ``.venv-ouster``: it requires click below 8.1.8 and rosbags 0.9.23, and hilsim requires newer ones.
"""

import functools
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

OBSERVER = Path(__file__).parent / "ouster_observer.py"
PYTHON = OBSERVER.parents[2] / ".venv-ouster" / "bin" / "python"
TIMEOUT_S = 120


@functools.cache
def fault():
    """Reason why the SDK cannot be asked; None if it can."""
    if not PYTHON.is_file():
        return "its environment .venv-ouster is not installed"
    probe = subprocess.run([PYTHON, "-c", "import ouster.sdk.core"], check=False, capture_output=True, text=True)
    return None if probe.returncode == 0 else (probe.stderr.strip().splitlines() or ["it ends the process"])[-1]


def judge(questions):
    """Answers of the SDK to a list of questions, which ``ouster_observer`` describes; skips the test where there is no SDK."""
    if fault() is not None:
        pytest.skip(f"the vendor's ouster-sdk does not load here: {fault()}")
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder) / "questions.npz", Path(folder) / "answers.npz"
        np.savez(asked, **{f"{number}.{name}": value for number, question in enumerate(questions) for name, value in question.items()})
        run = subprocess.run([PYTHON, OBSERVER, asked, answered], check=False, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert run.returncode == 0, run.stderr
        with np.load(answered) as found:
            answers = [{} for _ in questions]
            for key in found:
                number, _, name = key.partition(".")
                answers[int(number)][name] = found[key]
    return answers
