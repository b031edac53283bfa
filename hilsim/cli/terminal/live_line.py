"""One line on standard error that is overwritten, and that shows progress at least once a second."""

import shutil
import threading

import click

_REST_S = 0.9
_MAX_DOTS = 3


class LiveLine:
    """Live line. During a step a separate thread adds dots, because an import or other work in one piece blocks the rest of the program."""

    def __init__(self, *, is_watched: bool) -> None:
        """Create a line without writing; steps are shown only on a terminal, and the line is erased if the command fails."""
        self._is_watched = is_watched
        self._is_open = False
        click.get_current_context().call_on_close(self.erase)
        self._lock = threading.Lock()
        self._told = threading.Event()
        self._step = ""
        self._thread: threading.Thread | None = None
        self._has_ended = False

    def over(self, text: str) -> None:
        """Overwrite the line; text wider than the terminal is cut off, because a wrapped line cannot be overwritten."""
        width = shutil.get_terminal_size().columns - 1
        plain = click.unstyle(text)
        click.echo(f"\r\x1b[K{text if len(plain) <= width else plain[:width]}", err=True, nl=False)
        self._is_open = bool(text)

    def step(self, text: str) -> None:
        """Show a step and its progress until the next step or ``end_steps``."""
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
        """End the last step."""
        with self._lock:
            self._has_ended = True
            self._told.set()

    def close(self) -> None:
        """End the line and keep its text on the terminal."""
        self.end_steps()
        if self._is_open:
            click.echo(err=True)
            self._is_open = False

    def erase(self) -> None:
        """Erase the line, if it is open."""
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
                dots = 0 if is_told else dots % _MAX_DOTS + 1
                if not is_told:
                    self.over(f"{self._step} ...{'.' * dots}")
