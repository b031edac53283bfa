"""hilsim stands in for real lidars on a test bench.

The names below are for everybody, and stay: docs/reference/python-api.md. What they are made of is imported when one is first asked for.
"""

from typing import TYPE_CHECKING

from hilsim.lazy_imports import lazy_names
from hilsim.version import __version__ as __version__

if TYPE_CHECKING:
    from hilsim.api.control import ChangeTimes, Control, DaemonFault, DaemonHealth, DaemonStatus, ReplayStatus, connect
    from hilsim.api.daemon import Daemon, DaemonError, RunningSensor
    from hilsim.api.decoding import decode
    from hilsim.api.editing import edit
    from hilsim.api.emulator import Emulator
    from hilsim.api.metrics import Metrics
    from hilsim.api.packet import Packet, read_capture
    from hilsim.api.points import Scan
    from hilsim.api.recording import record
    from hilsim.api.replaying import ReplayReport, replay_capture
    from hilsim.api.rigs import load_rig
    from hilsim.api.stepping import HIT_DTYPE, Step
    from hilsim.api.verification import VerifyReport, verify
    from hilsim.config.rig import Rig
    from hilsim.editing.routes import Snap
    from hilsim.editing.session import EditSession
    from hilsim.editing.targets import ScriptTarget
    from hilsim.errors import AssetError, CaptureError, ConfigError, HilsimError, LinkError, PacketError, TransmitError
    from hilsim.offline.snapshot import Motion, ObjectClass, TrackedObject
    from hilsim.read.scans.points import POINT_DTYPE

__all__ = [
    "HIT_DTYPE",
    "POINT_DTYPE",
    "AssetError",
    "CaptureError",
    "ChangeTimes",
    "ConfigError",
    "Control",
    "Daemon",
    "DaemonError",
    "DaemonFault",
    "DaemonHealth",
    "DaemonStatus",
    "EditSession",
    "Emulator",
    "HilsimError",
    "LinkError",
    "Metrics",
    "Motion",
    "ObjectClass",
    "Packet",
    "PacketError",
    "ReplayReport",
    "ReplayStatus",
    "Rig",
    "RunningSensor",
    "Scan",
    "ScriptTarget",
    "Snap",
    "Step",
    "TrackedObject",
    "TransmitError",
    "VerifyReport",
    "connect",
    "decode",
    "edit",
    "load_rig",
    "read_capture",
    "record",
    "replay_capture",
    "verify",
]

_HOMES = {
    "HIT_DTYPE": "hilsim.api.stepping",
    "POINT_DTYPE": "hilsim.read.scans.points",
    "AssetError": "hilsim.errors",
    "CaptureError": "hilsim.errors",
    "ChangeTimes": "hilsim.api.control",
    "ConfigError": "hilsim.errors",
    "Control": "hilsim.api.control",
    "Daemon": "hilsim.api.daemon",
    "DaemonError": "hilsim.api.daemon",
    "DaemonFault": "hilsim.api.control",
    "DaemonHealth": "hilsim.api.control",
    "DaemonStatus": "hilsim.api.control",
    "EditSession": "hilsim.editing.session",
    "Emulator": "hilsim.api.emulator",
    "HilsimError": "hilsim.errors",
    "LinkError": "hilsim.errors",
    "Metrics": "hilsim.api.metrics",
    "Motion": "hilsim.offline.snapshot",
    "ObjectClass": "hilsim.offline.snapshot",
    "Packet": "hilsim.api.packet",
    "PacketError": "hilsim.errors",
    "ReplayReport": "hilsim.api.replaying",
    "ReplayStatus": "hilsim.api.control",
    "Rig": "hilsim.config.rig",
    "RunningSensor": "hilsim.api.daemon",
    "Scan": "hilsim.api.points",
    "ScriptTarget": "hilsim.editing.targets",
    "Snap": "hilsim.editing.routes",
    "Step": "hilsim.api.stepping",
    "TrackedObject": "hilsim.offline.snapshot",
    "TransmitError": "hilsim.errors",
    "VerifyReport": "hilsim.api.verification",
    "connect": "hilsim.api.control",
    "decode": "hilsim.api.decoding",
    "edit": "hilsim.api.editing",
    "load_rig": "hilsim.api.rigs",
    "read_capture": "hilsim.api.packet",
    "record": "hilsim.api.recording",
    "replay_capture": "hilsim.api.replaying",
    "verify": "hilsim.api.verification",
}

__getattr__, __dir__ = lazy_names(__name__, _HOMES, "__version__")
