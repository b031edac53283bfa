"""A sink of another distribution as one of ours: any exception of its code is a fault of that sink alone, reported with its owner.

``Follower`` expects of a sink that it raises ``HilsimError`` or ``OSError`` and that it can be asked for ``target`` and ``written`` at any time.
A stranger's code promises nothing of that, so it is called here alone, and never by a scrape.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from hilsim.errors import CaptureError, HilsimError
from hilsim.sinks.base import SentBatch, Sink, SinkFlow

log = structlog.get_logger("hilsim")

_VERBS = ("target", "written", "check", "open", "write", "close")


class ForeignSink:
    """A sink around a stranger's.

    Attributes:
        target: Where it wrote when it was asked last.
        written: Frames that it reports as stored; never more than it was given.
    """

    def __init__(self, make: Callable[[], Sink], *, name: str, origin: str) -> None:
        """Make it.

        Args:
            make: Makes the stranger's sink.
            name: Of the sink in its rig.
            origin: Whose it is, for people.

        Raises:
            CaptureError: it cannot be made, or is no sink.
        """
        self.target = name
        self.written = 0
        self._name, self._origin = name, origin
        with self._border("make"):
            self._sink = make()
            lacking = [verb for verb in _VERBS if not hasattr(self._sink, verb)]
        if lacking:
            raise CaptureError(f"sink {name}: {origin} must make a sink, got {type(self._sink).__name__} without {', '.join(lacking)}")

    def check(self) -> None:
        """See whether it can be opened.

        Raises:
            HilsimError: it cannot.
        """
        with self._border("check"):
            self._sink.check()

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Begin.

        Raises:
            HilsimError: it cannot.
        """
        with self._border("open"):
            self._sink.open(flows)
            self.target = str(self._sink.target)

    def write(self, batch: SentBatch) -> None:
        """Put datagrams there.

        Raises:
            HilsimError: it takes no more.
            OSError: the same.
        """
        before = self.written
        try:
            with self._border("write"):
                self._sink.write(batch)
        finally:
            with self._border("written"):
                self.written = min(max(int(self._sink.written), before), before + batch.size.size)
                self.target = str(self._sink.target)

    def close(self) -> None:
        """End.

        Raises:
            HilsimError: what was written may not be whole.
        """
        with self._border("close"):
            self._sink.close()

    @contextmanager
    def _border(self, verb: str) -> Iterator[None]:
        """Around everything of the stranger's.

        Raises:
            CaptureError: it raised what no sink may raise.
        """
        try:
            yield
        except (HilsimError, OSError):
            raise
        except (Exception, SystemExit) as error:  # which ones is unknown
            log.exception("sink.broke", sink=self._name, origin=self._origin, verb=verb)
            raise CaptureError(f"sink {self._name}: {self._origin}: {verb} raised {type(error).__name__}: {' '.join(str(error).split())}") from error
