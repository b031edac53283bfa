"""The page of rules is written from the code; ``make docs`` renews it."""

import re
from pathlib import Path

from tools.rules_reference import TOPICS

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "reference" / "conformance-rules.md"
RULES = [rule for _, rules in TOPICS for rule in rules]


def test_rule_ids_are_unique_and_named_by_topic():
    ids = [rule.id for rule in RULES]
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-z]+\.[a-z0-9_]+", rule_id) for rule_id in ids)


def test_every_rule_of_a_topic_module_is_in_its_list():
    declared = set()
    conformance = ROOT / "hilsim" / "analysis" / "conformance"
    for path in (*(conformance / "velodyne").glob("*.py"), *(conformance / "cepton").glob("*.py")):
        declared |= set(re.findall(r'Rule\(\s*id="([^"]+)"', path.read_text(encoding="utf-8")))
    assert declared == {rule.id for rule in RULES}


def test_every_rule_is_exercised_by_a_test():
    text = "".join(path.read_text(encoding="utf-8") for path in Path(__file__).parent.rglob("test_*.py") if path != Path(__file__))
    assert [rule.id for rule in RULES if f'"{rule.id}"' not in text] == []


def test_no_table_cell_holds_a_column_border():
    assert not [rule.id for rule in RULES if "|" in rule.holds + rule.source]
