"""Reading of a world or model file as flat lists; all unsupported parts are listed."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from hilsim.errors import AssetError
from hilsim.limits import SDF_DEPTH
from hilsim.world.geometry.poses import Pose
from hilsim.world.sdf.elements import Element, Findings, shown
from hilsim.world.sdf.files import Files, search_path
from hilsim.world.sdf.frames import ROOT, SEPARATOR, WORLD, Frame, Scope, relative_to
from hilsim.world.sdf.lidars import LIDAR_TYPES, read_lidar
from hilsim.world.sdf.shapes import read_shape
from hilsim.world.sdf.specs import SdfActor, SdfLidar, SdfModel, SdfScene, SdfShape, SdfTrajectory, SdfWaypoint, skin_name

_SHOWN_FAULTS = 20
_UNSUPPORTED = {
    "population": "<population> {name} is not supported",
    "road": "<road> {name} is not supported",
    "particle_emitter": "<particle_emitter> {name} is not supported: its particles are invisible",
    "projector": "<projector> {name} is not supported",
    "state": "<state> is not supported: models have the poses of their definitions",
    "experimental:params": "<experimental:params> is not supported: the model is as its own file has it",
}
"""Elements that change the world, or its appearance. Others (light, physics, gui, inertia, joints) do not affect a lidar's view of static objects."""
_LONGEST_MS = 2**31 - 1
"""24 days: Gazebo stores the milliseconds of a script in 32 bits."""


@dataclass(kw_only=True, eq=False)
class _Model:
    """A model with its frames.

    Attributes:
        element: Element ``<model>``.
        name: Name in its parent.
        scope: Frames of the model.
        frame: Name of its own frame in its parent's scope; empty if there is none.
        is_merged: Whether its contents belong to its parent.
        nested: Nested models.
    """

    element: Element
    name: str
    scope: Scope
    frame: str = ""
    is_merged: bool = False
    nested: "list[_Model]" = field(default_factory=list)


def read_sdf(path: Path, search: Sequence[Path] = ()) -> SdfScene:
    """Read a world or model.

    Args:
        path: Path of the file.
        search: Search directories for models, before those of the environment.

    Raises:
        AssetError: the file or one that it includes has faults; the message names all, one per line.
    """
    findings = Findings()
    reader = _Reader(Files(search=search_path(search), findings=findings))
    scene = reader.scene(path.resolve())
    if findings.faults:
        left = len(findings.faults) - _SHOWN_FAULTS
        raise AssetError("\n".join(findings.faults[:_SHOWN_FAULTS] + ([f"and {left} more faults"] if left > 0 else [])))
    return scene


