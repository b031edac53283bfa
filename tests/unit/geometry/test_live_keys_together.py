"""Keys that are written together are those that are written one by one."""

import numpy as np

from hilsim.world.geometry.live_keys import build_live_keys, write_key, write_keys


def test_keys_written_together_are_those_written_one_by_one():
    draw, one_by_one, together = np.random.default_rng(3), build_live_keys(3, 8), build_live_keys(3, 8)
    slot, time_ns = draw.integers(0, 3, 40), np.arange(40) * 1000
    position, velocity, turn, is_seen = draw.normal(size=(40, 3)), draw.normal(size=(40, 3)), draw.normal(size=(40, 4)), draw.integers(0, 2, 40)
    for row in range(40):
        write_key(one_by_one, slot[row], time_ns[row], position[row], velocity[row], turn[row], bool(is_seen[row]))
    write_keys(together, slot, time_ns, position, velocity, turn, is_seen.astype(np.uint8))
    for name in one_by_one._fields:
        np.testing.assert_array_equal(getattr(together, name), getattr(one_by_one, name))
