"""What the judge says of frames that are missing."""

from types import SimpleNamespace

import pytest

from tests.controllers.rules.order import Order
from tests.controllers.situation import Situation


class Report:
    def __init__(self):
        self.verdicts = []

    def judge(self, rule, holds, *_):
        self.verdicts.append((rule, bool(holds)))


@pytest.mark.parametrize(
    ("pause_us", "held_up", "holds"), [(4_000, False, False), (190_000, False, False), (200_000, False, True), (4_000, True, True)]
)
def test_missing_numbers_are_a_fault_but_behind_a_silence_or_a_late_reader(pause_us, held_up, holds):
    report, situation = Report(), Situation(serial=True)
    order = Order(report, situation)
    for now_us, sequence in ((0, 44), (pause_us, 95)):
        situation.held_up = held_up and now_us > 0
        order.frame(now_us, SimpleNamespace(source=(1, 200), sequence=sequence, identity=-1), None)
    assert report.verdicts == [("sequence", True), ("sequence", holds)]
