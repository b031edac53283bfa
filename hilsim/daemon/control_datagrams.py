"""Commands by UDP, for what cannot open a Unix socket: one datagram a command, one datagram an answer (``hilsim.daemon.control`` lists them).

Served by asyncio-dgram on the daemon's event loop. Its queue has no bound, so nothing here makes a datagram wait: each is obeyed or refused at once, without
awaiting anything but the next one, and answers go out with the socket's own non-blocking send. What is refused is counted, and logged the first time.
"""

import asyncio
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import asyncio_dgram
import structlog

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control import obey
from hilsim.daemon.remote.allowance import Allowance
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError, TransmitError
from hilsim.limits import CONTROL_COMMANDS_A_SECOND, CONTROL_LINE_BYTES
from hilsim.telemetry.guarded import guarded
from hilsim.telemetry.readings import Refusal

if TYPE_CHECKING:
    from asyncio_dgram.aio import DatagramServer

log = structlog.get_logger("hilsim")

_LONGEST_ANSWER = 65_507
"""Bytes that a UDP datagram over IPv4 holds."""
_RECEIVE_BUFFER_BYTES = 65_536
"""What comes faster than it is read is lost in the kernel, not kept in memory."""


@dataclass(kw_only=True, eq=False)
class CommandPort:
    """Obeys datagrams.

    Attributes:
        running: That is commanded; its ``commands`` are counted here.
        peers: Addresses whose commands are obeyed; empty: any.
        now_s: A clock.
    """

    running: RunningRig
    peers: frozenset[str]
    now_s: Callable[[], float] = time.monotonic
    _allowance: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self._allowance = Allowance(most=CONTROL_COMMANDS_A_SECOND.bound, now_s=self.now_s)

    def answer(self, datagram: bytes, sender: str) -> bytes:
        """Execute the command of a datagram; returns the answer, empty if it gets none.

        Args:
            datagram: Its payload.
            sender: IPv4 address it came from.
        """
        if (reason := self._turned_away(datagram, sender)) is not None:
            return self._refuse(reason, sender)
        try:
            answer = obey(self.running, _line(datagram))
        except HilsimError as error:
            return self._refuse(Refusal.NOT_A_COMMAND, sender, str(error))
        self.running.commands.obeyed += 1
        reply = f"{answer}\n".encode()
        return (
            reply
            if len(reply) <= _LONGEST_ANSWER
            else _error(f"the answer has {len(reply)} bytes, more than a datagram holds: ask at the control socket")
        )

    def _turned_away(self, datagram: bytes, sender: str) -> Refusal | None:
        """Why a datagram is not even read, if so."""
        if self.peers and sender not in self.peers:
            return Refusal.STRANGER
        if not self._allowance.take():
            return Refusal.TOO_MANY
        return Refusal.TOO_LONG if len(datagram) > CONTROL_LINE_BYTES.bound else None

    def _refuse(self, reason: Refusal, sender: str, answer: str = "") -> bytes:
        """Count it; who does not keep to the rules gets no answer."""
        refused = self.running.commands.refused
        if not refused[reason]:
            advice = "further ones are counted only: hilsim_control_refused_commands_total"
            log.warning("control.datagram_refused", reason=reason.value, peer=sender, advice=advice)
        refused[reason] += 1
        return _error(answer) if answer else b""


def _line(datagram: bytes) -> str:
    """The command in a datagram, with an end of line or without.

    Raises:
        ConfigError: it is no text of one line.
    """
    line = datagram.decode("ascii", errors="replace").removesuffix("\n").removesuffix("\r")
    if not line.isascii() or not line.isprintable():
        raise ConfigError("a datagram must hold one command of printable ASCII")
    return line


def _error(text: str) -> bytes:
    return f"error: {text}\n".encode()


@asynccontextmanager
async def serve_datagrams(running: RunningRig, spec: ControlSpec) -> AsyncIterator[tuple[str, int] | None]:
    """Obey datagrams while the block runs; yields address and port, or None where the rig wants none.

    Raises:
        TransmitError: the port cannot be had.
    """
    if not spec.listen:
        yield None
        return
    host, port = spec.endpoint
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER_BYTES)
        listener.setblocking(False)  # noqa: FBT003 - its only argument
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise TransmitError(f"control.listen must be a free port of this host, got {spec.listen}: {error.strerror}") from error
    stream = await asyncio_dgram.from_socket(listener)
    served = CommandPort(running=running, peers=frozenset(spec.peers))
    task = asyncio.create_task(guarded("control", lambda: _serve(stream, listener, served)), name="control")
    address, bound = listener.getsockname()
    log.info("control.listening", address=f"udp:{address}:{bound}", peers=list(spec.peers))
    try:
        yield address, bound
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        stream.close()
        await asyncio.sleep(0)  # the transport closes its socket at the loop's next turn


async def _serve(stream: "DatagramServer", listener: socket.socket, port: CommandPort) -> None:
    while True:
        try:
            datagram, peer = await stream.recv()
        except OSError:
            continue  # network error of an answer that no process received
        answer = port.answer(datagram, str(peer[0]) if isinstance(peer, tuple) else "")
        if answer:
            with suppress(OSError):  # a full buffer, or a peer that has gone: it asks again
                listener.sendto(answer, peer)
