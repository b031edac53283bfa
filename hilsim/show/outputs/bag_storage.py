"""Messages in the storage files of ROS 2 bags, SQLite and MCAP, read without the bag's ``metadata.yaml``, which a crash leaves out."""

import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

from hilsim.capture.mcap import is_whole, mcap_reader
from hilsim.errors import CaptureError, library_reads

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

STORAGES = (".db3", ".mcap")
"""Suffixes of storage files."""
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_MESSAGES = (
    "SELECT topics.name, topics.type, messages.timestamp, messages.data FROM messages JOIN topics ON topics.id = messages.topic_id "
    "ORDER BY messages.timestamp, messages.id"
)


class StoredMessage(NamedTuple):
    """A message of a bag.

    Attributes:
        topic: Topic.
        kind: Type, ``package/msg/Name``.
        time_ns: Time at which it was recorded.
        content: The message in CDR.
    """

    topic: str
    kind: str
    time_ns: int
    content: bytes


def storage_files(path: Path) -> list[Path]:
    """Storage files of a bag's folder in the order of their numbers, or the file itself."""
    return (
        [path]
        if path.is_file()
        else sorted((each for each in path.iterdir() if each.suffix in STORAGES), key=lambda each: (len(each.name), each.name))
    )


def lacks_index(path: Path) -> bool:
    """Whether a bag must be read by its storage files: it is one itself, has no metadata, or one of its files was cut."""
    return path.is_file() or not (path / "metadata.yaml").exists() or not all(map(is_whole, path.glob("*.mcap")))


def stored_messages(file: Path, note: Callable[[str], object]) -> Iterator[StoredMessage]:
    """Yield the messages of a storage file in the order of their times.

    Raises:
        CaptureError: it cannot be read.
        ConfigError: the package ``mcap`` is missing.
    """
    for topic, kind, time_ns, content in _of_mcap(file, note) if file.suffix == ".mcap" else _of_sqlite(file):
        yield StoredMessage(topic, kind, time_ns, zstd.decompress(content) if content.startswith(_ZSTD_MAGIC) else content)


def _of_mcap(file: Path, note: Callable[[str], object]) -> Iterator[tuple[str, str, int, bytes]]:
    with mcap_reader(file, "foxglove", note) as reader:
        for schema, channel, message in reader.iter_messages():
            if channel.message_encoding == "cdr" and schema is not None:
                yield channel.topic, schema.name, message.log_time, message.data


def _of_sqlite(file: Path) -> Iterator[tuple[str, str, int, bytes]]:
    with library_reads(f"{file}: cannot be read as a ROS bag", CaptureError, sqlite3.Error, zstd.ZstdError), closing(_opened(file)) as database:
        yield from database.execute(_MESSAGES)


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file.absolute()))}?mode=ro", uri=True)
