"""The page: what the browsers see, drawn anew at most ten times a second."""

import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import structlog

from hilsim.limits import VIEW_POINTS, VIEW_TRIANGLES
from hilsim.read.scans.scan import Scan
from hilsim.show.view.feed.base import Feed, TruthfulFeed
from hilsim.show.view.page.cameras import Cameras, SensorPose
from hilsim.show.view.page.colours import OBJECTS, colours
from hilsim.show.view.page.controls import ALL, LAST_SECONDS, Controls
from hilsim.show.view.page.faults import FaultControls
from hilsim.show.view.page.mapping import MapLayer
from hilsim.show.view.page.models import SceneModel, field_of_view, track_segments
from hilsim.show.view.page.parts import History, Part, VoxelMap, joined, placed, thinned
from hilsim.show.view.page.picking import Picked, describe, distance_m, pick, truth_rows
from hilsim.show.view.page.players import ReplayControls
from hilsim.show.view.page.strips import HealthStrips, latest, plain

if TYPE_CHECKING:
    import viser

    from hilsim.api.control import Control
    from hilsim.editing.session import EditSession
    from hilsim.show.view.page.editor import SceneEditor

log = structlog.get_logger("hilsim")

STEP_S = 0.1
"""Shortest time between two updates."""
_MAP_STEPS = 5
"""A map is drawn in each n-th update: it changes little, and is large."""
_STATUS_STEPS = 10
_TRACK_STEPS = 10
_TRACK_M = 0.1
_UNSEEN_M = 1e-6
_LABEL_STEP_M = 0.3
"""Height of a label above the one of the sensor before, so that those of sensors at one place do not cover each other."""
_TRACK_POSITIONS = 4000
_VIEW_RADIUS_M = 4.0
_FAR_M = 1000.0
"""A sensor farther than this from the world's origin becomes the page's origin: float32 resolves 0.1 mm there."""
_SCREENSHOT_HEIGHT, _SCREENSHOT_WIDTH = 1080, 1920
_SCREENSHOT_S = 60.0
_GREEN = (120, 220, 120)
_ORANGE = (255, 140, 0)


class _Sensor:
    """A sensor on the page."""

    def __init__(self, server: "viser.ViserServer", name: str, index: int) -> None:
        self.name = name
        self.index = index
        self.next = 0
        self.next_labelled = 0
        self.latest: Part | None = None
        self.pose: SensorPose | None = None
        self.positions: list[npt.NDArray[np.float64]] = []
        self.frame: Any = server.scene.add_frame(f"/sensors/{index}", axes_length=0.6, axes_radius=0.015, visible=False)
        self.label: Any = server.scene.add_label(f"/sensors/{index}/name", name, position=(0.0, 0.0, _LABEL_STEP_M * index), visible=False)
        self.edges: Any = None
        self.track: Any = None
        self.drawn_positions = 0

    def move(self, pose: SensorPose) -> None:
        """Take over the pose of the newest scan."""
        self.pose = pose
        self.frame.position, self.frame.wxyz = pose.position, pose.wxyz
        if not self.positions or float(np.linalg.norm(pose.position - self.positions[-1])) >= _TRACK_M:
            self.positions.append(pose.position)
            if len(self.positions) > _TRACK_POSITIONS:
                self.positions = self.positions[::2]


