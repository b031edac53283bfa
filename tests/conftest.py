"""What every test may rely on."""

from pathlib import Path

import hypothesis
import pytest

# The first call of a kernel compiles it; hypothesis must not take that for a slow test.
hypothesis.settings.register_profile("kernels", deadline=None)
hypothesis.settings.load_profile("kernels")

CAPTURES = Path(__file__).resolve().parent.parent.parent / "shared" / "captures"
REFERENCE = CAPTURES.parent / "reference"


@pytest.fixture
def capture():
    """Path of a real capture by file name; skips where the captures are not at hand (they are not part of the project)."""

    def find(name: str) -> Path:
        path = CAPTURES / name
        if not path.is_file():
            pytest.skip(f"real capture {name} is not beside this checkout (it is not distributed with hilsim)")
        return path

    return find


@pytest.fixture
def reference():
    """Path of a file of reference arrays by name; skips where they are not at hand (they are not part of the project)."""

    def find(name: str) -> Path:
        path = REFERENCE / name
        if not path.is_file():
            pytest.skip(f"reference arrays {name} are not beside this checkout (they are not distributed with hilsim)")
        return path

    return find
