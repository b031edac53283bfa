"""Frames of a world or model: where each link, joint, frame and nested model stands in it (SDF's pose frame semantics).

A pose is relative to its ``relative_to``, or to what its kind is relative to by default: a link, a joint's child, a model's own frame. An explicit frame may be attached to
another, without which it is attached to its model. Source: sdformat.org, "Pose frame semantics", SDF 1.7 and later; files before it have the same defaults and no ``relative_to``.
"""

from dataclasses import dataclass, field

from hilsim.geometry.poses import Pose
from hilsim.sdf.elements import Element

ROOT = "__model__"
WORLD = "world"
SEPARATOR = "::"


class _FrameFaultError(Exception):
    """A frame cannot be found; never leaves this module."""


@dataclass(kw_only=True, eq=False)
class Frame:
    """Something with a pose that others may be relative to.

    Attributes:
        element: What says so.
        pose: What it says.
        relative_to: Frame it is relative to, in the same scope.
        scope: Of a nested model, its own.
    """

    element: Element
    pose: Pose
    relative_to: str
    scope: "Scope | None" = None


@dataclass(kw_only=True, eq=False)
class Scope:
    """The frames of one model, or of the world, by name.

    Attributes:
        root: Name of its own frame.
        frames: All others.
    """

    root: str = ROOT
    frames: dict[str, Frame] = field(default_factory=dict)
    _known: dict[str, Pose] = field(default_factory=dict)
    _asked: list[str] = field(default_factory=list)

    def add(self, element: Element, frame: Frame) -> None:
        """Add a frame under the element's name."""
        name = element.name
        if not name:
            element.fault(f"<{element.tag}> must have a name")
        elif name in self.frames or name in {ROOT, WORLD}:
            element.fault(f'name of <{element.tag}> must be no other\'s of the same model, got "{name}" once more')
        else:
            self.frames[name] = frame

    def pose_of(self, name: str, asking: Element) -> Pose:
        """Where a frame stands in this scope's root; the root itself, with a fault of ``asking``, where that cannot be said."""
        try:
            return self._resolved(name)
        except _FrameFaultError as error:
            asking.fault(str(error))
            return Pose()

    def placed(self, element: Element, default: str) -> Pose:
        """Where an element with a pose stands in this scope's root.

        Args:
            element: It.
            default: Frame its pose is relative to where it does not say.
        """
        return self.pose_of(relative_to(element, default), element) @ element.pose()

    def _resolved(self, name: str) -> Pose:
        if name == self.root or not name:
            return Pose()
        if name not in self._known:
            if name in self._asked:
                raise _FrameFaultError(f"frames must not be relative to each other in a circle, got {' -> '.join((*self._asked, name))}")
            self._asked.append(name)
            try:
                self._known[name] = self._found(name)
            finally:
                self._asked.pop()
        return self._known[name]

    def _found(self, name: str) -> Pose:
        first, separator, rest = name.partition(SEPARATOR)
        frame = self.frames.get(first)
        if frame is None:
            known = ", ".join(self.frames) or "none"
            raise _FrameFaultError(f'relative_to must name a frame of the same model ({known}), got "{name}"')
        if not separator:
            return self._resolved(frame.relative_to) @ frame.pose
        if frame.scope is None:
            raise _FrameFaultError(f'relative_to must name a nested model before "::", got "{name}"')
        return self._resolved(first) @ frame.scope._resolved(rest)  # noqa: SLF001 - of the same class


def relative_to(element: Element, default: str) -> str:
    """The frame that an element's pose is relative to."""
    pose = element.child("pose")
    return (pose.attributes.get("relative_to", "") if pose is not None else "") or default
