"""Texts of replays for the terminal."""

from hilsim.parts.replays.reading import ReplayReading
from hilsim.transmit.specs import FrameSocketSpec, SocketSpec

_BAR_WIDTH = 12
_NAME_WIDTH = 16


def arrow(socket: SocketSpec | FrameSocketSpec) -> str:
    """Where the packets of a flow go to, and where they come from."""
    if isinstance(socket, FrameSocketSpec):
        return f"-> frames through {socket.interface}"
    return f"-> {socket.destination}:{socket.destination_port} from {socket.source}" + (f":{socket.source_port}" if socket.source_port else "")


def progress(replay: ReplayReading) -> str:
    """Bar and position of a replay."""
    done = round(replay.ratio * _BAR_WIDTH)
    state = "paused" if replay.is_paused else "ended" if replay.has_ended else f"{replay.position_s:.1f} s"
    loop = f" pass {replay.passes + 1}" if replay.passes else ""
    name = replay.replay if len(replay.replay) <= _NAME_WIDTH else f"{replay.replay[: _NAME_WIDTH - 1]}~"
    return f"{name} [{'#' * done}{'.' * (_BAR_WIDTH - done)}] {state}{loop}"
