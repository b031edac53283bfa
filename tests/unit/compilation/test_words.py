"""Words at any byte of an array."""

import numpy as np

from hilsim.compilation.jit import kernel
from hilsim.compilation.words import load_word, store_half


@kernel
def _move(source, target):
    for at in range(source.size - 7):
        word = load_word(source, at)
        for half in range(2):
            store_half(target, 8 * at + 4 * half, np.int64(word >> np.uint64(32 * half)))


def test_words_are_read_and_written_at_any_byte():
    source, target = np.random.default_rng(1).integers(0, 256, 40, np.uint8), np.zeros(8 * 33, np.uint8)
    _move(source, target)
    np.testing.assert_array_equal(target.reshape(33, 8), np.lib.stride_tricks.sliding_window_view(source, 8))
