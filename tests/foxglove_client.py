"""A client of Foxglove's WebSocket, by its public protocol (foxglove.sdk.v1)."""

import asyncio
import base64
import contextlib
import json
import re
import struct
import time
from collections import defaultdict

import websockets
from google.protobuf.descriptor_pb2 import FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass

_AGAIN_S = 0.5
_SOURCE_PORT = re.compile(r"(?<=/packets/)\d+-")


def protobuf_of(name, schema, data):
    """A message by the schema (a ``FileDescriptorSet``) that comes with its channel."""
    pool = DescriptorPool()
    for file in FileDescriptorSet.FromString(schema).file:
        pool.Add(file)
    return GetMessageClass(pool.FindMessageTypeByName(name)).FromString(data)


class FoxgloveClient:
    """A subscriber of all channels, or of those with some topics.

    Topics of packets are without their source port, which may be any.

    Attributes:
        channels: Channels that the server has advertised, by topic.
        messages: Messages by topic, without the channel and the time.
    """

    def __init__(self, url, only=None):
        self.channels, self.messages = {}, defaultdict(list)
        self._connecting = websockets.connect(url, subprotocols=["foxglove.sdk.v1"], max_size=None)
        self._only, self._topics, self._asked_s, self._updates = only, {}, 0.0, []

    async def __aenter__(self):
        self._socket = await self._connecting
        return self

    async def __aexit__(self, *error):
        await self._socket.close()

    async def until(self, holds):
        """Take messages until something holds."""
        while not holds():
            with contextlib.suppress(TimeoutError):
                self._take(await asyncio.wait_for(self._socket.recv(), 1.0))
            if time.monotonic() > self._asked_s + _AGAIN_S:  # again: the server advertises a channel a moment before it accepts a subscription
                self._asked_s = time.monotonic()
                await self._subscribe()

    def scene(self):
        """The updates of the scene so far."""
        for data in self.messages["/scene"][len(self._updates) :]:
            channel = self.channels["/scene"]
            self._updates.append(protobuf_of(channel["schemaName"], base64.b64decode(channel["schema"]), data))
        return self._updates.copy()

    def _take(self, message):
        if isinstance(message, bytes):
            if message[0] == 1:
                self.messages[self._topics[struct.unpack("<I", message[1:5])[0]]].append(message[13:])
            return
        text = json.loads(message)
        for channel in text.get("channels", ()) if text["op"] == "advertise" else ():
            topic = _SOURCE_PORT.sub("", channel["topic"])
            self.channels[topic] = channel
            self._topics[channel["id"]] = topic

    async def _subscribe(self):
        missing = [
            {"id": number, "channelId": number}
            for number, topic in self._topics.items()
            if not self.messages[topic] and (self._only is None or topic in self._only)
        ]
        await self._socket.send(json.dumps({"op": "subscribe", "subscriptions": missing}))
