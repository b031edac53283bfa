"""Faults on command on the page: those that act or will, and a button that ends them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hilsim.errors import ConfigError, TransmitError
from hilsim.show.view.page.strips import plain

if TYPE_CHECKING:
    import viser

    from hilsim.api.control import Control


class FaultControls:
    """List of a daemon's faults on command; there is none on the page until there are some."""

    def __init__(self, server: "viser.ViserServer", control: "Control | None") -> None:
        """A list of nothing."""
        self._server, self._control = server, control
        self._text: Any = None
        self._error = ""

    def step(self, status: Mapping[str, Any] | None) -> None:
        """Show the faults that a daemon's state lists."""
        faults = status.get("injected") if status is not None and self._control is not None else None
        found = [fault for fault in faults if isinstance(fault, Mapping)] if isinstance(faults, list | tuple) else []
        if found and self._text is None:
            self._add()
        if self._text is not None:
            lines = [
                f"- **{plain(str(each.get('name')))}** on {plain(str(each.get('on', '*')))}{'' if each.get('acts') else ', waits'}" for each in found
            ]
            content = "\n".join([*(lines or ["none"]), *([self._error] if self._error else [])])
            if content != self._text.content:
                self._text.content = content

    def _add(self) -> None:
        with self._server.gui.add_folder("Faults", order=25.0):
            self._text = self._server.gui.add_markdown("")
            clear = self._server.gui.add_button("clear faults")

        @clear.on_click
        def _(event: object) -> None:
            del event
            self._error = ""
            try:
                if self._control is not None:
                    self._control.clear()
            except (ConfigError, TransmitError) as error:
                self._error = plain(str(error))
