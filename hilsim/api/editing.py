"""Edit the scene of a rig, live or without a clock."""

from pathlib import Path

from hilsim.api.control import Control, connect
from hilsim.config.places import rig_path
from hilsim.editing.session import EditSession
from hilsim.editing.targets import ChangeTarget, DaemonTarget


def edit(rig: str | Path, target: ChangeTarget | Control | str | Path, *, directory: str | Path | None = None) -> EditSession:
    """Begin to edit the scene of a rig.

    Args:
        rig: Path of a rig file, or the name of a shipped rig.
        target: Daemon that runs the rig (a ``Control``, or the address that ``connect`` takes), or a ``ScriptTarget`` for a run without a clock.
        directory: Directory in which copies of the rig and scripts are saved; None: the rig's.

    Raises:
        AssetError: a file of the scene cannot be used.
        ConfigError: the rig is invalid.
        TransmitError: no daemon listens.
    """
    client = connect(target) if isinstance(target, str | Path) else target
    receiver = DaemonTarget(client) if isinstance(client, Control) else client
    return EditSession(rig_path(str(rig)), receiver, directory=None if directory is None else Path(directory))
