"""Discovery of an Ouster by mDNS: ``ouster-cli discover`` finds the service ``_roger._tcp`` and asks the address over HTTP.

Source: ouster-sdk 1.0.1 (python/src/ouster/cli/plugins/discover.py and source_replay.py): kinds of services, names, and the keys of the text record.
"""

import importlib
import ipaddress
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from hilsim.errors import ConfigError
from hilsim.families.ouster.interface.state import ControlState

_SERVICE = "_roger._tcp.local."


def require_zeroconf() -> None:
    """Find out whether services can be announced.

    Raises:
        ConfigError: zeroconf is not installed.
    """
    try:
        importlib.import_module("zeroconf")
    except ImportError as error:
        raise ConfigError("sensor.web.discovery requires the package zeroconf (pip install 'hilsim-lidar[ouster]')") from error


@asynccontextmanager
async def announced(state: ControlState, address: str, port: int) -> AsyncIterator[None]:
    """Announce a sensor on the network of its address while the block runs.

    Raises:
        OSError: the address takes no multicast.
        ConfigError: another unit with this serial number is announced there.
    """
    from zeroconf import IPVersion, NonUniqueNameException  # noqa: PLC0415 - an extra
    from zeroconf.asyncio import AsyncServiceInfo, AsyncZeroconf  # noqa: PLC0415

    unit = state.unit
    service = AsyncServiceInfo(
        _SERVICE,
        f"Ouster Sensor {unit.serial}.{_SERVICE}",
        addresses=[ipaddress.IPv4Address(address).packed],
        port=port,
        properties={"sn": unit.serial, "pn": unit.prod_pn, "fw": unit.image_rev},
        server=f"os-{unit.serial}.local.",
    )
    responder = AsyncZeroconf(interfaces=[address], ip_version=IPVersion.V4Only)
    try:
        try:
            await (await responder.async_register_service(service))
        except NonUniqueNameException as error:
            raise ConfigError(f"serial must be that of no other sensor on the network of {address}, got {unit.serial}") from error
        try:
            yield
        finally:
            await (await responder.async_unregister_service(service))
    finally:
        await responder.async_close()