class Page:
    """The page of one feed. One thread calls ``step``; viser's threads call what belongs to controls.

    Attributes:
        controls: Controls of the points.
        origin_m: ``float64[3]``, the page's origin in the world.
        shown: Points that are drawn now.
        picked: Picked points, the newest last: two at most.
        drawn: Number of updates so far.
        mapping: Map of returns.
        editor: Editor of the scene; None before the first scan, and without a session.
    """

    def __init__(
        self,
        server: "viser.ViserServer",
        feed: Feed,
        models: Sequence[SceneModel] = (),
        control: "Control | None" = None,
        session: "EditSession | None" = None,
    ) -> None:
        """Build the page.

        Args:
            server: viser's server.
            feed: Source of the scans.
            models: Meshes of the scene.
            control: Client of the daemon, for its replays.
            session: Editing session of the daemon's rig.
        """
        self.editor: SceneEditor | None = None
        self._session = session
        self.origin_m = np.zeros(3)
        self.shown = joined([])
        self.picked: tuple[Picked, ...] = ()
        self.drawn = 0
        self._object_name = getattr(feed, "object_name", None)  # of a daemon
        self._server, self._feed, self._models = server, feed, tuple(models)
        self._sensors: dict[str, _Sensor] = {}
        self._cloud: Any = None
        self._marks: list[Any] = []
        self._meshes: list[Any] = []
        self._hidden_models = 0
        self._history: History | None = None
        self._map: VoxelMap | None = None
        self._is_changed = True
        self._started_s = time.monotonic()
        self._steps = 0
        self._lock = threading.RLock()
        server.gui.configure_theme(dark_mode=True, show_logo=False, show_share_button=False)
        server.gui.main_panel.dock_right()
        server.scene.configure_default_lights(cast_shadow=False)  # shadows draw the scene three more times: without a GPU that is a second a frame
        self.controls = Controls(server, self._change, self.clear_picked)
        self.cameras = Cameras(self._poses)
        self._replays = ReplayControls(server, feed, control)
        self._faults = FaultControls(server, control)
        self._health = HealthStrips(server)
        self.mapping = MapLayer(server)
        server.on_client_connect(self._connect)
        server.on_client_disconnect(lambda client: self.cameras.disconnect(client.client_id))
        server.scene.on_click()(self._click)

    def run(self, ended: threading.Event) -> None:
        """Update the page until an event is set."""
        try:
            while not ended.wait(STEP_S / 10):
                begun_s = time.monotonic()
                self.step()
                ended.wait(max(0.0, STEP_S * 0.9 - (time.monotonic() - begun_s)))
        finally:
            if self.editor is not None:
                self.editor.stop()

    def step(self) -> None:
        """Take the scans that have come, and draw what has changed; without a browser only a map grows."""
        with self._lock:
            self._steps += 1
            status = self._feed.status() if self._steps % _STATUS_STEPS == 1 else None
            if status is not None:
                self._health.show(status, latest(self._feed), time.monotonic() - self._started_s)
            self._replays.step(status)
            self._faults.step(status)
            if not self.cameras.count and self._map is None and not self.mapping.is_on:
                return
            self._choose_stores()
            is_new = not self.controls.is_paused and self._take_scans()
            is_due = self._map is None or self._steps % _MAP_STEPS == 0
            if self._is_changed or (is_new and is_due):
                self._is_changed = False
                self._draw()
            if is_new:
                self.cameras.step()
            if self._steps % _TRACK_STEPS == 0:
                self._draw_tracks()
            self.mapping.step(self.origin_m)

    def _change(self) -> None:
        self._is_changed = True

    def _poses(self) -> dict[str, SensorPose]:
        return {name: sensor.pose for name, sensor in tuple(self._sensors.items()) if sensor.pose is not None}

    # -- scans -----------------------------------------------------------------------------------------------------------------------------

    def _choose_stores(self) -> None:
        """Begin or forget the history and the map, as the controls ask for them."""
        amount = self.controls.amount
        if (self._history is not None) != (amount == LAST_SECONDS):
            self._history = History() if amount == LAST_SECONDS else None
            self._refill(self._history)
        if (self._map is not None) != (amount == ALL):
            self._map = VoxelMap() if amount == ALL else None
            self._refill(self._map)

    def _refill(self, store: History | VoxelMap | None) -> None:
        for sensor in self._sensors.values() if store is not None else ():
            if sensor.latest is not None:
                self._store(sensor.latest)

    def _store(self, part: Part) -> None:
        if self._history is not None:
            self._history.add(part, round(self.controls.seconds * 1e9))
        if self._map is not None:
            self._map.add(part)

    def _take_scans(self) -> bool:
        names = self._feed.sensors()
        is_new = False
        for name in names:
            scans = self._new_scans(name)
            if scans:
                self._take(name, scans)
                is_new = True
        return is_new

    def _new_scans(self, name: str) -> Sequence[Scan]:
        """Scans of a sensor that have come; where objects are shown, those of which a feed knows the objects: it may find out later, and not of all."""
        sensor = self._sensors.get(name)
        if sensor is None:
            return self._feed.scans_since(name, 0)
        if self.controls.quantity in OBJECTS:
            labelled = [scan for scan in self._feed.scans_since(name, sensor.next_labelled) if scan.instance is not None]
            if labelled or sensor.next_labelled:
                sensor.next_labelled = labelled[-1].number + 1 if labelled else sensor.next_labelled
                return labelled
        return self._feed.scans_since(name, sensor.next)

    def _take(self, name: str, scans: Sequence[Scan]) -> None:
        newest = scans[-1]
        is_first = not self._sensors
        if is_first:
            self._set_origin(newest)
        sensor = self._sensors.get(name) or self._add_sensor(name)
        sensor.next = max(sensor.next, newest.number + 1)
        for scan in scans if self._history is not None or self._map is not None else scans[-1:]:
            try:
                part = placed(scan, sensor.index, self.origin_m)
            except ValueError as error:
                log.warning("view.scan_refused", sensor=name, number=scan.number, error=str(error))
                return
            self._store(part)
            sensor.latest = part
        for scan in scans if self.mapping.is_on else ():
            self.mapping.add(scan)
        is_unposed = sensor.pose is None
        sensor.move(SensorPose(position=np.asarray(newest.position_m, np.float64) - self.origin_m, wxyz=newest.wxyz))
        if is_unposed:
            self.cameras.offer(tuple(self._poses()))
            edges = field_of_view(newest.points, _VIEW_RADIUS_M)
            if edges.size:
                sensor.edges = self._server.scene.add_line_segments(
                    f"/sensors/{sensor.index}/view", edges, (90, 160, 255), thickness=1.0, thickness_units="screen"
                )

    def _add_sensor(self, name: str) -> _Sensor:
        sensor = self._sensors[name] = _Sensor(self._server, name, len(self._sensors))
        self.controls.add_sensor(name)
        return sensor

    def _set_origin(self, scan: Scan) -> None:
        position = np.asarray(scan.position_m, np.float64)
        if float(np.linalg.norm(position)) > _FAR_M:
            self.origin_m = np.round(position)
        self._draw_models()
        if self._session is not None:
            from hilsim.show.view.page.editor import SceneEditor  # noqa: PLC0415 - imports what builds scenes

            self.editor = SceneEditor(self._server, self._session, self.origin_m)

    # -- drawing ---------------------------------------------------------------------------------------------------------------------------

    def _draw(self) -> None:
        parts, total = self._chosen()
        whole = joined(parts)
        shown = self.shown = thinned(whole, VIEW_POINTS.bound)
        colour, limits = colours(shown, self.controls.quantity, self.controls.colour_map)
        self._assign(shown, colour)
        self._describe(total, limits)
        for sensor in self._sensors.values():
            is_on = self.controls.shows_sensor(sensor.name)
            sensor.frame.visible = is_on
            sensor.frame.show_axes = self.controls.shows("sensor frames")
            sensor.label.visible = self.controls.shows("sensor frames")
            if sensor.edges is not None:
                sensor.edges.visible = self.controls.shows("fields of view")
        for mesh in self._meshes:
            mesh.visible = self.controls.shows("scene")
        self.drawn += 1

    def _chosen(self) -> tuple[list[Part], int]:
        """Parts to show, and the number of points before any were dropped."""
        switched_on = [sensor for sensor in self._sensors.values() if self.controls.shows_sensor(sensor.name)]
        if self._history is None and self._map is None:
            latest = [sensor.latest for sensor in switched_on if sensor.latest is not None]
            return latest, sum(part.size for part in latest)
        store: History | VoxelMap | None = self._history or self._map
        if store is None:
            raise AssertionError("one of the stores exists")
        parts = store.parts()
        if len(switched_on) < len(self._sensors):
            numbers = np.array([sensor.index for sensor in switched_on], np.uint8)
            parts = [part.at(np.isin(part.sensor, numbers)) for part in parts]
        return parts, store.total

    def _assign(self, shown: Part, colour: npt.NDArray[np.uint8]) -> None:
        points = np.ascontiguousarray(shown.world, np.float32)
        if points.shape != (shown.size, 3) or colour.shape != points.shape:
            raise AssertionError(f"each point must have a colour, got {points.shape} and {colour.shape}")
        size_m = self.controls.point_size_m
        if self._cloud is None:
            if shown.size:
                add = partial(self._server.scene.add_point_cloud, precision="float32", point_shape="circle", point_shading="flat")
                self._cloud = add("/points", points, colour, point_size=size_m)
                # Another number of points is another material in the browser, whose shaders are linked anew where nothing else has the same.
                add("/shaders", np.array([[-_FAR_M] * 3, [_FAR_M] * 3], np.float32), np.zeros((2, 3), np.uint8), point_size=_UNSEEN_M)
            return
        with self._server.atomic():
            self._cloud.visible = shown.size > 0
            if shown.size:
                self._cloud.points, self._cloud.colors = points, colour
            if self._cloud.point_size != size_m:
                self._cloud.point_size = size_m

    def _describe(self, total: int, limits: str) -> None:
        count = f"{self.shown.size:,}" if self.shown.size == total else f"{self.shown.size:,} of {total:,}"
        lines = [f"{count} points of {len(self._sensors)} sensor{'s' if len(self._sensors) != 1 else ''}"]
        self.controls.show_key(limits, [sensor.name for sensor in self._sensors.values()])
        if self._map is not None:
            lines.append(f"cells of {self._map.cell_m:g} m")
        if lost := getattr(self._feed, "lost_scans", 0):
            lines.append(
                f"**{lost:,} of {lost + getattr(self._feed, 'shown_scans', 0):,} scans are not shown**: this page's process has too little time for all"
            )
        if self._hidden_models:
            lines.append(f"{self._hidden_models} meshes are too large to be shown")
        text = "  \n".join([*lines, plain(self._feed.title)])
        if self.controls.info.content != text:
            self.controls.info.content = text

    def _draw_models(self) -> None:
        left = VIEW_TRIANGLES.bound
        for index, model in enumerate(self._models):
            if len(model.triangles) > left:
                self._hidden_models += 1
                continue
            left -= len(model.triangles)
            mesh = self._server.scene.add_mesh_simple(
                f"/scene/{index}",
                np.asarray(model.vertices, np.float32),
                np.asarray(model.triangles, np.uint32),
                color=model.colour,
                flat_shading=True,
                side="double",
                cast_shadow=False,
                receive_shadow=False,
                wxyz=model.wxyz,
                position=np.asarray(model.position_m, np.float64) - self.origin_m,
            )
            self._meshes.append(mesh)

    def _draw_tracks(self) -> None:
        is_shown = self.controls.shows("tracks")
        for sensor in self._sensors.values():
            if sensor.track is not None:
                sensor.track.visible = is_shown
            if not is_shown or len(sensor.positions) < 2 or len(sensor.positions) == sensor.drawn_positions:
                continue
            segments = track_segments(np.array(sensor.positions, np.float32))
            sensor.drawn_positions = len(sensor.positions)
            colour = np.broadcast_to(np.array(_GREEN, np.uint8), segments.shape)
            if sensor.track is not None:  # a new node would make browsers link a shader anew
                with self._server.atomic():
                    sensor.track.points, sensor.track.colors = segments, colour
                continue
            sensor.track = self._server.scene.add_line_segments(f"/tracks/{sensor.index}", segments, colour, thickness=2.0, thickness_units="screen")

    # -- picking ---------------------------------------------------------------------------------------------------------------------------

    def _click(self, event: Any) -> None:
        if event.ray_origin is None or event.ray_direction is None:
            return
        if self.editor is not None and self.editor.takes_clicks:
            with self._lock:
                index = pick(self.shown, event.ray_origin, event.ray_direction)
                point = None if index is None else self.shown.world[index].copy()
            self.editor.click(event.ray_origin, event.ray_direction, point)
        else:
            self.pick(event.ray_origin, event.ray_direction)

    def pick(self, origin: Sequence[float], direction: Sequence[float]) -> Picked | None:
        """Pick the shown point that a ray meets, and mark it; None if there is none."""
        with self._lock:
            index = pick(self.shown, origin, direction)
            if index is None:
                return None
            found = describe(self.shown, index, tuple(self._sensors), self.origin_m, self._object_name)
            self.picked = (*self.picked[-1:], found) if self.controls.measures else (found,)
            self._mark()
        if isinstance(self._feed, TruthfulFeed):
            threading.Thread(target=self._find_truth, args=(self._feed, found), name="truth", daemon=True).start()
        return found

    def _find_truth(self, feed: "TruthfulFeed", picked: Picked) -> None:
        """Add the ground truth of a picked point to its rows, unless another point is picked meanwhile."""
        name = tuple(self._sensors)[picked.sensor]
        for scan in reversed(feed.scans_since(name, 0)):
            index = np.flatnonzero(scan.points == picked.point)
            if index.size:
                rows = truth_rows(feed.truth(scan, int(index[0])))
                with self._lock:
                    if self.picked and self.picked[-1] is picked:
                        self.picked = (*self.picked[:-1], replace(picked, rows=(*picked.rows, *rows)))
                        self._mark()
                return

    def clear_picked(self) -> None:
        """Forget the picked points."""
        with self._lock:
            self.picked = ()
            self._mark()

    def _mark(self) -> None:
        scene = self._server.scene
        for mark in self._marks:
            mark.remove()
        radius_m = max(self.controls.point_size_m, 0.05)
        self._marks = [
            scene.add_icosphere(f"/picked/{number}", radius_m, _ORANGE, opacity=0.7, position=picked.world)
            for number, picked in enumerate(self.picked)
        ]
        text = "  \n".join(f"{name}: {plain(value)}" for name, value in self.picked[-1].rows) if self.picked else "click a point"
        if len(self.picked) == 2:
            first, second = self.picked
            measured = f"{distance_m(first, second):.3f} m"
            middle = (first.world + second.world) / 2
            self._marks += [
                scene.add_line_segments("/picked/line", np.stack([[first.world, second.world]]), _ORANGE, thickness=3.0, thickness_units="screen"),
                scene.add_label("/picked/distance", measured, position=middle),
            ]
            text = f"**distance: {measured}**  \n{text}"
        self.controls.picked.content = text

    # -- browsers --------------------------------------------------------------------------------------------------------------------------

    def _connect(self, client: "viser.ClientHandle") -> None:
        with self._lock:
            if client.client_id in self._server.get_clients():
                self.cameras.connect(client)
            if client.client_id not in self._server.get_clients():  # it has left, before or meanwhile
                self.cameras.disconnect(client.client_id)
                return
        with client.gui.add_folder("Picture", order=55.0):
            button = client.gui.add_button("screenshot")

        @button.on_click
        def _(event: object) -> None:
            del event
            client.send_file_download(f"hilsim-{datetime.now(UTC):%Y%m%dT%H%M%SZ}.png", screenshot(client), save_immediately=True)

        self._change()


def screenshot(client: "viser.ClientHandle") -> bytes:
    """Picture (PNG) of what a browser shows, drawn by that browser.

    Raises:
        TimeoutError: the browser does not answer.
    """
    from PIL import Image  # noqa: PLC0415 - slow to import

    height = min(max(client.camera.image_height, 1), _SCREENSHOT_HEIGHT)
    width = min(max(client.camera.image_width, 1), _SCREENSHOT_WIDTH)
    picture = Image.fromarray(client.get_render(height, width, transport_format="jpeg", timeout=_SCREENSHOT_S))
    file = BytesIO()
    picture.save(file, format="PNG")
    return file.getvalue()
