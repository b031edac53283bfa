"""The page of rules has each rule of the code once, with its severity and its packets."""

import re
from importlib import import_module
from pathlib import Path

from hilsim.families.velodyne.protocol.data import ReturnMode
from hilsim.read.analysis.conformance.findings import Rule

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs" / "reference" / "conformance-rules.md").read_text(encoding="utf-8")
FOLDER = ROOT / "hilsim"
MODULES = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted((*FOLDER.glob("read/analysis/conformance/*.py"), *FOLDER.glob("families/*/conformance/*.py")))
]
RULES = list(dict.fromkeys(value for module in MODULES for value in vars(import_module(module)).values() if isinstance(value, Rule)))
ROWS = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if line.startswith("| `")]


def test_rule_ids_are_unique_and_named_by_topic():
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9_]+", rule_id) for rule_id in ids)


def test_the_page_has_each_rule_once_with_the_codes_severity_and_packets():
    assert sorted(row[:2] + row[3:4] for row in ROWS) == sorted([f"`{rule.id}`", rule.severity.value, str(rule.packets)] for rule in RULES)


def test_every_row_of_the_page_says_what_holds_and_where_that_is_known_from():
    assert [row for row in ROWS if len(row) != 5 or not all(row)] == []


def test_the_page_names_every_return_mode():
    (mode,) = (" ".join(row) for row in ROWS if row[0] == "`factory.mode`")
    assert [known for known in ReturnMode if f"0x{known:02X}" not in mode] == []


def test_every_rule_is_exercised_by_a_test():
    folders = (Path(__file__).parent, *(ROOT / "tests" / "unit" / "families").glob("*/conformance"))
    text = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("test_*.py") if path != Path(__file__))
    assert [rule.id for rule in RULES if f'"{rule.id}"' not in text] == []
