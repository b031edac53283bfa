"""Commands by UDP, for programs that cannot open a Unix socket: one datagram for each command and each answer, in words or in JSON (``grammar``).

asyncio-dgram receives them on the daemon's event loop. Its queue has no bound, so no datagram may wait: each is executed or refused at once, the only await
is for the next one, and answers are sent with the socket's own non-blocking send. Refused datagrams are counted, and the first one is logged.
"""

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import asyncio_dgram
import structlog

from hilsim.config.rig import ControlSpec
from hilsim.daemon.control.grammar import COMMANDS, in_words, is_json, parse_line
from hilsim.daemon.control.requests import answer_at_once, refusal
from hilsim.daemon.running_rig import RunningRig
from hilsim.errors import ConfigError, HilsimError, TransmitError
from hilsim.limits import CONTROL_COMMANDS_A_SECOND, CONTROL_LINE_BYTES
from hilsim.telemetry.allowance import Allowance
from hilsim.telemetry.guarded import guarded
from hilsim.telemetry.readings import Refusal

if TYPE_CHECKING:
    from asyncio_dgram.aio import DatagramServer

log = structlog.get_logger("hilsim")

_LONGEST_ANSWER = 65_507
"""Largest payload of a UDP datagram over IPv4, in bytes."""
_RECEIVE_BUFFER_BYTES = 65_536
"""Receive buffer; datagrams that arrive faster than they are read are dropped by the kernel, not stored in memory."""


@dataclass(kw_only=True, eq=False)
class CommandPort:
    """Port that executes commands from datagrams.

    Attributes:
        running: Rig that the commands control; its ``commands`` are counted here.
        peers: Addresses whose commands are executed; empty: any.
        now_s: Clock in seconds.
    """

    running: RunningRig
    peers: frozenset[str]
    now_s: Callable[[], float] = time.monotonic
    _allowance: Allowance = field(init=False)

    def __post_init__(self) -> None:
        self._allowance = Allowance(most=CONTROL_COMMANDS_A_SECOND.bound, now_s=self.now_s)

    def answer(self, datagram: bytes, sender: str) -> bytes:
        """Execute the command of a datagram; returns the answer, empty for none.

        Args:
            datagram: Payload of the datagram.
            sender: IPv4 address of the sender.
        """
        if (reason := self._turned_away(datagram, sender)) is not None:
            return self._refuse(reason, sender)
        write: Callable[[dict[str, Any]], str] = json.dumps if is_json(datagram.decode("latin-1")) else in_words
        try:
            answer = write(answer_at_once(self.running, _request(datagram)))
        except HilsimError as error:
            return self._refuse(Refusal.NOT_A_COMMAND, sender, write(refusal(str(error))))
        self.running.commands.obeyed += 1
        if len(answer) >= _LONGEST_ANSWER:
            answer = write(refusal(f"the answer has {len(answer) + 1} bytes, more than fit into a datagram: use the control socket"))
        return f"{answer}\n".encode()

    def _turned_away(self, datagram: bytes, sender: str) -> Refusal | None:
        """Reason to discard a datagram unread, or None."""
        if self.peers and sender not in self.peers:
            return Refusal.STRANGER
        if not self._allowance.take():
            return Refusal.TOO_MANY
        return Refusal.TOO_LONG if len(datagram) > CONTROL_LINE_BYTES.bound else None

    def _refuse(self, reason: Refusal, sender: str, answer: str = "") -> bytes:
        """Count a refused datagram; returns the answer, empty for a sender that breaks the rules."""
        refused = self.running.commands.refused
        if not refused[reason]:
            advice = "further ones are counted only: hilsim_control_refused_commands_total"
            log.warning("control.datagram_refused", reason=reason.value, peer=sender, advice=advice)
        refused[reason] += 1
        return f"{answer}\n".encode() if answer else b""


def _request(datagram: bytes) -> dict[str, Any]:
    """Request in a datagram, with or without an end of line.

    Raises:
        ConfigError: the datagram is not one line of text, or not a command.
    """
    line = datagram.decode("ascii", errors="replace").removesuffix("\n").removesuffix("\r")
    if not line.isascii() or not line.isprintable():
        raise ConfigError("a datagram must hold one command of printable ASCII")
    request = parse_line(line)
    if request.get("do") not in COMMANDS:
        raise ConfigError(f"do must be one of {', '.join(COMMANDS)} in a datagram, got {json.dumps(request.get('do'))[:60]}")
    return request


@asynccontextmanager
async def serve_datagrams(running: RunningRig, spec: ControlSpec) -> AsyncIterator[tuple[str, int] | None]:
    """Execute commands from datagrams while the block runs; yields address and port, or None if the rig has no such port.

    Raises:
        TransmitError: the port cannot be opened.
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
            continue  # network error because no process received an answer
        answer = port.answer(datagram, str(peer[0]) if isinstance(peer, tuple) else "")
        if answer:
            with suppress(OSError):  # a full buffer, or a peer that has ended: a client repeats its command
                listener.sendto(answer, peer)
