"""Answers over one connection whose client does not wait for them."""

import asyncio
from types import SimpleNamespace

import pytest

from hilsim.daemon.control import conversation
from hilsim.daemon.control.conversation import Conversation
from hilsim.limits import Limit

ALONE, AT_ONCE, TIMED = {"do": "state"}, {"do": "change", "change": {}}, {"do": "change", "change": {"at_s": 3.0}}


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
        self.conversation = self.converse()

    def converse(self):
        return Conversation(SimpleNamespace(running=self), self.send, self.transport, carries_packets=False)

    async def send(self, text):
        if self.fault:
            raise self.fault
        self.sent.append(text)

    async def take(self, name, kind):
        await self.conversation.take({**kind, "id": name}, write=lambda answer: answer["id"])

    async def finish(self, *names):
        for name in names:
            self.done.setdefault(name, asyncio.Event()).set()
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.fixture(autouse=True)
def slow_answers(monkeypatch):
    """Requests are executed when the test says so."""

    async def answer(running, request, _connection):
        running.begun.append(request["id"])
        await running.done.setdefault(request["id"], asyncio.Event()).wait()
        return {"ok": True, "id": request["id"]}

    monkeypatch.setattr(conversation, "answer", answer)


def run(check, **keys):
    async def within():
        async with asyncio.timeout(10):
            connection = Connection(**keys)
            await check(connection)
            await connection.conversation.end()
            assert len(asyncio.all_tasks()) == 1

    asyncio.run(within())


@pytest.mark.parametrize(
    ("request_", "waits"),
    [
        ({"do": "change", "change": {"kind": "move"}}, False),
        ({"do": "change", "change": {"kind": "move", "at_s": None}}, False),
        ({"do": "change", "change": {"kind": "move", "at_s": 3.0}}, False),
        ({"do": "change", "change": 7}, True),
        ({"do": "state"}, True),
        ({"change": {}}, True),
    ],
)
def test_changes_alone_need_not_wait_for_answers(request_, waits):
    async def check(connection):
        await connection.take("a", AT_ONCE)
        following = asyncio.create_task(connection.take("b", request_))
        await connection.finish()
        assert connection.begun == (["a"] if waits else ["a", "b"])
        await connection.finish("a", "b")
        await following

    run(check)


def test_changes_wait_together_and_are_answered_in_order():
    async def check(connection):
        for name in ("a", "b", "c"):
            await connection.take(name, AT_ONCE)
        await connection.finish("c", "b")
        assert (connection.begun, connection.sent) == (["a", "b", "c"], [])
        await connection.finish("a")
        assert connection.sent == ["a", "b", "c"]

    run(check)


@pytest.mark.parametrize(("first", "second"), [(AT_ONCE, ALONE), (TIMED, ALONE), (TIMED, AT_ONCE)])
def test_what_shows_or_follows_a_change_waits_for_it(first, second):
    async def check(connection):
        await connection.take("a", first)
        following = asyncio.create_task(connection.take("b", second))
        await connection.finish("b")
        assert connection.begun == ["a"]
        await connection.finish("a")
        await following
        await connection.conversation.end()
        assert connection.sent == ["a", "b"]

    run(check)


def test_a_change_with_a_rig_time_does_not_wait_for_those_before_it():
    async def check(connection):
        for name, order in (("a", AT_ONCE), ("b", TIMED), ("c", TIMED)):
            await connection.take(name, order)
        await connection.finish("c", "a")
        assert (connection.begun, connection.sent) == (["a", "b", "c"], ["a"])
        await connection.finish("b")
        assert connection.sent == ["a", "b", "c"]

    run(check)


def test_a_client_beyond_the_limit_is_not_read_until_an_answer_was_sent(monkeypatch):
    monkeypatch.setattr(conversation, "UNANSWERED_CHANGES", Limit(subject="changes", bound=3))

    async def check(connection):
        for name in ("a", "b"):
            await connection.take(name, AT_ONCE)
        third = asyncio.create_task(connection.take("c", AT_ONCE))
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
            await connection.take(name, AT_ONCE)
        await connection.finish("a")
        assert connection.transport.is_aborted
        await connection.finish("b")

    run(check, fault=fault)


def test_no_change_is_left_behind_when_a_conversation_is_cancelled():
    async def check(connection):
        for name in ("a", "b"):
            await connection.take(name, AT_ONCE)
        ending = asyncio.create_task(connection.conversation.end())
        await asyncio.sleep(0)
        ending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await ending
        await connection.finish()
        connection.conversation = connection.converse()
        await connection.conversation.refuse("c")
        assert connection.sent == ["c"]

    run(check)


class SlowReader(Transport):
    """Connection whose reader takes bytes at the given times."""

    def __init__(self, *steps):
        super().__init__()
        self.now_s, self.steps, self.waiting_bytes = 100.0, list(steps), 0

    def is_closing(self):
        if self.is_aborted or not self.steps:
            return True
        later_s, self.waiting_bytes = self.steps.pop(0)
        self.now_s += later_s
        return False

    def get_write_buffer_size(self):
        return self.waiting_bytes


@pytest.mark.parametrize(("last_s", "is_let_go"), [(0.4, False), (1.0, True)])
def test_a_subscriber_is_let_go_when_it_has_taken_nothing_for_ten_seconds(monkeypatch, last_s, is_let_go):
    transport = SlowReader((0, 0), (30, 0), (1, 900), (9, 900), (1.5, 800), (9.5, 800), (last_s, 800), (0, 700))
    monkeypatch.setattr(conversation, "_LOOK_S", 0.0)
    monkeypatch.setattr(conversation, "time", SimpleNamespace(monotonic=lambda: transport.now_s))
    sent = []

    async def within():
        async def text():
            return "state"

        async def send(event):
            sent.append(event)

        each = Conversation(SimpleNamespace(running=None, text=text), send, transport, carries_packets=False)
        each.subscribe(60.0)
        await asyncio.wait_for(each._sending_events, 10)
        await each.end()

    asyncio.run(within())
    assert (transport.is_aborted, sent) == (is_let_go, ["state"])
