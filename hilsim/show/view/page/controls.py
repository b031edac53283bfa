"""Controls of the points; all browsers share them. A browser may send any value, so each is checked where it is read."""

import math
from typing import TYPE_CHECKING, Any

from hilsim.show.view.page.colours import MAPS, QUANTITIES, key_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import viser

ONE_SCAN, LAST_SECONDS, ALL = "one scan", "last seconds", "all scans (map)"
AMOUNTS = (ONE_SCAN, LAST_SECONDS, ALL)
_SIZES_M = (0.01, 0.5, 0.01, 0.06)
_SECONDS = (0.2, 60.0, 0.2, 3.0)
SCENE_PARTS = ("sensor frames", "fields of view", "tracks", "scene")


class Controls:
    """Controls of the points.

    Attributes:
        info: Text under the controls.
        picked: Text about the picked point.
    """

    def __init__(self, server: "viser.ViserServer", changed: "Callable[[], None]", cleared: "Callable[[], None]") -> None:
        """Add the controls.

        Args:
            server: viser's server.
            changed: Called when points must be drawn anew.
            cleared: Called when the picked points shall be forgotten.
        """
        self._shown_key = ("", "")
        self._server = server
        self._changed = changed
        gui = server.gui
        with gui.add_folder("Points", order=10.0):
            self.info: Any = gui.add_markdown("waiting for the first scan")
            self._key: Any = gui.add_image(key_of(QUANTITIES[0], MAPS[0], 0), label="colours", format="png", visible=False)
            self._quantity = gui.add_dropdown("colour by", QUANTITIES, initial_value="intensity")
            self._map = gui.add_dropdown("colour map", MAPS, initial_value=MAPS[0])
            self._size = gui.add_slider("point size in m", *_SIZES_M)
            self._amount = gui.add_dropdown("show", AMOUNTS, initial_value=ONE_SCAN)
            self._seconds = gui.add_slider("seconds", *_SECONDS)
            self._paused = gui.add_checkbox("pause the view", initial_value=False)
        self._sensors_folder = gui.add_folder("Sensors", order=30.0)
        self._sensors: dict[str, Any] = {}
        with gui.add_folder("Scene", order=35.0, expand_by_default=False):
            self._parts = {name: gui.add_checkbox(name, initial_value=True) for name in SCENE_PARTS}
        with gui.add_folder("Picked point", order=40.0):
            self.picked: Any = gui.add_markdown("click a point")
            self._measures = gui.add_checkbox("measure between two points", initial_value=False)
            clear = gui.add_button("clear")
        handles: tuple[Any, ...] = (self._quantity, self._map, self._size, self._amount, self._seconds, self._paused, *self._parts.values())
        for handle in handles:
            handle.on_update(self._on_update)
        clear.on_click(lambda _: cleared())

    def _on_update(self, event: object) -> None:
        del event
        self._changed()

    def show_key(self, limits: str, sensors: list[str]) -> None:
        """Show what the colours mean: the range of a measure, or the sensors."""
        text = limits or (", ".join(sensors) if self.quantity == "sensor" else "a colour each; grey: unknown")
        shown = f"{self.quantity}: {text}", self.colour_map
        if shown != self._shown_key:
            self._shown_key = shown
            self._key.image, self._key.label, self._key.visible = key_of(self.quantity, self.colour_map, len(sensors)), shown[0], True

    def add_sensor(self, name: str) -> None:
        """Add the switch of a sensor."""
        with self._sensors_folder:
            self._sensors[name] = self._server.gui.add_checkbox(name, initial_value=True)
        self._sensors[name].on_update(self._on_update)

    @property
    def quantity(self) -> str:
        """Quantity that gives the colours."""
        return _known(self._quantity.value, QUANTITIES)

    @property
    def colour_map(self) -> str:
        """Colour map."""
        return _known(self._map.value, MAPS)

    @property
    def point_size_m(self) -> float:
        """Size of a point."""
        return _within(self._size.value, _SIZES_M)

    @property
    def amount(self) -> str:
        """Amount of scans to show."""
        return _known(self._amount.value, AMOUNTS)

    @property
    def seconds(self) -> float:
        """Length of the shown time."""
        return _within(self._seconds.value, _SECONDS)

    @property
    def is_paused(self) -> bool:
        """Whether the shown points stay as they are."""
        return bool(self._paused.value)

    @property
    def measures(self) -> bool:
        """Whether a click measures from the point picked before."""
        return bool(self._measures.value)

    def shows_sensor(self, name: str) -> bool:
        """Whether the points of a sensor are shown."""
        return bool(self._sensors[name].value)

    def shows(self, part: str) -> bool:
        """Whether one of ``SCENE_PARTS`` is shown."""
        return bool(self._parts[part].value)


def _known(value: str, options: tuple[str, ...]) -> str:
    return value if value in options else options[0]


def _within(value: float, bounds: tuple[float, float, float, float]) -> float:
    low, high, _, usual = bounds
    return min(max(float(value), low), high) if math.isfinite(value) else usual