class _Reader:
    """Collects the contents of a file."""

    def __init__(self, files: Files) -> None:
        self._files = files
        self._collisions: list[SdfShape] = []
        self._visuals: list[SdfShape] = []
        self._lidars: list[SdfLidar] = []
        self._actors: list[SdfActor] = []
        self._models: list[SdfModel] = []
        self._world = ""
        self._depth = 0

    def scene(self, path: Path) -> SdfScene:
        """Contents of a file."""
        root = self._files.root(path)
        with self._files.entered(path):
            top = root.child("world", "model")
            if top is None:
                raise AssetError(
                    f"{root.where}: must hold a <world> or a <model>, got {', '.join(sorted({c.tag for c in root.children})) or 'nothing'}"
                )
            for further in root.all("world", "model"):
                if further is not top:
                    further.unsupported(f'<{further.tag}> "{further.name}" is left out: the first of the file is used')
            if top.tag == WORLD:
                self._world = top.name
                self._read_world(top)
            else:
                self._gather(self._model(top, top.name), Pose(), "")
        return SdfScene(
            path=path,
            name=top.name,
            collisions=tuple(self._collisions),
            visuals=tuple(self._visuals),
            lidars=tuple(self._lidars),
            actors=tuple(self._actors),
            models=tuple(self._models),
            unsupported=self._files.findings.left_out,
            stamps=self._files.stamps,
        )

    # -- frames ------------------------------------------------------------------------------------------------------------------------

    def _read_world(self, world: Element) -> None:
        scope = Scope(root=WORLD)
        models = self._models_of(world, scope)
        for frame in world.all("frame"):
            scope.add(frame, Frame(element=frame, pose=frame.pose(), relative_to=relative_to(frame, frame.attributes.get("attached_to", WORLD))))
        _note_unsupported(world)
        for model in models:
            if model.is_merged and any(model.element.all("link")):
                model.element.fault("a model that is merged into a world must have no <link>: a world has none")
            self._gather(model, self._pose_in(scope, model), "")
        for actor in world.all("actor"):
            self._read_actor(actor, scope, None)

    def _models_of(self, parent: Element, scope: Scope) -> list[_Model]:
        """Models of a world or model, including included ones; their frames are added to the scope."""
        found = []
        for element in parent.all("model", "include"):
            if element.tag == "model":
                found.append(self._added(self._model(element, element.name), element, scope))
                continue
            included = self._files.included(element)
            if included is None:
                continue
            _note_unsupported(element)
            if included.tag == "model":
                with self._files.entered(included.file):
                    found.append(self._added(self._model(included, element.string("name") or included.name), element, scope))
            elif included.tag == "actor":
                self._read_actor(included, scope, element)
        return found

    def _added(self, model: _Model, placing: Element, scope: Scope) -> _Model:
        """Add the model as a frame of its parent. ``placing`` contains its pose: itself, or the ``<include>``."""
        posed = placing if placing.child("pose") is not None else model.element
        pose, parent = posed.pose(), relative_to(posed, scope.root)
        placement = placing.string("placement_frame") or model.element.attributes.get("placement_frame", "")
        if placement:
            pose = pose @ model.scope.pose_of(placement, placing).inverse()
        if placing.tag == "include" and placing.attributes.get("merge", "").lower() in {"true", "1"}:
            model.is_merged, model.frame = True, f"_merged__{model.name}__model__"
            scope.merge(model.scope, model.frame, placing, pose, parent)
        elif not model.name or model.name in scope.frames:
            placing.fault(f'name of a model must be given and no other\'s beside it, got "{shown(model.name)}"')
        else:
            model.frame = model.name
            scope.frames[model.name] = Frame(element=placing, pose=pose, relative_to=parent, scope=model.scope)
        return model

    def _pose_in(self, scope: Scope, model: _Model) -> Pose:
        return scope.pose_of(model.frame, model.element)

    def _model(self, element: Element, name: str) -> _Model:
        """Model with its frames; ``name`` is its name in its parent."""
        scope = Scope()
        self._depth += 1
        SDF_DEPTH.enforce(self._depth, element.where, AssetError, "nesting of models")
        nested = self._models_of(element, scope)
        self._depth -= 1
        for link in element.all("link"):
            scope.add(link, Frame(element=link, pose=link.pose(), relative_to=relative_to(link, ROOT)))
        for joint in element.all("joint"):
            child = joint.string("child")
            scope.add(joint, Frame(element=joint, pose=joint.pose(), relative_to=relative_to(joint, child if child and child != WORLD else ROOT)))
        for frame in element.all("frame"):
            scope.add(frame, Frame(element=frame, pose=frame.pose(), relative_to=relative_to(frame, frame.attributes.get("attached_to", "") or ROOT)))
        return _Model(element=element, name=name, scope=scope, nested=nested)

    # -- contents ----------------------------------------------------------------------------------------------------------------------

    def _gather(self, model: _Model, pose: Pose, prefix: str) -> None:
        """Collect the contents of a model at ``pose`` in the world."""
        scoped = prefix.removesuffix(SEPARATOR) if model.is_merged else f"{prefix}{model.name}"
        _note_unsupported(model.element)
        if model.element.tag == "model" and not model.is_merged:
            self._models.append(SdfModel(name=scoped, pose=pose))
        for link in model.element.all("link"):
            self._gather_link(link, model, pose, f"{scoped}{SEPARATOR}{link.name}")
        for nested in model.nested:
            self._gather(nested, pose @ self._pose_in(model.scope, nested), f"{scoped}{SEPARATOR}" if scoped else "")

    def _gather_link(self, link: Element, model: _Model, pose: Pose, scoped: str) -> None:
        of_link = pose @ model.scope.pose_of(link.name, link) if link.name in model.scope.frames else pose
        _note_unsupported(link)
        for tag, found in (("collision", self._collisions), ("visual", self._visuals)):
            for holder in link.all(tag):
                _note_unsupported(holder)
                at = self._at(holder, link, model, pose, of_link)
                shape = read_shape(holder, f"{scoped}{SEPARATOR}{holder.name}", at, self._files.look_for)
                if shape is not None:
                    found.append(shape)
        for sensor in link.all("sensor"):
            _note_unsupported(sensor)
            name, kind = f"{scoped}{SEPARATOR}{sensor.name}", sensor.attributes.get("type", "")
            if kind not in LIDAR_TYPES:
                sensor.unsupported(f'sensor {name} of type "{kind}" is not supported')
                continue
            lidar = read_lidar(sensor, name, self._world, self._at(sensor, link, model, pose, of_link))
            if lidar is not None:
                self._lidars.append(lidar)

    def _at(self, element: Element, link: Element, model: _Model, pose: Pose, of_link: Pose) -> Pose:
        """Pose in the world of an element in a link."""
        parent = relative_to(element, link.name)
        return of_link @ element.pose() if parent == link.name else pose @ model.scope.placed(element, link.name)

    def _read_actor(self, actor: Element, scope: Scope, include: Element | None) -> None:
        placing = include if include is not None and include.child("pose") is not None else actor
        name = (include.string("name") if include is not None else "") or actor.name
        at = scope.placed(placing, scope.root)
        self._actors.append(read_actor(actor, name, at))
        collisions, visuals, lidars = len(self._collisions), len(self._visuals), len(self._lidars)
        self._gather(self._model(actor, name), at, "")
        if self._collisions[collisions:]:
            actor.unsupported(f"collisions of <actor> {name} are not detected by lidars, as in Gazebo: they are ignored")
            del self._collisions[collisions:]
        skin = actor.child("skin")
        if skin is not None:
            uri, scale = skin.string("filename"), skin.number("scale", 1.0)
            file, missing = self._files.look_for(skin, uri)
            if uri:
                self._visuals.append(
                    SdfShape(
                        name=skin_name(name),
                        kind="mesh",
                        pose=at,
                        uri=uri,
                        file=file,
                        missing=f"{skin.where}: {missing}" if missing else "",
                        scale=(scale,) * 3,
                        where=skin.where,
                    )
                )
        self._visuals[visuals:] = [replace(shape, actor=name) for shape in self._visuals[visuals:]]
        self._lidars[lidars:] = [replace(lidar, actor=name) for lidar in self._lidars[lidars:]]


