"""Pauses and leaps of a replay at exact times: a table of actions that a running player reads.

An action begins between two packets in their order: packets that are due before its time are played before it, and the first packet that is due at its
time or later, with all that follow, is played after it. The same rule holds offline (``hilsim.parts.replays.offline``). The player works ahead of the deadlines;
an action that comes too late begins after the packets that it has put into rings, and the table states that time.
"""

from enum import IntEnum
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hilsim.compilation.atomics import load_acquire, publish, shared_words, store_release
from hilsim.compilation.jit import constant, kernel
from hilsim.transmit.packet_queue import PacketQueue, release, waiting

CAPACITY = 64
"""Actions that have been added and have not begun, at most; a power of two."""

_MASK, _ONE, _ZERO = constant(CAPACITY - 1), constant(1), constant(0)


class Action(IntEnum):
    """Kinds of actions."""

    PAUSE = 0
    """All following packets wait."""
    RESUME = 1
    """The packets that wait are due later by the length of the pause."""
    SEEK = 2
    """The packets on the packet queue are discarded; those that come next begin at ``TimedActions.line_ns``."""


class TimedWord(IntEnum):
    """Elements of ``TimedActions.words``; all but the first are written by the player."""

    ADDED = 0
    """Number of added actions; written by Python."""
    SEEN = 8
    """Number of actions whose time has been decided."""
    DONE = 9
    """Number of actions that have begun."""
    HELD_NS = 10
    """CLOCK_MONOTONIC time since which an action pauses the replay, else 0."""
    MOVED_NS = 11
    """Total length of the pauses that have ended."""
    LAST_NS = 12
    """Time of the last decided action."""


HELD, MOVED = constant(TimedWord.HELD_NS), constant(TimedWord.MOVED_NS)
_SEEN, _DONE, _LAST = constant(TimedWord.SEEN), constant(TimedWord.DONE), constant(TimedWord.LAST_NS)
_PAUSE, _RESUME = constant(Action.PAUSE), constant(Action.RESUME)


class TimedActions(NamedTuple):
    """Actions of a replay; action ``k`` is in row ``k % CAPACITY``.

    Attributes:
        words: ``int64[n]``, columns by ``TimedWord``.
        at_ns: ``int64[CAPACITY]``, CLOCK_MONOTONIC time for which the action was requested.
        action: ``int64[CAPACITY]``, an ``Action``.
        begun_ns: ``int64[CAPACITY]``, output: time at which it begins.
        line_ns: ``int64[CAPACITY]``, output: place on the time line at which a seek continues.
    """

    words: npt.NDArray[np.int64]
    at_ns: npt.NDArray[np.int64]
    action: npt.NDArray[np.int64]
    begun_ns: npt.NDArray[np.int64]
    line_ns: npt.NDArray[np.int64]

    def add(self, action: Action, at_ns: int) -> int:
        """Add an action behind all others; returns its number.

        Raises:
            ValueError: too many actions wait.
        """
        number = int(self.words[TimedWord.ADDED])
        if not self.has_room:
            raise ValueError(f"at most {CAPACITY} actions may wait for their beginning, got one more")
        self.at_ns[number % CAPACITY], self.action[number % CAPACITY] = at_ns, action
        publish(self.words, int(TimedWord.ADDED), number + 1)
        return number

    @property
    def has_room(self) -> bool:
        """Whether another action may be added now."""
        return bool(self.words[TimedWord.ADDED] - self.words[TimedWord.DONE] < CAPACITY)

    def decided_ns(self, number: int) -> int | None:
        """CLOCK_MONOTONIC time at which an action begins; None until the player has decided it."""
        return int(self.begun_ns[number % CAPACITY]) if self.words[TimedWord.SEEN] > number else None

    def is_done(self, number: int) -> bool:
        """Whether an action has begun."""
        return bool(self.words[TimedWord.DONE] > number)

    @property
    def has_ended(self) -> bool:
        """Whether all actions have begun."""
        return bool(self.words[TimedWord.DONE] == self.words[TimedWord.ADDED])

    @property
    def held_ns(self) -> int:
        """CLOCK_MONOTONIC time since which an action pauses the replay, else 0."""
        return int(self.words[TimedWord.HELD_NS])

    @property
    def moved_ns(self) -> int:
        """Total length of the pauses that have ended."""
        return int(self.words[TimedWord.MOVED_NS])


def allocate_actions() -> TimedActions:
    """Allocate an empty table."""
    return TimedActions(shared_words(TimedWord), *(np.zeros(CAPACITY, np.int64) for _ in range(4)))


@kernel
def scaled(duration_ns: int, scale: float) -> int:
    """Convert a duration of the time line to real time; exact at scale 1, else within a nanosecond over months."""
    return duration_ns if scale == 1.0 else int(np.rint(duration_ns * scale))


@kernel
def unscaled(duration_ns: int, scale: float) -> int:
    """Convert a real duration to one of the time line."""
    return duration_ns if scale == 1.0 else int(np.rint(duration_ns / scale))


@kernel
def _decide(timed: TimedActions, now_ns: int, last_due_ns: int) -> None:
    """Decide when the actions begin that were added since the last call."""
    words = timed.words
    added = load_acquire(words, (0,))
    while words[_SEEN] < added:
        row = words[_SEEN] & _MASK
        begun_ns = max(timed.at_ns[row], last_due_ns + _ONE, words[_LAST])
        if timed.action[row] != _PAUSE:
            begun_ns = max(begun_ns, now_ns)  # no packet is due in the past afterwards
        timed.begun_ns[row] = begun_ns
        words[_LAST] = begun_ns
        store_release(words, (_SEEN,), words[_SEEN] + _ONE)


@kernel
def act(queue: PacketQueue, timed: TimedActions, paused_ns: int, epoch_ns: int, scale: float, now_ns: int, last_due_ns: int) -> int:
    """Begin the actions whose turn it is before the next packet; returns the number of packets that were discarded.

    Args:
        queue: Packet queue of the replay.
        timed: Actions.
        paused_ns: CLOCK_MONOTONIC time since which the replay is paused otherwise, else 0.
        epoch_ns: CLOCK_MONOTONIC time at which the time line begins, without the pauses of ``timed``.
        scale: Real time for each unit of the time line.
        now_ns: CLOCK_MONOTONIC time.
        last_due_ns: Latest deadline of all packets that were put into rings.
    """
    words = timed.words
    _decide(timed, now_ns, last_due_ns)
    discarded = _ZERO
    while words[_DONE] < words[_SEEN]:
        row = words[_DONE] & _MASK
        begun_ns = timed.begun_ns[row]
        held_ns = words[HELD]
        if held_ns == 0 and paused_ns == 0:
            count = waiting(queue)
            if count > 0:
                if epoch_ns + words[MOVED] + scaled(queue.time_ns[queue.head[0] % queue.time_ns.size], scale) < begun_ns:
                    break
            elif now_ns < begun_ns:
                break
        if timed.action[row] == _PAUSE:
            if held_ns == 0 and paused_ns == 0:
                words[HELD] = begun_ns
        elif timed.action[row] == _RESUME:
            if held_ns != 0:
                words[MOVED] += begun_ns - held_ns
                words[HELD] = 0
        else:
            since_ns = held_ns if held_ns != 0 else paused_ns
            timed.line_ns[row] = unscaled((since_ns if since_ns != 0 else begun_ns) - epoch_ns - words[MOVED], scale)
            surplus = waiting(queue)
            release(queue, surplus)
            discarded += surplus
        store_release(words, (_DONE,), words[_DONE] + _ONE)
    return int(discarded)
