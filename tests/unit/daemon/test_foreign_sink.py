"""A sink of another distribution: whatever it raises is reported as a fault of that sink, and only its own thread calls it."""

import numpy as np
import pytest

from hilsim.capture.sinks.base import SentBatch, SinkFlow
from hilsim.daemon.sinks.foreign import ForeignSink
from hilsim.errors import CaptureError, LinkError

ORIGIN = "company-sinks 1.0 (hilsim.sinks: foreign = company:SINK)"
FLOWS = {0: SinkFlow(number=0, name="lidar/data")}


class Willing:
    """A sink that obeys, unless a verb is to raise; each frame of a batch is counted so often as ``counts`` says."""

    target = "memory"

    def __init__(self, broken=(), error=None, counts=1):
        self.written = 0
        self.asked = []
        self._broken, self._error, self._counts = broken, error or ZeroDivisionError("division\nby zero"), counts

    def _do(self, verb):
        self.asked.append(verb)
        if verb in self._broken:
            raise self._error

    def check(self):
        self._do("check")

    def open(self, _flows):
        self._do("open")

    def write(self, batch):
        self.written += self._counts * batch.size.size
        self._do("write")

    def close(self):
        self._do("close")


def batch(count):
    return SentBatch(*(np.zeros(count, np.int64) for _ in range(3)), np.zeros((count, 1300), np.uint8), np.full(count, 1248, np.int32), FLOWS)


def around(sink):
    return ForeignSink(lambda: sink, name="foreign", origin=ORIGIN)


def call(sink, verb):
    {"check": sink.check, "open": lambda: sink.open(()), "write": lambda: sink.write(batch(2)), "close": sink.close}[verb]()


@pytest.mark.parametrize("verb", ["check", "open", "write", "close"])
@pytest.mark.parametrize("error", [ZeroDivisionError("division\nby zero"), SystemExit("gone")], ids=["error", "exit"])
def test_any_exception_of_a_plugins_sink_is_a_fault_that_names_its_origin(verb, error):
    reason = "ZeroDivisionError: division by zero" if isinstance(error, ZeroDivisionError) else "SystemExit: gone"
    with pytest.raises(CaptureError) as caught:
        call(around(Willing([verb], error)), verb)
    assert str(caught.value) == f"sink foreign: {ORIGIN}: {verb} raised {reason}"


@pytest.mark.parametrize("error", [LinkError("broker.example: no answer in 5 s"), BrokenPipeError(32, "Broken pipe")], ids=["hilsim", "os"])
def test_permitted_exceptions_of_a_sink_pass_unchanged(error):
    with pytest.raises(type(error)) as caught:
        call(around(Willing(["write"], error)), "write")
    assert caught.value is error


def test_frames_that_got_there_before_a_fault_are_counted():
    sink = around(Willing(["write"]))
    with pytest.raises(CaptureError, match="write raised"):
        sink.write(batch(5))
    assert sink.written == 5


@pytest.mark.parametrize(("counts", "written"), [(1, 10), (0, 0), (3, 10), (-1, 0)])
def test_a_sink_cannot_have_written_less_than_before_or_more_than_it_was_given(counts, written):
    sink = around(Willing(counts=counts))
    for _ in range(2):
        sink.write(batch(5))
    assert sink.written == written


def test_scrapes_ask_the_stranger_nothing():
    class Blunt(Willing):
        @property
        def target(self):
            self._do("target")
            return "memory"

    stranger = Blunt()
    sink = around(stranger)
    sink.open(())
    stranger.asked.clear()
    assert (sink.target, sink.written) == ("memory", 0)
    assert stranger.asked == []


def test_an_object_that_is_not_a_sink_is_refused_with_its_missing_methods():
    with pytest.raises(CaptureError) as caught:
        around(FLOWS[0])
    assert str(caught.value) == f"sink foreign: {ORIGIN} must make a sink, got SinkFlow without target, written, check, open, write, close"


def test_a_factory_that_raises_is_named():
    def make():
        raise KeyError("file")

    with pytest.raises(CaptureError, match=r"make raised KeyError: 'file'$"):
        ForeignSink(make, name="foreign", origin=ORIGIN)
