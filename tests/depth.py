"""How many examples properties are tried with: a fixed small number in ``make test``, many in ``make test-deep``."""

import os

import hypothesis

DEPTH = "HILSIM_TEST_DEPTH"
"""Environment variable; ``deep``: many examples, drawn anew in each run."""

IS_DEEP = os.environ.get(DEPTH) == "deep"
EXAMPLES = 40
_DEEPER = 25


def examples(count):
    """``count`` examples in ``make test``, 25 times as many in ``make test-deep``."""
    return count * _DEEPER if IS_DEEP else count


def fewer(few, many):
    """``few`` of something in ``make test``, ``many`` in ``make test-deep``."""
    return many if IS_DEEP else few


def load_profile():
    """Without a deadline: the first call of a kernel compiles it, and hypothesis must take neither that nor a busy machine for a slow test."""
    hypothesis.settings.register_profile(
        "hilsim",
        deadline=None,
        max_examples=examples(EXAMPLES),
        derandomize=not IS_DEEP,
        database=None,
        suppress_health_check=[hypothesis.HealthCheck.too_slow],
    )
    hypothesis.settings.load_profile("hilsim")
