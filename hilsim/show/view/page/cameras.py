"""Cameras: each browser has its own, which moves with a sensor and can be turned about it, is free, or looks out of a sensor."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from hilsim.show.view.page.parts import rotation

if TYPE_CHECKING:
    import viser

Vector = npt.NDArray[np.float64]
FREE, FOLLOW, FIRST_PERSON = "free", "follow the sensor", "first person"
MODES = (FOLLOW, FREE, FIRST_PERSON)
_NO_SENSOR = "-"
_HOME = np.array([0.0, -16.0, 9.0])
"""Position behind and above a sensor, in its frame turned about the vertical only."""
_AHEAD_M = 6.0
_TOP_M = 60.0
_MIN_M = 0.01
"""Smallest displacement of a sensor that moves a camera."""


@dataclass(frozen=True, kw_only=True)
class SensorPose:
    """Pose of a sensor frame on the page.

    Attributes:
        position: ``float64[3]``, relative to the page's origin.
        wxyz: Orientation in the world.
    """

    position: Vector
    wxyz: tuple[float, float, float, float]

    @property
    def forward(self) -> Vector:
        """Horizontal unit vector of the sensor's forward direction; world's y for a sensor that looks straight up or down."""
        ahead = rotation(self.wxyz)[:, 1].copy()
        ahead[2] = 0.0
        length = float(np.linalg.norm(ahead))
        return ahead / length if length > 1e-3 else np.array([0.0, 1.0, 0.0])


@dataclass(kw_only=True)
class _Camera:
    client: "viser.ClientHandle"
    mode: Any
    sensor: Any
    followed: str = _NO_SENSOR
    last: Vector | None = None


class Cameras:
    """Cameras of the connected browsers."""

    def __init__(self, poses: Callable[[], Mapping[str, SensorPose]]) -> None:
        """Create cameras without clients; ``poses`` gives the present pose of each sensor."""
        self._poses = poses
        self._cameras: dict[int, _Camera] = {}

    @property
    def count(self) -> int:
        """Number of connected browsers."""
        return len(self._cameras)

    def connect(self, client: "viser.ClientHandle") -> None:
        """Add the controls of a browser that has connected."""
        with client.gui.add_folder("Camera", order=50.0):
            mode = client.gui.add_dropdown("mode", MODES, initial_value=FOLLOW)
            sensor = client.gui.add_dropdown("sensor", self._options(), initial_value=self._options()[0])
            home = client.gui.add_button("behind the sensor")
            top = client.gui.add_button("top view")
        camera = _Camera(client=client, mode=mode, sensor=sensor)

        @mode.on_update
        def _(event: object) -> None:
            del event
            camera.last = None

        @home.on_click
        def _(event: object) -> None:
            del event
            self.go_home(camera.client.client_id)

        @top.on_click
        def _(event: object) -> None:
            del event
            self._from_above(camera)

        self._go_home(camera)
        self._cameras[client.client_id] = camera

    def disconnect(self, client_id: int) -> None:
        """Forget a browser that has left."""
        self._cameras.pop(client_id, None)

    def offer(self, sensors: Sequence[str]) -> None:
        """Offer further sensors to all browsers."""
        for camera in self._now():
            chosen = camera.sensor.value
            camera.sensor.options = tuple(sensors)
            if chosen not in sensors:
                camera.sensor.value = sensors[0]
                self.go_home(camera.client.client_id)

    def step(self) -> None:
        """Move the cameras that follow a sensor."""
        for camera in self._now():
            pose = self._poses().get(camera.sensor.value)
            if pose is None or camera.mode.value not in {FOLLOW, FIRST_PERSON}:
                continue
            moved = camera.last is None or camera.followed != camera.sensor.value or float(np.linalg.norm(pose.position - camera.last)) > _MIN_M
            if camera.mode.value == FIRST_PERSON:
                _look(camera.client, pose.position, pose.position + pose.forward * _AHEAD_M)
            elif camera.last is None or camera.followed != camera.sensor.value:
                self._behind(camera, pose)
            elif moved:
                _carry(camera.client, _target(pose))
            if moved:
                camera.last, camera.followed = pose.position.copy(), camera.sensor.value

    def go_home(self, client_id: int) -> None:
        """Move a browser's camera behind the chosen sensor."""
        camera = self._cameras.get(client_id)
        if camera is not None:
            self._go_home(camera)

    def _go_home(self, camera: _Camera) -> None:
        pose = self._poses().get(camera.sensor.value)
        if pose is not None:
            self._behind(camera, pose)
            camera.last, camera.followed = pose.position.copy(), camera.sensor.value

    def _behind(self, camera: _Camera, pose: SensorPose) -> None:
        forward = pose.forward
        right = np.array([forward[1], -forward[0], 0.0])
        position = pose.position + right * _HOME[0] + forward * _HOME[1] + np.array([0.0, 0.0, _HOME[2]])
        _look(camera.client, position, _target(pose))

    def _from_above(self, camera: _Camera) -> None:
        pose = self._poses().get(camera.sensor.value)
        target = pose.position if pose is not None else np.zeros(3)
        forward = pose.forward if pose is not None else np.array([0.0, 1.0, 0.0])
        _look(camera.client, target - forward * 0.05 + np.array([0.0, 0.0, _TOP_M]), target)  # straight down has no direction that is up

    def _now(self) -> list[_Camera]:
        return list(self._cameras.values())

    def _options(self) -> tuple[str, ...]:
        return tuple(self._poses()) or (_NO_SENSOR,)


def _look(client: "viser.ClientHandle", position: Vector, target: Vector) -> None:
    with client.atomic():
        client.camera.position = position
        client.camera.look_at = target


def _carry(client: "viser.ClientHandle", target: Vector) -> None:
    """Move a camera to another target, with the direction and distance that its browser has reported last.

    A browser reports where its camera was some frames ago; only its position relative to its own target is free of that delay.
    """
    view = np.asarray(client.camera.position, np.float64) - np.asarray(client.camera.look_at, np.float64)
    if float(np.linalg.norm(view)) > _MIN_M:
        _look(client, target + view, target)


def _target(pose: SensorPose) -> Vector:
    return pose.position + pose.forward * _AHEAD_M
