"""Wrapper for a plug-in's sink: any exception of its code is a fault of that sink only, reported with the name of its distribution.

``Follower`` requires that a sink raises only ``HilsimError`` or ``OSError``, and that ``target`` and ``written`` can be read at any time. A plug-in's code
does not guarantee that, so only this wrapper calls it, and metrics requests never do.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import structlog

from hilsim.capture.sinks.base import SentBatch, Sink, SinkFlow
from hilsim.errors import CaptureError, HilsimError

log = structlog.get_logger("hilsim")

_VERBS = ("target", "written", "check", "open", "write", "close")


class ForeignSink:
    """Sink that wraps a plug-in's sink.

    Attributes:
        target: Latest target that the plug-in's sink reported.
        written: Number of frames that it reports as stored, at most the number it was given.
    """

    def __init__(self, make: Callable[[], Sink], *, name: str, origin: str) -> None:
        """Make the plug-in's sink.

        Args:
            make: Function that makes the plug-in's sink.
            name: Name of the sink in its rig.
            origin: Distribution of the plug-in, for messages.

        Raises:
            CaptureError: the sink cannot be made, or is not a sink.
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
        """Check that the sink can be opened.

        Raises:
            HilsimError: the sink cannot be opened.
        """
        with self._border("check"):
            self._sink.check()

    def open(self, flows: Sequence[SinkFlow]) -> None:
        """Open the sink.

        Raises:
            HilsimError: the sink cannot be opened.
        """
        with self._border("open"):
            self._sink.open(flows)
            self.target = str(self._sink.target)

    def write(self, batch: SentBatch) -> None:
        """Write datagrams.

        Raises:
            HilsimError: the sink cannot write.
            OSError: the sink cannot write.
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
        """Close the sink.

        Raises:
            HilsimError: the written data may be incomplete.
        """
        with self._border("close"):
            self._sink.close()

    @contextmanager
    def _border(self, verb: str) -> Iterator[None]:
        """Wrap each call of the plug-in's code.

        Raises:
            CaptureError: the code raised an exception that sinks must not raise.
        """
        try:
            yield
        except (HilsimError, OSError):
            raise
        except (Exception, SystemExit) as error:  # of any kind
            log.exception("sink.broke", sink=self._name, origin=self._origin, verb=verb)
            raise CaptureError(f"sink {self._name}: {self._origin}: {verb} raised {type(error).__name__}: {' '.join(str(error).split())}") from error
