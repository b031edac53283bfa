"""Processor time of tests is summed by group, with the dearest tests first."""

import json

from tests.runs import costs


def test_groups_and_tests_are_listed_by_what_they_cost(tmp_path):
    for name, stored in {
        "units": {
            "a.py::test_a": {"own_s": 1.0, "children_s": 0.0, "is_property": True},
            "a.py::test_b": {"own_s": 2.0, "children_s": 0.5, "is_property": False},
        },
        "programs": {"b.py::test_c": {"own_s": 0.1, "children_s": 9.0, "is_property": False}},
    }.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "1.costs").write_text(json.dumps(stored))
    lines = [line.split() for line in costs.table(tmp_path)]
    assert lines[1] == ["programs", "1", "9.0", "0.0", "0.1", "9.1"]
    assert lines[2] == ["units", "2", "0.5", "1.0", "2.0", "3.5"]
    assert [line[1] for line in lines[5:]] == ["b.py::test_c", "a.py::test_b", "a.py::test_a"]


def test_a_run_without_tests_has_an_empty_table(tmp_path):
    assert costs.table(tmp_path)[1:] == ["", "the 0 dearest tests, s"]
