"""The editor on the page: handles, numbers and buttons that edit the scene by an editing session; one thread makes the edits, in their order."""

import math
import queue
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from hilsim.editing.catalogue import CATALOGUE
from hilsim.editing.routes import Snap
from hilsim.errors import HilsimError
from hilsim.limits import VIEW_TRIANGLES
from hilsim.show.view.page.strips import plain
from hilsim.world.geometry.poses import mounting
from hilsim.world.geometry.rotations import roll_pitch_yaw_rad
from hilsim.world.scene.specs import BUILT_IN_MATERIALS

if TYPE_CHECKING:
    import viser

    from hilsim.editing.session import EditSession
    from hilsim.editing.shapes import Shape

_NOTHING = "(none)"
_SHAPES: dict[str, dict[str, Any]] = {
    "box": {"size_m": [1.0, 1.0, 1.0]},
    "cylinder": {"radius_m": 0.5, "height_m": 1.0},
    "sphere": {"radius_m": 0.5},
    "cone": {"radius_m": 0.5, "height_m": 1.0},
    "capsule": {"radius_m": 0.25, "length_m": 1.2},
}
"""Shapes that can be added, each with its first size."""
_DRAG_S = 0.04
"""Shortest time between two changes while a handle is dragged."""
_TRAVEL_S = 0.2
_CLOCK_S = 2.0
_STOP_S = 2.0
_MAX_WAYPOINTS = 200
_GREY, _PER_CODE = 70, 1.6
_SELECTED = (255, 170, 60)
_FIXED = (110, 112, 118)
_ROUND = 4


