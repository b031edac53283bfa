"""Answers over one connection whose client does not wait for them."""

import asyncio

import pytest

from hilsim.daemon.control import answers
from hilsim.daemon.control.answers import Answers, Order, known, order_of
from hilsim.limits import Limit


class Transport:
    def __init__(self):
        self.is_aborted = False

    def abort(self):
        self.is_aborted = True


class Connection:
    """Notes what is sent and what is begun."""

    def __init__(self, fault=None):
        self.sent, self.begun, self.done, self.fault = [], [], {}, fault
        self.transport = Transport()
        self.answers = Answers(send=self.send, transport=self.transport)

    async def send(self, text):
        if self.fault:
            raise self.fault
        self.sent.append(text)

    async def work(self, name):
        self.begun.append(name)
        await self.done.setdefault(name, asyncio.Event()).wait()
        return name

    async def finish(self, *names):
        for name in names:
            self.done.setdefault(name, asyncio.Event()).set()
        for _ in range(10):
            await asyncio.sleep(0)


def run(check, **keys):
    async def within():
        async with asyncio.timeout(10):
            connection = Connection(**keys)
            await check(connection)
            await connection.answers.end()
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(within())


@pytest.mark.parametrize(
    ("request_", "order"),
    [
        ({"do": "change", "change": {"kind": "move"}}, Order.AT_ONCE),
        ({"do": "change", "change": {"kind": "move", "at_s": None}}, Order.AT_ONCE),
        ({"do": "change", "change": {"kind": "move", "at_s": 3.0}}, Order.TIMED),
        ({"do": "change", "change": 7}, Order.ALONE),
        ({"do": "state"}, Order.ALONE),
        ({"change": {}}, Order.ALONE),
    ],
)
def test_changes_alone_need_not_wait_for_answers(request_, order):
    assert order_of(request_) is order


def test_changes_wait_together_and_are_answered_in_order():
    async def check(connection):
        for name in ("a", "b", "c"):
            await connection.answers.give(connection.work(name), Order.AT_ONCE)
        await connection.finish("c", "b")
        assert (connection.begun, connection.sent) == (["a", "b", "c"], [])
        await connection.finish("a")
        assert connection.sent == ["a", "b", "c"]

    run(check)


@pytest.mark.parametrize(("first", "second"), [(Order.AT_ONCE, Order.ALONE), (Order.TIMED, Order.ALONE), (Order.TIMED, Order.AT_ONCE)])
def test_what_shows_or_follows_a_change_waits_for_it(first, second):
    async def check(connection):
        await connection.answers.give(connection.work("a"), first)
        following = asyncio.create_task(connection.answers.give(connection.work("b"), second))
        await connection.finish("b")
        assert connection.begun == ["a"]
        await connection.finish("a")
        await following
        await connection.answers.end()
        assert connection.sent == ["a", "b"]

    run(check)


def test_a_change_with_a_rig_time_does_not_wait_for_those_before_it():
    async def check(connection):
        for name, order in (("a", Order.AT_ONCE), ("b", Order.TIMED), ("c", Order.TIMED)):
            await connection.answers.give(connection.work(name), order)
        await connection.finish("c", "a")
        assert (connection.begun, connection.sent) == (["a", "b", "c"], ["a"])
        await connection.finish("b")
        assert connection.sent == ["a", "b", "c"]

    run(check)


def test_a_client_beyond_the_limit_is_not_read_until_an_answer_was_sent(monkeypatch):
    monkeypatch.setattr(answers, "UNANSWERED_CHANGES", Limit(subject="changes", bound=3))

    async def check(connection):
        for name in ("a", "b"):
            await connection.answers.give(connection.work(name), Order.AT_ONCE)
        third = asyncio.create_task(connection.answers.give(connection.work("c"), Order.AT_ONCE))
        await connection.finish("b")
        assert not third.done()
        await connection.finish("a")
        assert third.done()
        await connection.finish("c")
        assert connection.sent == ["a", "b", "c"]

    run(check)


@pytest.mark.parametrize("fault", [ConnectionResetError(), TimeoutError()])
def test_a_client_that_takes_no_answer_is_let_go_and_its_changes_are_made(fault):
    async def check(connection):
        for name in ("a", "b"):
            await connection.answers.give(connection.work(name), Order.AT_ONCE)
        await connection.finish("a")
        assert connection.transport.is_aborted
        await connection.finish("b")

    run(check, fault=fault)


def test_no_change_is_left_behind_when_a_conversation_is_cancelled():
    async def check(connection):
        for name in ("a", "b"):
            await connection.answers.give(connection.work(name), Order.AT_ONCE)
        ending = asyncio.create_task(connection.answers.end())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await connection.finish()
        connection.answers = Answers(send=connection.send, transport=connection.transport)
        await connection.answers.give(known("c"), Order.ALONE)
        assert connection.sent == ["c"]

    run(check)
