"""Frames of a world or model: poses of its links, joints, frames and nested models (SDF's pose frame semantics).

A pose is relative to its ``relative_to``, or to the default of its kind: for a link, a joint's child, the model's own frame. An explicit frame may be attached to
another; by default it is attached to its model. Source: sdformat.org, "Pose frame semantics", SDF 1.7 and later; earlier files have the same defaults and no ``relative_to``.
"""

from dataclasses import dataclass, field

from hilsim.world.geometry.poses import Pose
from hilsim.world.sdf.elements import Element, row, shown

ROOT = "__model__"
WORLD = "world"
SEPARATOR = "::"
_SHOWN_NAMES = 10


class _FrameFaultError(Exception):
    """A frame cannot be found; caught within this module."""


@dataclass(kw_only=True, eq=False)
class Frame:
    """A frame: an element with a pose that other poses may be relative to.

    Attributes:
        element: Element of the frame.
        pose: Pose in the element.
        relative_to: Frame that the pose is relative to, in the same scope.
        scope: Scope of a nested model.
    """

    element: Element
    pose: Pose
    relative_to: str
    scope: "Scope | None" = None


@dataclass(kw_only=True, eq=False)
class Scope:
    """The frames of one model, or of the world, by name.

    Attributes:
        root: Name of the scope's own frame.
        frames: All other frames.
    """

    root: str = ROOT
    frames: dict[str, Frame] = field(default_factory=dict)
    _known: dict[str, Pose] = field(default_factory=dict)

    def add(self, element: Element, frame: Frame) -> None:
        """Add a frame under the element's name."""
        name = element.name
        if not name:
            element.fault(f"<{element.tag}> must have a name")
        elif name in self.frames or name in {ROOT, WORLD}:
            element.fault(f'name of <{element.tag}> must be no other\'s of the same model, got "{shown(name)}" once more')
        else:
            self.frames[name] = frame

    def merge(self, other: "Scope", root: str, element: Element, pose: Pose, parent: str) -> None:
        """Add the frames of a model that is merged into this one, with their poses in it.

        Args:
            other: Frames of the merged model.
            root: Name of its own frame in this scope.
            element: Element ``<include>``.
            pose: Pose of its own frame.
            parent: Frame that ``pose`` is relative to.
        """
        self.frames[root] = Frame(element=element, pose=pose, relative_to=parent)
        for name, frame in other.frames.items():
            if name in self.frames:
                element.fault(f'names of a model that is merged must not be there already, got "{shown(name)}"')
            else:
                self.frames[name] = Frame(element=frame.element, pose=other.pose_of(name, frame.element), relative_to=root, scope=frame.scope)

    def pose_of(self, name: str, asking: Element) -> Pose:
        """Pose of a frame in this scope's root; the root itself, with a fault of ``asking``, if it is unknown."""
        try:
            return self._resolved(name)
        except _FrameFaultError as error:
            asking.fault(str(error))
            return Pose()

    def placed(self, element: Element, default: str) -> Pose:
        """Pose of an element in this scope's root.

        Args:
            element: Element with the pose.
            default: Frame that its pose is relative to by default.
        """
        return self.pose_of(relative_to(element, default), element) @ element.pose()

    def _resolved(self, name: str) -> Pose:
        """Pose of a frame. Chains of frames are followed without recursion: they may be as long as the file."""
        waiting: dict[str, None] = {}
        while name not in self._known and name != self.root and name:
            if name in waiting:
                asked = list(waiting)
                circle = [*asked[asked.index(name) :], name]
                raise _FrameFaultError(f"frames must not be relative to each other in a circle, got {row(circle, ' -> ', _SHOWN_NAMES)}")
            waiting[name] = None
            name = self._before(name)
        for each in reversed(waiting):
            self._known[each] = self._known.get(name, Pose()) @ self._own(each)
            name = each
        return self._known.get(name, Pose())

    def _before(self, name: str) -> str:
        """The frame that another is relative to."""
        first, separator, _ = name.partition(SEPARATOR)
        frame = self.frames.get(first)
        if frame is None:
            raise _FrameFaultError(
                f'relative_to must name a frame of the same model ({row(list(self.frames), most=_SHOWN_NAMES) or "none"}), got "{shown(name)}"'
            )
        if not separator:
            return frame.relative_to
        if frame.scope is None:
            raise _FrameFaultError(f'relative_to must name a nested model before "::", got "{shown(name)}"')
        return first

    def _own(self, name: str) -> Pose:
        """Pose of a frame in the frame that it is relative to."""
        first, separator, rest = name.partition(SEPARATOR)
        frame = self.frames[first]
        return frame.scope._resolved(rest) if separator and frame.scope is not None else frame.pose  # noqa: SLF001 - of the same class


def relative_to(element: Element, default: str) -> str:
    """The frame that an element's pose is relative to."""
    pose = element.child("pose")
    return (pose.attributes.get("relative_to", "") if pose is not None else "") or default
