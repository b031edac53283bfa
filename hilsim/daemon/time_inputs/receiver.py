"""Bytes of a receiver: from a serial port, UDP datagrams to a port, or a TCP connection; opened again whenever they end."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from contextlib import closing

import asyncio_dgram
import structlog

from hilsim.config.tables.sensor import TimeInputSpec
from hilsim.errors import LinkError
from hilsim.limits import NMEA_LINE_BYTES
from hilsim.transmit.links.addresses import host_and_port
from hilsim.transmit.links.endpoints import SerialEndpoint
from hilsim.transmit.links.line import SerialSpec

log = structlog.get_logger("hilsim")

_RETRY_S = 0.5
_CHUNK_BYTES = 4096


async def receive_lines(sensor: str, spec: TimeInputSpec) -> AsyncIterator[bytes]:
    """Lines of the receiver of a sensor with their ends, as they come, for ever; what is longer than any sentence is left out.

    Each change of the connection is logged once.
    """
    problem = ""
    while True:
        try:
            async for line in _lines(sensor, spec):
                problem = ""
                yield line
            reason = "the other end has closed it"
        except (OSError, LinkError) as error:
            reason = (os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "") or str(error)
        if reason != problem:
            problem = reason
            log.warning("time_input.closed", sensor=sensor, nmea=spec.nmea, reason=reason)
        await asyncio.sleep(_RETRY_S)


async def _lines(sensor: str, spec: TimeInputSpec) -> AsyncIterator[bytes]:
    kind, _, address = spec.nmea.partition(":")
    chunks = _serial(spec) if spec.nmea.startswith("/") else _datagrams(address) if kind == "udp" else _stream(address)
    begun = b""
    is_open = False
    async for chunk in chunks:
        if not is_open:
            is_open = True
            log.info("time_input.received", sensor=sensor, nmea=spec.nmea)
        *lines, begun = (begun + chunk).split(b"\n")
        for line in lines:
            if len(line) < NMEA_LINE_BYTES.bound:
                yield line + b"\n"
        begun = begun[: NMEA_LINE_BYTES.bound]


async def _serial(spec: TimeInputSpec) -> AsyncIterator[bytes]:
    endpoint = SerialEndpoint(SerialSpec(port=spec.nmea, baud=spec.baud))
    with closing(endpoint):
        link = await endpoint.open()
        readable = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(link.descriptor, readable.set)
        try:
            while True:
                await readable.wait()
                readable.clear()
                chunk = os.read(link.descriptor, _CHUNK_BYTES)
                if not chunk:
                    raise OSError(errno.ENODEV, "the port has disappeared")
                yield chunk
        finally:
            loop.remove_reader(link.descriptor)


async def _datagrams(address: str) -> AsyncIterator[bytes]:
    stream = await asyncio_dgram.bind(host_and_port(address))
    with closing(stream):
        while True:
            datagram, _ = await stream.recv()
            yield datagram if datagram.endswith(b"\n") else datagram + b"\n"


async def _stream(address: str) -> AsyncIterator[bytes]:
    reader, writer = await asyncio.open_connection(*host_and_port(address))
    with closing(writer):
        while chunk := await reader.read(_CHUNK_BYTES):
            yield chunk
