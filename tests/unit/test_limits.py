"""The table of limits: what its rules say, and that it is whole."""

from importlib import import_module
from pathlib import Path

import pytest

from hilsim import limits
from hilsim.errors import AssetError
from hilsim.parts.replays.limits import LOOP_PASS_S

PARTS = Path(limits.__file__).parent / "parts"
MODULES = [limits, *(import_module(f"hilsim.parts.{path.parent.name}.limits") for path in sorted(PARTS.glob("*/limits.py")))]
LIMITS = [value for module in MODULES for value in vars(module).values() if isinstance(value, limits.Limit)]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "limits.md"


def test_a_value_at_the_bound_is_accepted():
    limits.FACE_CORNERS.enforce(limits.FACE_CORNERS.bound, "a.obj: line 3", AssetError)


def test_a_value_beyond_an_upper_bound_is_named_with_the_bound_and_the_place():
    with pytest.raises(AssetError, match=r"^a\.obj: line 3: corners of a face must be at most 10,000, got 900,000$"):
        limits.FACE_CORNERS.enforce(900_000, "a.obj: line 3", AssetError)


def test_a_value_below_a_lower_bound_is_named_with_its_unit():
    assert LOOP_PASS_S.rule(5.3e-6, "a pass of x.pcap") == (False, "a pass of x.pcap must be at least 0.01 s, got 5.3e-06 s")


def test_nan_is_within_no_limit():
    assert not [limit for limit in LIMITS if limit.holds(float("nan"))]


def test_the_page_has_a_row_for_each_limit_with_its_bound_place_and_reason():
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][
        1:
    ]
    assert [row[:2] for row in rows] == [[limit.subject, f"at {'least' if limit.is_lower else 'most'} {limit.text}"] for limit in LIMITS]
    assert len(rows) > 25
    assert not [row for row in rows if len(row) != 4 or not all(row)]


def test_every_limit_is_asked_for_somewhere():
    sources = "\n".join(path.read_text() for path in Path(limits.__file__).parent.rglob("*.py") if path.name != "limits.py")
    names = [name for module in MODULES for name, value in vars(module).items() if isinstance(value, limits.Limit)]
    assert [name for name in names if name not in sources] == []
