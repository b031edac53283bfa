"""The growing map of returns on the page: the mean position of the returns in each cell, coloured by their number or height, and files of it."""

import math
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilsim.errors import HilsimError
from hilsim.limits import VIEW_POINTS
from hilsim.read.scans.scan import Scan
from hilsim.show.view.feed.growing_map import GrowingMap
from hilsim.show.view.page.colours import mapped
from hilsim.show.view.page.strips import plain

if TYPE_CHECKING:
    import viser

_FORMATS = ("ply", "las", "npz")
_COLOURS = ("number of returns", "height")
_CELL_M = 0.2
_CELLS_M = (0.02, 10.0)
_DRAW_STEPS = 5
_NODE = "/map"


class MapLayer:
    """Map of all returns since it was switched on, in bounded memory (``GrowingMap``).

    Attributes:
        cells: Number of cells that are shown.
    """

    def __init__(self, server: "viser.ViserServer") -> None:
        """Add the controls; the map begins when it is switched on."""
        self.cells = 0
        self._server = server
        self._growing: GrowingMap | None = None
        self._number = 0
        self._blocks: dict[int, tuple[npt.NDArray[np.float64], npt.NDArray[np.uint32]]] = {}
        self._cloud: Any = None
        self._steps = 0
        self._is_changed = False
        self._lock = threading.Lock()
        gui = server.gui
        with gui.add_folder("Map of returns", order=45.0, expand_by_default=False):
            self.info: Any = gui.add_markdown("off")
            self._is_on: Any = gui.add_checkbox("let a map grow", initial_value=False)
            self._cell: Any = gui.add_number("cell in m", _CELL_M, min=_CELLS_M[0], max=_CELLS_M[1], step=0.05)
            self._colour: Any = gui.add_dropdown("map colours", _COLOURS, initial_value=_COLOURS[0])
            self._format: Any = gui.add_dropdown("map file", _FORMATS, initial_value=_FORMATS[0])
            saving = gui.add_button("save the map")
            clearing = gui.add_button("begin anew")
        self._colour.on_update(lambda _: self._change())
        clearing.on_click(lambda _: self.clear())

        @saving.on_click
        def _(event: Any) -> None:
            name, contents = self.file()
            if contents and event.client is not None:
                event.client.send_file_download(name, contents, save_immediately=True)

    def _change(self) -> None:
        self._is_changed = True

    @property
    def is_on(self) -> bool:
        """Whether scans are taken."""
        return bool(self._is_on.value)

    def clear(self) -> None:
        """Begin anew, with the chosen cells."""
        with self._lock:
            self._growing = None
            self._blocks = {}
            self._is_changed = True

    def add(self, scan: Scan) -> None:
        """Take a scan."""
        with self._lock:
            if self._growing is None:
                cell_m = float(self._cell.value)
                self._growing = GrowingMap(cell_m=min(max(cell_m, _CELLS_M[0]), _CELLS_M[1]) if math.isfinite(cell_m) else _CELL_M)
                self._number, self._blocks = 0, {}
            self._growing.add(scan)
            self._is_changed = True

    def step(self, origin_m: npt.NDArray[np.float64]) -> None:
        """Draw what has changed, now and then; ``origin_m`` is the page's origin in the world."""
        self._steps += 1
        if self._steps % _DRAW_STEPS or not self._is_changed:
            return
        with self._lock:
            self._is_changed = False
            growing = self._growing
            while growing is not None:
                changed = growing.changed_since(self._number)
                self._number = changed.number
                for block in changed.blocks:
                    self._blocks[block.number] = np.asarray(block.corner_m) + block.position_m, block.returns
                if not changed.blocks:
                    break
            self._draw(origin_m, 0 if growing is None else growing.left_out)

    def _draw(self, origin_m: npt.NDArray[np.float64], left_out: int) -> None:
        whole = [np.empty((0, 3)), *(position for position, _ in self._blocks.values())]
        position_m = np.concatenate(whole) - origin_m
        returns = np.concatenate([np.empty(0, np.uint32), *(count for _, count in self._blocks.values())])
        self.cells = returns.size
        stride = max(1, math.ceil(returns.size / VIEW_POINTS.bound))
        shown, counts = position_m[::stride].astype(np.float32), returns[::stride]
        values = shown[:, 2] if self._colour.value == _COLOURS[1] else np.log2(counts.astype(np.float32))
        colour = mapped(values)
        if self._cloud is not None:
            self._cloud.visible = shown.size > 0
        if shown.size and self._cloud is None:
            self._cloud = self._server.scene.add_point_cloud(_NODE, shown, colour, point_size=0.08, precision="float32", point_shape="square")
        elif shown.size:
            with self._server.atomic():
                self._cloud.points, self._cloud.colors = shown, colour
        total = int(returns.sum())
        lines = [f"{total:,} returns in {returns.size:,} cells"]
        if stride > 1:
            lines.append(f"one of {stride} cells is shown")
        if left_out:
            lines.append(f"{left_out:,} returns were left out: the memory of the map is full")
        self.info.content = "  \n".join(lines) if total else "empty" if self.is_on else "off"

    def file(self) -> tuple[str, bytes]:
        """Name and contents of the chosen file; no contents where it cannot be written, with the reason on the page."""
        suffix = self._format.value if self._format.value in _FORMATS else _FORMATS[0]
        with self._lock:
            growing = self._growing
        if growing is None:
            self.info.content = "a map must grow before it is saved"
            return "", b""
        with tempfile.TemporaryDirectory(prefix="hilsim-map-") as folder:
            path = Path(folder) / f"map.{suffix}"
            try:
                growing.write(path)
            except HilsimError as error:
                self.info.content = plain(str(error))
                return "", b""
            return path.name, path.read_bytes()
