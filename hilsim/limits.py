"""Limits of external input: every bound in one table, with its reason.

A file of a few bytes may ask for any amount of memory or time; these bounds are what it gets. The readers take them from here and report which was exceeded, by what and where.
``docs/reference/limits.md`` is made from this table (``make docs``).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from hilsim.errors import HilsimError

N = TypeVar("N", int, float)


@dataclass(frozen=True, kw_only=True)
class Limit(Generic[N]):
    """A bound on one thing.

    Attributes:
        subject: Name of the bounded quantity in messages.
        bound: The largest value that is accepted; of a lower bound the smallest.
        unit: Unit of ``bound``; empty for a count.
        is_lower: Values must be at least ``bound``, not at most.
        applies_to: Scope of the limit: a kind of file or a part of the daemon.
        reason: Why there, and not elsewhere.
    """

    subject: str
    bound: N
    unit: str = ""
    is_lower: bool = False
    applies_to: str
    reason: str

    def holds(self, got: float) -> bool:
        """Whether a value is accepted; NaN never is."""
        return got >= self.bound if self.is_lower else got <= self.bound

    @property
    def text(self) -> str:
        """``16,000,000`` or ``5 s``, for people."""
        return _shown(self.bound, self.unit)

    def rule(self, got: float, subject: str = "") -> tuple[bool, str]:
        """``(holds, message)``, as ``hilsim.errors.require`` takes it; ``subject`` names the thing more closely."""
        least = "least" if self.is_lower else "most"
        return self.holds(got), f"{subject or self.subject} must be at {least} {self.text}, got {_shown(got, self.unit)}"

    def enforce(self, got: float, where: str, kind: type[HilsimError], subject: str = "") -> None:
        """Refuse what is beyond the bound.

        Args:
            got: The value.
            where: Start of the message, usually the file.
            kind: Type of the error.
            subject: Names the thing more closely.

        Raises:
            HilsimError: of that kind; the value is beyond the bound.
        """
        is_accepted, message = self.rule(got, subject)
        if not is_accepted:
            raise kind(f"{where}: {message}")


def _shown(value: float, unit: str) -> str:
    number = f"{value:,}" if isinstance(value, int) else f"{value:,.15g}" if abs(value) < 1e15 else f"{value:g}"
    return f"{number} {unit}" if unit else number


COORDINATE_M = Limit(
    subject="coordinate",
    bound=1e8,
    unit="m",
    applies_to="rigs, meshes, terrain, trajectories",
    reason="float64 still resolves 15 nm there, and UTM coordinates stay below 10,000 km",
)
SIZE_M = Limit(
    subject="size",
    bound=1e-6,
    unit="m",
    is_lower=True,
    applies_to="planes, boxes, cylinders, spheres of a rig",
    reason="areas are squares of sizes, and the scene's lattice is 0.03 mm wide: nothing smaller can be hit",
)
EXTENT_M = Limit(
    subject="distance from the rest",
    bound=200_000.0,
    unit="m",
    applies_to="each vertex of a mesh, each height of a terrain, about the median of all",
    reason="a vertex farther away is a stray one, and its triangles would be cut into pieces without end",
)
SCENE_TRIANGLES = Limit(
    subject="triangles",
    bound=16_000_000,
    applies_to="a mesh file, a whole scene",
    reason="building takes about 2 s and 0.3 GB a million",
)
SHAPE_TRIANGLES = Limit(
    subject="triangles",
    bound=131_072,
    applies_to="each cylinder or sphere of a rig (a larger `tolerance_m` needs fewer)",
    reason="a line of a rig must not cost more than a second",
)
SHAPES_TRIANGLES = Limit(
    subject="triangles of planes, boxes, cylinders and spheres together",
    bound=1_000_000,
    applies_to="a rig",
    reason="a rig of a few lines must not take more memory than a city's mesh",
)
CUT_PIECES = Limit(
    subject="pieces",
    bound=65_536,
    applies_to="triangles longer than 256 m, which are cut (or four times the scene's own triangles, where that is more)",
    reason="a plane of 30 km x 30 km needs that many; sensors see 300 m",
)
TERRAIN_HEIGHTS = Limit(
    subject="heights", bound=2049 * 2049, applies_to="PNG and GeoTIFF terrain, height maps of SDF files", reason="each gives two triangles"
)
ASSET_FILE_BYTES = Limit(
    subject="size of the file",
    bound=2 << 30,
    unit="bytes",
    applies_to="mesh, terrain, trajectory and background files",
    reason="they are read whole",
)
LINE_BYTES = Limit(
    subject="length of a line",
    bound=1 << 20,
    unit="bytes",
    applies_to="OBJ files",
    reason="a line is taken apart in memory; a polygon of 10,000 corners needs 0.3 MB",
)
FACE_CORNERS = Limit(
    subject="corners of a face",
    bound=10_000,
    applies_to="OBJ files",
    reason="a polygon becomes a fan of triangles, which is right for small convex ones only",
)
TRAJECTORY_POSES = Limit(subject="poses", bound=2_000_000, applies_to="trajectory files", reason="five hours at 100 Hz; a minute of reading")
JSON_NESTING = Limit(
    subject="nesting",
    bound=64,
    unit="levels",
    applies_to="glTF, GLB and background maps",
    reason="readers of JSON call themselves for each level",
)
JSON_VALUES = Limit(
    subject="values (commas and colons)",
    bound=2_000_000,
    applies_to="the JSON of glTF and GLB",
    reason="a mesh has some twenty; two millions are read in half a second",
)
NODE_NESTING = Limit(
    subject="nodes below each other",
    bound=256,
    unit="levels",
    applies_to="glTF and GLB",
    reason="skeletons have some twenty; a file whose nodes go round has no end",
)
DAE_NODES = Limit(
    subject="nodes of the scene",
    bound=100_000,
    applies_to="COLLADA, a node that stands in for another one as often as it does",
    reason="nodes that stand in for two each double at each level",
)
MAP_CELLS = Limit(
    subject="cells",
    bound=1 << 26,
    applies_to="background maps",
    reason="256 rows by 65,536 columns four times over, or 8192 by 8192",
)
MAP_METADATA_BYTES = Limit(
    subject="metadata",
    bound=1 << 24,
    unit="bytes",
    applies_to="background maps",
    reason="a list of 20,000 captures fits",
)
TOML_FILE_BYTES = Limit(subject="size of the file", bound=1 << 20, unit="bytes", applies_to="rigs and profiles", reason="people write them")
TOML_NESTING = Limit(
    subject="nesting",
    bound=32,
    unit="levels",
    applies_to="rigs and profiles: arrays, tables and dotted keys",
    reason="a rig needs 6; readers call themselves for each level",
)
TOML_ITEMS = Limit(
    subject="length of a list", bound=10_000, applies_to="rigs and profiles", reason="longer tracks and meshes have files of their own"
)
TOML_TEXT = Limit(subject="length of a text", bound=4096, unit="characters", applies_to="rigs and profiles", reason="Linux has no longer paths")
TOML_DIGITS = Limit(
    subject="digits of a number",
    bound=64,
    applies_to="rigs and profiles",
    reason="64-bit numbers have 20; reading takes the square of the digits in time",
)
TOML_FAULTS = Limit(
    subject="faults", bound=100, applies_to="rigs and profiles: how many are named at once", reason="a person mends no more in one go"
)
SENSORS = Limit(
    subject="sensors and replays",
    bound=64,
    applies_to="a rig",
    reason="each has threads of its own",
)
REPLAY_FLOWS = Limit(subject="flows", bound=256, applies_to="each capture that is replayed", reason="each has a socket and a ring")
LOOP_PASS_S = Limit(
    subject="a pass of a looped capture",
    bound=0.01,
    unit="s",
    is_lower=True,
    applies_to="looped replays, before `interval_scale` stretches them",
    reason="the file is opened again for each pass",
)
LOOP_RATE_HZ = Limit(
    subject="packets of a looped capture a second",
    bound=200_000.0,
    unit="Hz",
    applies_to="looped replays, before `interval_scale` stretches them",
    reason="ten times a VLS-128 in dual mode; a core reads and sends no more",
)
REPLAY_SPAN_NS = Limit(
    subject="distance of a packet from the replay's beginning",
    bound=1 << 61,
    unit="ns",
    applies_to="captures that are replayed, with `interval_scale` and `offset_s`",
    reason="73 years: a rig's time and the host's clock can be added to it",
)
STAMP_NS = Limit(
    subject="distance of a time stamp from 1970",
    bound=1 << 62,
    unit="ns",
    applies_to="captures that are replayed, trajectories",
    reason="146 years: sums of two such times are still 64-bit numbers",
)
VERIFY_SENSORS = Limit(
    subject="sensors checked",
    bound=128,
    applies_to="`hilsim verify`: packets of further source addresses are counted only",
    reason="each is judged apart, with 0.7 MB of histograms",
)
VERIFY_WAITING = Limit(
    subject="packets waiting to be judged",
    bound=16_384,
    applies_to="`hilsim verify`: then the sensor with the most is judged before its thousand is full",
    reason="they are held whole; 25 MB",
)
INSPECT_FLOWS = Limit(
    subject="flows listed apart", bound=128, applies_to="`hilsim inspect`: further ones are counted only", reason="a person reads the list"
)
SDF_BYTES = Limit(subject="an SDF file", bound=64 << 20, unit="bytes", applies_to="worlds and models", reason="Gazebo's largest example has 1 MB")
SDF_ELEMENTS = Limit(subject="elements of an SDF file", bound=1_000_000, applies_to="worlds and models", reason="they are held whole; 500 MB")
SDF_DEPTH = Limit(
    subject="nesting of elements", bound=200, applies_to="worlds and models", reason="models are read by functions that call themselves"
)
SDF_INCLUDES = Limit(
    subject="files included", bound=10_000, applies_to="worlds and models", reason="a model that includes two of its kind doubles at each level"
)
SDF_RAYS = Limit(subject="rays of a lidar's scan", bound=4_000_000, applies_to="worlds and models", reason="a scan's message has 100 MB")
ROVER_SCAN_POINTS = Limit(
    subject="points of a scan",
    bound=100_000,
    applies_to="files of rovers' scans",
    reason="1,000 chunks a cycle: more leave no time between two of them",
)
ROVER_LINE_BYTES = Limit(
    subject="a line",
    bound=16 << 20,
    unit="bytes",
    applies_to="files of rovers' scans",
    reason="100,000 points have 5 MB; a file without line ends has more",
)
CONTROL_LINE_BYTES = Limit(subject="a command", bound=1024, unit="bytes", applies_to="the control socket", reason="the longest command has 100")
CONTROL_COMMANDS_A_SECOND = Limit(
    subject="commands a second", bound=100, applies_to="the control port for datagrams", reason="a knob that is turned sends 30"
)
CONNECTIONS = Limit(subject="connections at a time", bound=64, applies_to="the metrics server", reason="a Prometheus needs one")
REQUEST_S = Limit(
    subject="time for a request",
    bound=5.0,
    unit="s",
    applies_to="the metrics server",
    reason="a client that sends its request by the byte holds a connection",
)
REQUEST_HEADER_BYTES = Limit(subject="a request's header", bound=8192, unit="bytes", applies_to="the metrics server", reason="a browser's has 1,000")


def limits() -> Iterator[Limit[int] | Limit[float]]:
    """Every bound, in the order of this module."""
    for value in globals().values():
        if isinstance(value, Limit):
            yield value


def limits_reference() -> str:
    """Markdown: the table of limits."""
    lines = [
        "# What hilsim accepts",
        "",
        "Generated by `make docs` from `hilsim/limits.py`. What goes beyond is refused in one sentence that names it; nothing is cut down in silence.",
        "",
        "| what | limit | where | why |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| {limit.subject} | at {'least' if limit.is_lower else 'most'} {limit.text} | {limit.applies_to} | {limit.reason} |" for limit in limits()
    ]
    return "\n".join(lines) + "\n"
