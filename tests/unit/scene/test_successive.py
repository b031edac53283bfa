"""Worlds that follow one another at rig times."""

import numpy as np

from hilsim.world.scene.successive import SuccessiveWorlds
from hilsim.world.scene.world import build_world

S = 1_000_000_000


def test_each_time_has_the_world_that_has_begun_last():
    first, second, third = (build_world([]) for _ in range(3))
    worlds = SuccessiveWorlds(first)
    worlds.add(2 * S, second)
    worlds.add(2 * S, third)
    assert worlds.at(-5) is worlds.at(2 * S - 1) is first
    assert worlds.at(2 * S) is third
    found = [(world is third, at.tolist()) for world, at in worlds.parts(np.array([3 * S, 0, 2 * S, S]))]
    assert found == [(False, [1, 3]), (True, [0, 2])]


def test_a_world_never_begins_before_the_last_one_and_those_long_gone_are_released():
    made = [build_world([]) for _ in range(40)]
    worlds = SuccessiveWorlds(made[0])
    worlds.add(5 * S, made[1])
    worlds.add(4 * S, made[2])
    assert worlds.at(5 * S - 1) is made[0]
    for number in range(3, 40):
        worlds.add(number * 2 * S, made[number])
    assert worlds.at(70 * S) is made[35]
    assert worlds.at(0) is made[34]  # the oldest that is kept