def _note_unsupported(element: Element) -> None:
    for child in element.children:
        if child.tag == "plugin":
            name = shown(child.name or child.attributes.get("filename", "") or "without a name")
            child.findings.plugins.setdefault(child.file, {})[name, child.line] = None
        text = _UNSUPPORTED.get(child.tag)
        if text is not None:
            child.unsupported(text.format(name=f'"{child.name}"' if child.name else ""))


def read_actor(actor: Element, name: str, pose: Pose) -> SdfActor:
    """Read an actor with its trajectories.

    Args:
        actor: Element ``<actor>``.
        name: Name in the world.
        pose: Pose in the world.
    """
    script = actor.child("script")
    if script is None:
        return SdfActor(name=name, pose=pose, where=actor.where)
    delay_s = script.number("delay_start", 0.0)
    if not 0.0 <= delay_s * 1000.0 <= _LONGEST_MS:
        script.fault(f"<delay_start> must be 0 to {_LONGEST_MS / 1000.0:.0f} s, got {delay_s:g}")
        delay_s = 0.0
    return SdfActor(
        name=name,
        trajectories=tuple(_trajectory(each) for each in script.all("trajectory")),
        is_looped=script.boolean("loop", default=True),
        delay_s=delay_s,
        pose=pose,
        where=actor.where,
    )


def _trajectory(trajectory: Element) -> SdfTrajectory:
    """Waypoints by their times: of two with the same time the later one in the file is used."""
    found: dict[int, SdfWaypoint] = {}
    for waypoint in trajectory.all("waypoint"):
        time_s = waypoint.number("time", 0.0)
        if not abs(time_s) * 1000.0 <= _LONGEST_MS:
            waypoint.fault(f"<time> must be at most {_LONGEST_MS / 1000.0:.0f} s, got {time_s:g}")
            continue
        time_ms = int(time_s * 1000.0)
        if time_ms in found:
            waypoint.unsupported(f"a <waypoint> before is at the same millisecond, {time_ms / 1000.0:g} s: this one counts")
        found[time_ms] = SdfWaypoint(time_ms=time_ms, pose=waypoint.pose())
    text = trajectory.attributes.get("tension", "0")
    try:
        tension = float(text)
    except ValueError:
        tension = -1.0
    if not 0.0 <= tension <= 1.0:
        trajectory.fault(f'tension must be 0 to 1, got "{text[:30]}"')
    return SdfTrajectory(waypoints=tuple(found[time_ms] for time_ms in sorted(found)), tension=tension)
