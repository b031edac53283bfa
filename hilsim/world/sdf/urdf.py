"""URDF robots as SDF models: every link at its joints' zero, with its collisions and visuals, and the sensors that ``<gazebo reference>`` adds to it."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

from hilsim.world.sdf.elements import Element, shown

_XACRO = "xacro:"
_VERSION = "1.12"


def as_model(robot: Element) -> Element:
    """Element ``<sdf>`` with the model of an element ``<robot>``."""
    if any(element.tag.startswith(_XACRO) for element in robot.walk()):
        robot.fault("must be plain URDF, got macros: expand them first (xacro FILE > robot.urdf)")
    links = {link.name: link for link in robot.all("link")}
    if not links:
        robot.fault("<robot> must have a <link>")
    placed: dict[str, Element] = {}
    for joint in robot.all("joint"):
        ends = [end.attributes.get("link", "") if (end := joint.child(tag)) is not None else "" for tag in ("parent", "child")]
        if not set(ends) <= set(links) or ends[1] in placed:
            joint.fault(f'<joint> must join two links of the robot, each the child of one joint, got "{shown(ends[0])}" and "{shown(ends[1])}"')
            continue
        placed[ends[1]] = _pose(joint, ends[0])
    model = _made(robot, "model", name=robot.name or "robot")
    for name, link in links.items():
        sensors = [sensor for extra in robot.all("gazebo") if extra.attributes.get("reference") == name for sensor in extra.all("sensor")]
        shapes = [*_shapes(link, "collision"), *_shapes(link, "visual")]
        model.children.append(_made(link, "link", *([placed[name]] if name in placed else []), *shapes, *sensors, name=name))
    return _made(robot, "sdf", model, version=_VERSION)


def _made(origin: Element, tag: str, *children: Element, text: str = "", **attributes: str) -> Element:
    return replace(origin, tag=tag, children=list(children), text=text, attributes=attributes)


def _pose(holder: Element, parent: str = "") -> Element:
    """Element ``<pose>`` of an element's ``<origin>``."""
    origin = holder.child("origin") or _made(holder, "origin")
    text = f"{origin.attributes.get('xyz', '0 0 0')} {origin.attributes.get('rpy', '0 0 0')}"
    return _made(origin, "pose", text=text, **({"relative_to": parent} if parent else {}))


def _shapes(link: Element, tag: str) -> Iterator[Element]:
    """Collisions or visuals of a link; those without a name are numbered."""
    names: Counter[str] = Counter()
    for holder in link.all(tag):
        name = holder.name or f"{link.name}_{tag}"
        names[name] += 1
        geometry = holder.child("geometry")
        shapes = [] if geometry is None else [_made(shape, shape.tag, *_values(shape)) for shape in geometry.children]
        yield _made(
            holder, tag, _pose(holder), _made(geometry or holder, "geometry", *shapes), name=name if names[name] == 1 else f"{name}_{names[name] - 1}"
        )


def _values(shape: Element) -> Iterator[Element]:
    """Attributes of a shape as SDF's children; a package is a directory above the file, or looked for as a model."""
    for name, value in shape.attributes.items():
        scheme, _, place = value.partition("://")
        package, _, rest = place.partition("/")
        home = next((folder for folder in shape.file.resolve().parents if folder.name == package), None)
        found = value if scheme != "package" else f"model://{place}" if home is None else str(home / rest)
        yield _made(shape, "uri", text=found) if name == "filename" else _made(shape, name, text=value)
