"""Limits of external input: every bound in one table.

A file of a few bytes may ask for any amount of memory or time; these bounds are what it gets. The readers take them from here and report which was exceeded, by what and where.
``docs/reference/limits.md`` has where each is asked, and why it is there and not elsewhere.
"""

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
    """

    subject: str
    bound: N
    unit: str = ""
    is_lower: bool = False

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


COORDINATE_M = Limit(subject="coordinate", bound=1e8, unit="m")
SIZE_M = Limit(subject="size", bound=1e-6, unit="m", is_lower=True)
EXTENT_M = Limit(subject="distance from the rest", bound=200_000.0, unit="m")
SCENE_TRIANGLES = Limit(subject="triangles", bound=16_000_000)
INJECTED_FAULTS = Limit(subject="faults that act or will", bound=256)
HELD_DATAGRAMS = Limit(subject="datagrams that faults of the network hold", bound=1024)
INSERTED_OBJECTS = Limit(subject="objects of a scene that is put into recorded points", bound=4096)
SHAPE_TRIANGLES = Limit(subject="triangles", bound=131_072)
SHAPES_TRIANGLES = Limit(subject="triangles of planes, boxes, cylinders and spheres together", bound=1_000_000)
CUT_PIECES = Limit(subject="pieces", bound=65_536)
TERRAIN_HEIGHTS = Limit(subject="heights", bound=2049 * 2049)
ASSET_FILE_BYTES = Limit(subject="size of the file", bound=2 << 30, unit="bytes")
LINE_BYTES = Limit(subject="length of a line", bound=1 << 20, unit="bytes")
FACE_CORNERS = Limit(subject="corners of a face", bound=10_000)
TRAJECTORY_POSES = Limit(subject="poses", bound=2_000_000)
JSON_NESTING = Limit(subject="nesting", bound=64, unit="levels")
JSON_VALUES = Limit(subject="values (commas and colons)", bound=2_000_000)
NODE_NESTING = Limit(subject="nodes below each other", bound=256, unit="levels")
DAE_NODES = Limit(subject="nodes of the scene", bound=100_000)
MAP_CELLS = Limit(subject="cells", bound=1 << 26)
MAP_METADATA_BYTES = Limit(subject="metadata", bound=1 << 24, unit="bytes")
TOML_FILE_BYTES = Limit(subject="size of the file", bound=1 << 20, unit="bytes")
TOML_NESTING = Limit(subject="nesting", bound=32, unit="levels")
TOML_ITEMS = Limit(subject="length of a list", bound=10_000)
TOML_TEXT = Limit(subject="length of a text", bound=4096, unit="characters")
TOML_DIGITS = Limit(subject="digits of a number", bound=64)
TOML_FAULTS = Limit(subject="faults", bound=100)
SENSORS = Limit(subject="sensors and replays", bound=64)
STAMP_NS = Limit(subject="distance of a time stamp from 1970", bound=1 << 62, unit="ns")
VERIFY_SENSORS = Limit(subject="sensors checked", bound=128)
VERIFY_WAITING = Limit(subject="packets waiting to be judged", bound=16_384)
INSPECT_FLOWS = Limit(subject="flows listed apart", bound=128)
SENSOR_METADATA_BYTES = Limit(subject="metadata of an Ouster sensor", bound=1 << 20, unit="bytes")
SDF_BYTES = Limit(subject="an SDF file", bound=64 << 20, unit="bytes")
SDF_ELEMENTS = Limit(subject="elements of an SDF file", bound=1_000_000)
SDF_DEPTH = Limit(subject="nesting of elements", bound=200)
SDF_INCLUDES = Limit(subject="files included", bound=10_000)
SDF_RAYS = Limit(subject="rays of a lidar's scan", bound=4_000_000)
MCAP_CHUNK_BYTES = Limit(subject="a chunk of an MCAP file", bound=512 << 20, unit="bytes")
STEPPED_POSES = Limit(subject="poses of one body in a step", bound=100)
MOVED_OBJECTS = Limit(subject="objects that another simulator moves", bound=1024)
SCRIPT_BYTES = Limit(subject="a script", bound=256_000_000, unit="bytes")
SCRIPT_CHANGES = Limit(subject="changes", bound=1_000_000)
VIEW_CLIENTS = Limit(subject="clients of the page", bound=16)
VIEW_MESSAGE_BYTES = Limit(subject="a message of a browser", bound=16 << 20, unit="bytes")
VIEW_MESSAGES_A_SECOND = Limit(subject="messages of a browser a second", bound=500)
VIEW_STALLED_S = Limit(subject="time in which a browser takes no message", bound=30.0, unit="s")
VIEW_POINTS = Limit(subject="points shown at a time", bound=300_000)
VIEW_TRIANGLES = Limit(subject="triangles of the shown scene", bound=1_000_000)
CONTROL_LINE_BYTES = Limit(subject="a command", bound=1024, unit="bytes")
SENSOR_FORM_BYTES = Limit(subject="a form", bound=4096, unit="bytes")
SENSOR_BODY_BYTES = Limit(subject="a request's body", bound=131_072, unit="bytes")
SENSOR_LINE_BYTES = Limit(subject="a line of commands", bound=8192, unit="bytes")
SENSOR_FRAME_BYTES = Limit(subject="payload of a command", bound=4096, unit="bytes")
SENSOR_CONNECTIONS = Limit(subject="connections for commands", bound=16)
SENSOR_WAITING_REQUESTS = Limit(subject="requests that wait for a Livox sensor", bound=64)
SENSOR_IDLE_S = Limit(subject="time between two commands", bound=60.0, unit="s")
NMEA_LINE_BYTES = Limit(subject="a line of a receiver", bound=1024, unit="bytes")
CONTROL_REQUEST_BYTES = Limit(subject="a request in JSON", bound=65_536, unit="bytes")
WAITING_CHANGES = Limit(subject="changes that wait for their rig times", bound=10_000)
UNANSWERED_CHANGES = Limit(subject="changes without an answer", bound=64)
CONTROL_COMMANDS_A_SECOND = Limit(subject="commands a second", bound=100)
CONTROL_REQUESTS_A_SECOND = Limit(subject="requests a second", bound=200)
EVENT_SHORTEST_S = Limit(subject="time between two events", bound=0.05, unit="s", is_lower=True)
EVENT_LONGEST_S = Limit(subject="time between two events", bound=60.0, unit="s")
SUBSCRIBER_STALLED_S = Limit(subject="time in which a subscriber reads nothing", bound=10.0, unit="s")
PACKET_STREAMS = Limit(subject="clients of the sent packets", bound=8)
VIEWED_SENSORS = Limit(subject="sensors whose packets a view decodes", bound=64)
PACKET_STREAM_BYTES = Limit(subject="packets that wait for a client", bound=8 << 20, unit="bytes")
CONNECTIONS = Limit(subject="connections at a time", bound=64)
TOKENLESS_STREAMS = Limit(subject="streams that wait for their token", bound=8)
REQUEST_S = Limit(subject="time for a request", bound=5.0, unit="s")
REQUEST_HEADER_BYTES = Limit(subject="a request's header", bound=8192, unit="bytes")
