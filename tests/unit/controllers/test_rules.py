"""The scripted controller finds what is wrong with a bridge, and nothing where nothing is. All in virtual time."""

from functools import cache

import pytest

from hilsim_flight_controller.flight_report import RULES
from tests.controllers.cable import judged
from tests.controllers.wrongs import WRONGS, Wrong

pytestmark = pytest.mark.extended

_RIGHT = {
    "a serial line": Wrong(rules=frozenset(), change=lambda _bridge: None, run_s=25.0),
    "TCP": Wrong(rules=frozenset(), change=lambda _bridge: None, run_s=5.0, serial=False),
    "TCP in lockstep": Wrong(rules=frozenset(), change=lambda _bridge: None, run_s=5.0, serial=False, lockstep=True),
}


@cache
def _report(name):
    return judged(_RIGHT[name])


@pytest.mark.parametrize("name", _RIGHT)
def test_the_right_bridge_breaks_no_rule_over(name):
    assert [str(fault) for fault in _report(name).faults] == []


def test_every_rule_is_judged_over_a_serial_line_or_in_lockstep():
    seen = {rule for name in _RIGHT for rule, count in _report(name).judged.items() if count}
    assert sorted(set(RULES) - seen) == ["quaternion"]  # judged only where such a message comes


@pytest.mark.parametrize("name", WRONGS)
def test_a_bridge_that_is_wrong_in_one_way_breaks_that_rule_alone(name):
    assert sorted(judged(WRONGS[name]).broken) == sorted(WRONGS[name].rules)
