"""One line on standard error that is written over, and that shows a person at least once a second that something goes on."""

import shutil
import threading

import click

_REST_S = 0.9
_MOST_DOTS = 3


class LiveLine:
    """The line. While steps go on, a thread of its own adds dots: an import, or other work in one piece, blocks the rest of a program."""

    def __init__(self, *, is_watched: bool) -> None:
        """Nothing is written yet, and no step unless stderr is a terminal; when the command ends by a fault, the line is taken away."""
        self._is_watched = is_watched
        self._is_open = False
        click.get_current_context().call_on_close(self.erase)
        self._lock = threading.Lock()
        self._told = threading.Event()
        self._step = ""
        self._thread: threading.Thread | None = None
        self._has_ended = False

    def over(self, text: str) -> None:
        """Write over the line; what is wider than the terminal is cut off, for a line that breaks cannot be written over."""
        width = shutil.get_terminal_size().columns - 1
        plain = click.unstyle(text)
        click.echo(f"\r\x1b[K{text if len(plain) <= width else plain[:width]}", err=True, nl=False)
        self._is_open = bool(text)

    def step(self, text: str) -> None:
        """Show what is being done, and that it goes on, until the next step or ``end_steps``."""
        if not self._is_watched:
            return
        with self._lock:
            self._step = text
            self.over(f"{text} ...")
            self._told.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._go_on, name="live-line", daemon=True)
            self._thread.start()

    def end_steps(self) -> None:
        """Nothing is waited for any more."""
        with self._lock:
            self._has_ended = True
            self._told.set()

    def close(self) -> None:
        """Leave the last line standing."""
        self.end_steps()
        if self._is_open:
            click.echo(err=True)
            self._is_open = False

    def erase(self) -> None:
        """Take the line away, if it is open."""
        self.end_steps()
        if self._is_open:
            self.over("")

    def _go_on(self) -> None:
        dots = 0
        while True:
            is_told = self._told.wait(_REST_S)
            with self._lock:
                if self._has_ended:
                    return
                self._told.clear()
                dots = 0 if is_told else dots % _MOST_DOTS + 1
                if not is_told:
                    self.over(f"{self._step} ...{'.' * dots}")
