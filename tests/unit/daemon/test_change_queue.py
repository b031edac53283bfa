"""Changes that wait for their rig times, with a changer that only notes them."""

import asyncio
from types import SimpleNamespace

import pytest

from hilsim.config.script import parse_change
from hilsim.daemon.parts import RigClock
from hilsim.daemon.streaming import change_queue
from hilsim.daemon.streaming.change_queue import ChangeQueue
from hilsim.errors import ConfigError, TransmitError
from hilsim.limits import Limit


class Changer:
    """Makes changes of names at a rig time that a test sets; one named "refused" cannot be made."""

    def __init__(self):
        self.now_ns, self.made, self.prepared = 0, [], []

    def earliest_ns(self, _clock):
        return self.now_ns

    def prepare(self, change):
        self.prepared.append(change.name)
        if change.name == "refused":
            raise ConfigError("no")
        return f"prepared {change.name}"

    def make(self, change, _clock, *, is_scheduled, is_scripted, prepared):
        if change.name == "refused":
            raise ConfigError("no")
        assert is_scripted == (change.name in SCRIPTED)
        self.made.append((change.name, is_scheduled, prepared))
        return SimpleNamespace(change=change, at_ns=self.now_ns, begun_ns={})


SCRIPTED = {"late", "early", "as early", "soon", "later"}


def removal(name, at_s=None):
    return parse_change({"kind": "remove", "name": name} | ({} if at_s is None else {"at_s": at_s}))


async def until(condition):
    while not condition():  # noqa: ASYNC110 - nothing tells
        await asyncio.sleep(0.001)


def served(check, changer=None, *, begins=True):
    changer = changer or Changer()

    async def run():
        queue = ChangeQueue(changer)
        if begins:
            queue.begin(RigClock())
        async with asyncio.timeout(60), queue.serve():
            await check(queue, changer)

    asyncio.run(run())
    return changer


def test_changes_are_made_in_the_order_of_their_times_and_those_at_once_first():
    async def check(queue, changer):
        queue.add_script([removal("late", 3.0), removal("early", 1.0), removal("as early", 1.0)])
        now = asyncio.create_task(queue.make(removal("now")))
        await asyncio.sleep(0)
        queue.begin(RigClock())
        await now
        changer.now_ns = 10**10
        await until(lambda: len(changer.made) == 4)

    changer = served(check, begins=False)
    assert [(name, is_scheduled) for name, is_scheduled, _ in changer.made] == [("now", False), ("early", True), ("as early", True), ("late", True)]


def test_a_change_is_prepared_within_a_second_of_its_time():
    async def check(queue, changer):
        changer.now_ns = 9_500_000_000
        queue.add_script([removal("soon", 10.0), removal("later", 20.0)])
        await until(lambda: changer.prepared)
        assert changer.made == []
        changer.now_ns = 10_000_000_000
        await until(lambda: changer.made)

    changer = served(check)
    assert changer.prepared == ["soon"]
    assert changer.made == [("soon", True, "prepared soon")]


def test_a_refused_change_of_a_client_raises_and_the_next_one_is_made():
    async def check(queue, _):
        queue.add_script([removal("refused", 0.01)])
        with pytest.raises(ConfigError, match="no"):
            await queue.make(removal("refused"))
        await queue.make(removal("fine"))

    assert [name for name, _, _ in served(check).made] == ["fine"]


def test_a_time_that_has_passed_is_refused():
    async def check(queue, changer):
        changer.now_ns = 5 * 10**9
        with pytest.raises(ConfigError, match=r"at_s must be 5\.000000 or later now, got 4\.0"):
            await queue.make(removal("a", 4.0))

    assert served(check).made == []


def test_a_script_of_any_length_leaves_room_for_clients(monkeypatch):
    monkeypatch.setattr(change_queue, "WAITING_CHANGES", Limit(subject="changes", bound=2))

    async def check(queue, _):
        queue.add_script([removal(f"scripted {number}", 1000.0) for number in range(100)])
        waiting = [asyncio.create_task(queue.make(removal(f"asked {number}", 100.0))) for number in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(ConfigError, match="changes must be at most 2, got 3"):
            await queue.make(removal("one too many", 100.0))
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await queue.make(removal("now"))

    assert [name for name, _, _ in served(check).made] == ["now"]


def test_a_fault_of_the_program_answers_whoever_waits_and_the_next_change_is_made():
    class Broken(Changer):
        def make(self, change, clock, **keys):
            if change.name == "broken":
                raise ZeroDivisionError
            return super().make(change, clock, **keys)

    async def check(queue, _):
        with pytest.raises(TransmitError, match="without an error of the daemon"):
            await queue.make(removal("broken"))
        await queue.make(removal("fine"))

    assert [name for name, _, _ in served(check, Broken()).made] == ["fine"]


def test_waiting_clients_are_answered_when_the_rig_ends():
    async def run():
        queue = ChangeQueue(Changer())
        async with queue.serve():
            waiting = asyncio.create_task(queue.make(removal("a", 100.0)))
            await asyncio.sleep(0)
        with pytest.raises(TransmitError, match="it ends"):
            await waiting
        with pytest.raises(TransmitError, match="it ends"):
            await queue.make(removal("b"))

    asyncio.run(run())
