"""What a Lantern says of itself to whoever connects to its TCP port: one line."""

import asyncio
from contextlib import AsyncExitStack

from hilsim.plugins import SensorInterface, ServedSensor


class Interface(SensorInterface):
    """One line of text for each connection."""

    def open(self) -> None:
        """Open the port."""
        self._port = self.listen(self.web.port)

    async def serve(self, stack: AsyncExitStack, sensor: ServedSensor) -> None:
        """Answer until the stack is closed."""
        self._model = sensor.setting.spec.model
        server = await asyncio.start_server(self._answer, sock=self._port)
        await stack.enter_async_context(server)

    async def _answer(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(f"{self._model} {self.spec.name}\n".encode())
        await writer.drain()
        writer.close()
