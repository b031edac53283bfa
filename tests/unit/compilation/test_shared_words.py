"""Words that threads share are as many as their enum names, in whole cache lines."""

from enum import IntEnum

import numpy as np
import pytest

from hilsim.compilation.atomics import shared_words
from hilsim.parts.vehicle.autopilot.loop_context import FlightCount
from hilsim.transmit.brake import Brake


@pytest.mark.parametrize(("members", "width"), [(1, 8), (8, 8), (9, 16), (17, 24)])
def test_each_member_has_a_column_and_the_line_is_filled(members, width):
    columns = IntEnum("Column", {f"A{number}": number for number in range(members)})
    assert shared_words(columns).shape == (width,)
    assert shared_words(columns, 5).shape == (5, width)
    assert shared_words(columns).dtype == np.int64


@pytest.mark.parametrize("columns", [FlightCount, Brake])
def test_the_last_member_of_an_enum_with_gaps_is_inside(columns):
    array = shared_words(columns)
    for member in columns:
        array[member] = 1
    assert array.sum() == len(columns)