class SceneEditor:
    """Controls that edit a scene. Browsers' events become jobs of one thread.

    Attributes:
        selected: Name of the selected object; empty: none.
        waypoints: Points that were clicked, in the scene's frame.
    """

    def __init__(self, server: "viser.ViserServer", session: "EditSession", origin_m: npt.NDArray[np.float64]) -> None:
        """Add the controls and draw the scene.

        Args:
            server: viser's server.
            session: Session that makes the edits.
            origin_m: ``float64[3]``, the page's origin in the world.
        """
        self.selected = ""
        self.waypoints: list[tuple[float, float, float]] = []
        self._server, self._session, self._page_origin_m = server, session, origin_m
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._dragged: tuple[tuple[float, ...], tuple[float, ...]] | None = None
        self._dragging = threading.Lock()
        self._moved = 0
        self._groups: list[int] = []
        self._undone: list[int] = []
        self._nodes: dict[str, tuple[int, Any]] = {}
        self._marks: list[Any] = []
        self._fixed: Any = None
        self._gizmo: Any = None
        self._clock: tuple[float, float] = (0.0, 0.0)
        self._build_controls()
        self._draw()
        self._thread = threading.Thread(target=self._run, name="editor", daemon=True)
        self._thread.start()

    def _build_controls(self) -> None:
        gui = self._server.gui
        with gui.add_folder("Edit", order=50.0):
            self.message: Any = gui.add_markdown("")
            self._choice: Any = gui.add_dropdown("object", (_NOTHING,), initial_value=_NOTHING)
            self._position: Any = gui.add_vector3("position in m", (0.0, 0.0, 0.0), step=0.01)
            self._rotation: Any = gui.add_vector3("roll, pitch, yaw in deg", (0.0, 0.0, 0.0), step=1.0)
            self._on_ground = gui.add_checkbox("snap to the ground", initial_value=True)
            self._grid = gui.add_number("grid in m", 0.0, min=0.0, max=1000.0, step=0.1)
            self._kind = gui.add_dropdown("new object", (*_SHAPES, *CATALOGUE), initial_value="box")
            self._scale = gui.add_number("size of a new shape", 1.0, min=0.01, max=1000.0, step=0.1)
            self._material = gui.add_dropdown("its material", tuple(sorted(BUILT_IN_MATERIALS)), initial_value="concrete")
            self._button("add", self.add)
            self._button("copy", self.copy)
            self._button("delete", self.delete, "red")
            self._button("undo", self.undo)
            self._button("redo", self.redo)
            self._clicks = gui.add_checkbox("clicks are waypoints", initial_value=False)
            self._speed = gui.add_number("speed in m/s", 1.5, min=0.1, max=100.0, step=0.1)
            self._loop = gui.add_checkbox("in a loop", initial_value=False)
            self._button("travel", self.travel)
            self._button("save", self.save, "green")
            self._file = gui.add_text("file", "")
            self._button("save as", self.save_as, "green")
        self._choice.on_update(lambda event: self._by_browser(event, lambda: self.select(str(self._choice.value))))
        for handle in (self._position, self._rotation):
            handle.on_update(lambda event: self._by_browser(event, self._place))

    def _button(self, label: str, action: Callable[[], None], colour: Literal["red", "green"] | None = None) -> None:
        self._server.gui.add_button(label, color=colour).on_click(lambda _: self._jobs.put(action))

    def _by_browser(self, event: Any, action: Callable[[], None]) -> None:
        if event.client is not None:  # the editor itself sets the values, too
            self._jobs.put(action)

    # The thread

    def _run(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_TRAVEL_S)
            except queue.Empty:
                self._draw_travellers()
                continue
            if job is None:
                return
            self.do(job)

    def stop(self) -> None:
        """End the thread when the edits that wait are made; at most one of them is under way when this returns."""
        self._jobs.put(None)
        self._thread.join(_STOP_S)

    def do(self, job: Callable[[], None]) -> None:
        """Make an edit, and show its faults on the page; nothing was done where it has some."""
        try:
            job()
            text = ""
        except (HilsimError, ValueError) as error:
            text = "  \n".join(plain(line) for line in str(error).split("\n"))
        self._draw()
        if self.message.content != text:
            self.message.content = text

    # Edits

    def select(self, name: str) -> None:
        """Select an object; any other text selects none."""
        self.selected = name if name in self._session.objects() else ""
        self.waypoints = []
        self._mark_waypoints()

    def add(self) -> None:
        """Add an object of the chosen kind in front of the world's origin, and select it."""
        self._snap()
        kind = str(self._kind.value)
        before = set(self._session.objects())
        if kind in CATALOGUE:
            self._session.add_from_library(kind, position_m=(4.0, 0.0, 0.0))
        elif kind in _SHAPES:
            scale, material = float(self._scale.value), str(self._material.value)
            keys: dict[str, Any] = {key: (np.array(value) * scale).tolist() for key, value in _SHAPES[kind].items()}
            if material != "concrete":
                keys["material"] = material
            self._session.add(kind, position_m=(4.0, 0.0, 0.0), **keys)
        else:
            raise ValueError(f'new object must be one of {", ".join((*_SHAPES, *CATALOGUE))}, got "{kind[:80]}"')
        self._done(1)
        self.selected = next(iter(self._session.objects().keys() - before))

    def copy(self) -> None:
        """Copy the selected object a metre to its left, and select the copy."""
        self._snap()
        before = set(self._session.objects())
        x, y, z = self._present().position_m
        self._session.copy(self.selected, (x, y + 1.0, 0.0 if self._on_ground.value else z))
        self._done(1)
        self.selected = next(iter(self._session.objects().keys() - before))

    def delete(self) -> None:
        """Remove the selected object."""
        self._session.delete(self.selected)
        self._done(1)
        self.selected = ""

    def undo(self) -> None:
        """Undo what was done last; a drag is one edit."""
        if self._groups:
            count = self._groups[-1]
            self._session.undo(count)
            self._undone.append(self._groups.pop())

    def redo(self) -> None:
        """Do again what was undone last."""
        if self._undone:
            self._session.redo(self._undone[-1])
            self._groups.append(self._undone.pop())

    def travel(self) -> None:
        """Send the selected object through the clicked points."""
        self._snap()
        self._session.travel(self.selected, self.waypoints, float(self._speed.value), loop=bool(self._loop.value))
        self._done(1)
        self.waypoints = []
        self._mark_waypoints()

    def save(self) -> None:
        """Write the rig's file."""
        self._session.save()

    def save_as(self) -> None:
        """Write the rig to the named file beside its own, which is edited from then on."""
        self._session.save_as(str(self._file.value))

    def drag(self, position: Sequence[float], wxyz: Sequence[float], phase: str) -> None:
        """Take a pose of the handle, relative to the page's origin; the object follows it at most 25 times a second, and all of a drag is one edit."""
        with self._dragging:
            waits = self._dragged is not None
            self._dragged = (tuple(map(float, position)), tuple(map(float, wxyz)))
        if phase == "end":
            self._jobs.put(self._end_drag)
        elif not waits:
            self._jobs.put(self._follow_drag)

    def _follow_drag(self) -> None:
        time.sleep(_DRAG_S)  # poses that come meanwhile replace this one
        self._take_drag()

    def _take_drag(self) -> None:
        with self._dragging:
            dragged, self._dragged = self._dragged, None
        if dragged is None or not self.selected:
            return
        self._snap()
        position, (w, x, y, z) = dragged
        place = np.asarray(position) + self._page_origin_m - np.asarray(self._session.origin_m)
        angles = tuple(math.degrees(angle) for angle in roll_pitch_yaw_rad((w, x, y, z)))
        height = 0.0 if self._on_ground.value else float(place[2])
        self._session.move(self.selected, (float(place[0]), float(place[1]), height), angles)
        self._moved += 1

    def _end_drag(self) -> None:
        try:
            self._take_drag()
        finally:
            if self._moved:
                self._done(self._moved)
            self._moved = 0

    def _place(self) -> None:
        """Put the selected object where the numbers are."""
        self._snap()
        x, y, z = (float(value) for value in self._position.value)
        self._session.move(self.selected, (x, y, 0.0 if self._on_ground.value else z), [float(value) for value in self._rotation.value])
        self._done(1)

    @property
    def takes_clicks(self) -> bool:
        """Whether a click in the scene is a waypoint."""
        return bool(self._clicks.value) and bool(self.selected)

    def click(self, origin: Sequence[float], direction: Sequence[float], point: npt.NDArray[np.float32] | None) -> None:
        """Take a click as a waypoint.

        Args:
            origin: Position of the camera, relative to the page's origin.
            direction: Direction of the click's ray.
            point: ``float32[3]``, the lidar point that was met; None: none, then the ray's place at the height of the object counts.
        """
        self._jobs.put(lambda: self._add_waypoint(origin, direction, point))

    def _add_waypoint(self, origin: Sequence[float], direction: Sequence[float], point: npt.NDArray[np.float32] | None) -> None:
        height = float(self._present().position_m[2]) + float(self._session.origin_m[2]) - float(self._page_origin_m[2])
        if point is not None:
            x, y = float(point[0]), float(point[1])
        else:
            along = (height - origin[2]) / direction[2] if direction[2] else -1.0
            if not 0.0 < along < math.inf:
                return
            x, y = origin[0] + along * direction[0], origin[1] + along * direction[1]
        if len(self.waypoints) >= _MAX_WAYPOINTS:
            raise ValueError(f"a way must have at most {_MAX_WAYPOINTS} points")
        place = np.array((x, y, height)) + self._page_origin_m - np.asarray(self._session.origin_m)
        self.waypoints.append((float(place[0]), float(place[1]), 0.0 if self._on_ground.value else float(place[2])))
        self._mark_waypoints(height)

    def _mark_waypoints(self, height: float = 0.0) -> None:
        for mark in self._marks:
            mark.remove()
        shift = np.asarray(self._session.origin_m) - self._page_origin_m
        places = [(x + shift[0], y + shift[1], height) for x, y, _ in self.waypoints]
        self._marks = [
            self._server.scene.add_icosphere(f"/edit/waypoints/{number}", 0.12, _SELECTED, position=at) for number, at in enumerate(places)
        ]

    def _snap(self) -> None:
        grid_m = float(self._grid.value)
        self._session.snap = Snap(grid_m=min(max(grid_m, 0.0), 1000.0) if math.isfinite(grid_m) else 0.0, on_ground=bool(self._on_ground.value))

    def _done(self, edits: int) -> None:
        self._groups.append(edits)
        self._undone.clear()

    def _present(self) -> Any:
        things = self._session.objects()
        if self.selected not in things:
            raise ValueError("select an object first")
        return things[self.selected].at(self._now_s())

    def _now_s(self) -> float:
        now_s = time.monotonic()
        if now_s - self._clock[0] > _CLOCK_S:
            self._clock = now_s, self._session.rig_s() - now_s
        return now_s + self._clock[1]

    # Drawing

    def _draw(self) -> None:
        """Show objects, numbers and handle as they are now."""
        things = self._session.objects()
        if self.selected not in things:
            self.selected = ""
        shapes = self._session.shapes(self._now_s())
        if self._fixed is None:
            self._fixed = self._draw_fixed([shape for shape in shapes if not shape.name])
        shown = {shape.name: shape for shape in shapes if shape.name}
        for name in self._nodes.keys() - shown.keys():
            self._nodes.pop(name)[1].remove()
        for name, shape in shown.items():
            self._draw_shape(name, shape)
        options = (_NOTHING, *sorted(things))
        if self._choice.options != options:
            self._choice.options = options
        if self._choice.value != (self.selected or _NOTHING):
            self._choice.value = self.selected or _NOTHING
        self._draw_selected(shown.get(self.selected))

    def _draw_shape(self, name: str, shape: "Shape") -> None:
        mesh = id(shape.mesh)
        colour = _SELECTED if name == self.selected else _colour(shape)
        if name not in self._nodes or self._nodes[name][0] != mesh:
            if name in self._nodes:
                self._nodes.pop(name)[1].remove()
            node = self._server.scene.add_mesh_simple(
                f"/edit/objects/{name.replace('/', '|')}",
                shape.mesh.vertices_m.astype(np.float32),
                shape.mesh.triangles.astype(np.uint32),
                color=colour,
                cast_shadow=False,
                receive_shadow=False,
            )
            node.on_click(partial(self._click_object, name))
            self._nodes[name] = mesh, node
        node = self._nodes[name][1]
        node.color = colour
        self._place_node(node, shape)

    def _click_object(self, name: str, event: Any) -> None:
        self._by_browser(event, partial(self.select, name))

    def _place_node(self, node: Any, shape: "Shape") -> None:
        node.position = np.asarray(shape.pose.position_m) - self._page_origin_m
        node.wxyz = shape.pose.orientation

    def _draw_fixed(self, shapes: Sequence["Shape"]) -> Any:
        vertices, triangles, count, left = [], [], 0, VIEW_TRIANGLES.bound
        for shape in shapes:
            if shape.travels or len(shape.mesh.triangles) > left:
                continue
            left -= len(shape.mesh.triangles)
            vertices.append(np.array([shape.pose.transform(tuple(vertex)) for vertex in shape.mesh.vertices_m]).reshape(-1, 3) - self._page_origin_m)
            triangles.append(shape.mesh.triangles + count)
            count += len(shape.mesh.vertices_m)
        if not vertices:
            return False
        joined = np.concatenate(vertices).astype(np.float32), np.concatenate(triangles).astype(np.uint32)
        return self._server.scene.add_mesh_simple("/edit/fixed", *joined, color=_FIXED, opacity=0.5, cast_shadow=False, receive_shadow=False)

    def _draw_selected(self, shape: "Shape | None") -> None:
        if self._gizmo is not None and (shape is None or self._gizmo[0] != self.selected):
            self._gizmo[1].remove()
            self._gizmo = None
        if shape is None:
            return
        present = self._present()
        position = tuple(round(value, _ROUND) for value in present.position_m)
        rotation = tuple(round(value, _ROUND) for value in present.rotation_deg)
        if not np.allclose(self._position.value, position):
            self._position.value = position
        if not np.allclose(self._rotation.value, rotation):
            self._rotation.value = rotation
        if self._gizmo is None:
            gizmo = self._server.scene.add_transform_controls("/edit/handle", scale=1.5)

            async def drag(event: Any) -> None:  # a coroutine: viser runs plain functions in any order
                self.drag(event.target.position, event.target.wxyz, event.phase)

            gizmo.on_update(drag)
            self._gizmo = self.selected, gizmo
        if not self._moved:  # a browser holds it meanwhile
            pose = mounting(present.position_m, present.rotation_deg)
            self._gizmo[1].position = np.asarray(pose.position_m) + np.asarray(self._session.origin_m) - self._page_origin_m
            self._gizmo[1].wxyz = pose.orientation

    def _draw_travellers(self) -> None:
        """Move the objects that travel."""
        try:
            for shape in self._session.shapes(self._now_s()):
                if shape.travels and shape.name in self._nodes:
                    self._place_node(self._nodes[shape.name][1], shape)
        except HilsimError as error:
            self.message.content = plain(str(error))


def _colour(shape: "Shape") -> tuple[int, int, int]:
    """Grey by the mean reflectivity of the materials."""
    codes = [material.reflectivity for material in shape.mesh.materials]
    grey = min(round(_GREY + _PER_CODE * min(sum(codes) / len(codes), 100.0)), 230)
    return grey, grey, min(grey + 10, 255)
