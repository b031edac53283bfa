"""Processor time of the tests, by group and by test, from what each run stored of itself (``failures.Recorder``)."""

import json
from collections import defaultdict
from pathlib import Path

_DEAREST = 20


def table(folder):
    """Lines of two tables: processor seconds of each group of ``make test``, and of the dearest tests.

    Columns: in tests that start programs what those took; properties (hypothesis); everything else, which is compiling and computing.
    """
    groups, tests = defaultdict(lambda: [0.0, 0.0, 0.0, 0]), {}
    for path in sorted(Path(folder).glob("*/*.costs")):
        for test, cost in json.loads(path.read_text()).items():
            row = groups[path.parent.name]
            row[0] += cost["children_s"]
            row[1 if cost["is_property"] else 2] += cost["own_s"]
            row[3] += 1
            tests[test] = tests.get(test, 0.0) + cost["own_s"] + cost["children_s"]
    lines = [f"{'group':20} {'tests':>6} {'programs, s':>12} {'properties, s':>14} {'rest, s':>9} {'all, s':>9}"]
    lines += [
        f"{name:20} {count:6} {programs:12.1f} {properties:14.1f} {rest:9.1f} {programs + properties + rest:9.1f}"
        for name, (programs, properties, rest, count) in sorted(groups.items(), key=lambda item: -sum(item[1][:3]))
    ]
    dearest = sorted(tests.items(), key=lambda item: -item[1])[:_DEAREST]
    return [*lines, "", f"the {len(dearest)} dearest tests, s", *(f"{seconds:8.1f}  {test}" for test, seconds in dearest)]
