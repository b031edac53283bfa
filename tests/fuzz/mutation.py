"""Ways to corrupt bytes: of any file, of text with numbers, and of files whose checksums and containers must stay sound to get past the door."""

import io
import json
import re
import struct
import zipfile
import zlib
from collections.abc import Callable
from random import Random

Mutate = Callable[[Random, list[bytes]], bytes]

_SIZES = (1, 2, 4, 8)
_NASTY = (0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0x8000, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, (1 << 63) - 1, 1 << 63, (1 << 64) - 1, 1 << 40)
_NUMBERS = [
    "0",
    "-1",
    "1e308",
    "-1e308",
    "1e-300",
    "nan",
    "inf",
    "99999999999999999999",
    "1" * 4400,
    "0.1e-400",
    "6.6e6",
    "1e9",
    "2147483648",
    "-0",
    ".",
    "1_0",
]
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")
_WORD = re.compile(rb"[A-Za-z_][A-Za-z_0-9]*")
_PIECES = (
    b"[" * 2000,
    b"{" * 2000,
    b'"',
    b"\\",
    b"\0",
    b"\n",
    b"\xff\xfe",
    "…".encode(),
    b"a" * 5000,
    b"a." * 2000,
    b"'''",
    b"#",
    b"%s",
    b"../" * 40,
    b"\r",
    b" ",
)


def spoil_bytes(random: Random, corpus: list[bytes]) -> bytes:
    """One to a few changes anywhere."""
    data = bytearray(random.choice(corpus))
    for _ in range(random.choice((1, 1, 1, 2, 3, 8))):
        at = random.randrange(len(data) + 1)
        match random.randrange(8):
            case 0 if at < len(data):
                data[at] ^= 1 << random.randrange(8)
            case 1:
                size = random.choice(_SIZES)
                data[at : at + size] = (random.choice(_NASTY) % (1 << 8 * size)).to_bytes(size, random.choice(("little", "big")))
            case 2:
                del data[at:]
            case 3:
                del data[at : at + random.choice((1, 4, 16, 100))]
            case 4:
                piece = data[at : at + random.choice((1, 4, 16, 100, 1000))]
                data[at:at] = piece * random.choice((1, 2, 30))
            case 5:
                other = random.choice(corpus)
                data[at:] = other[random.randrange(len(other) + 1) :]
            case 6:
                data[at : at + 16] = random.randbytes(16)
            case _:
                data[at:at] = random.choice(_PIECES)
        data = data[: 1 << 20]
    return bytes(data)


def spoil_text(random: Random, corpus: list[bytes]) -> bytes:
    """Numbers and words replaced, lines doubled, moved and left out; now and then bytes."""
    if random.random() < 0.3:
        return spoil_bytes(random, corpus)
    data = random.choice(corpus)
    for _ in range(random.choice((1, 1, 2, 4))):
        lines = data.split(b"\n")
        row = random.randrange(len(lines))
        match random.randrange(6):
            case 0 | 1:
                data = _replaced(random, data, _NUMBER, [number.encode() for number in _NUMBERS])
            case 2:
                data = _replaced(random, data, _WORD, [match[0] for match in _WORD.finditer(random.choice(corpus))] or [b"x"])
            case 3:
                lines[row:row] = [lines[row]] * random.choice((1, 2, 300))
                data = b"\n".join(lines)
            case 4:
                del lines[row : row + random.choice((1, 3))]
                data = b"\n".join(lines)
            case _:
                lines[row] = lines[random.randrange(len(lines))] + lines[row] * random.choice((1, 50))
                data = b"\n".join(lines)
        data = data[: 1 << 20]
    return data


def _replaced(random: Random, data: bytes, pattern: re.Pattern[bytes], choices: list[bytes]) -> bytes:
    found = list(pattern.finditer(data))
    if not found:
        return data
    match = random.choice(found)
    return data[: match.start()] + random.choice(choices) + data[match.end() :]


def spoil_json(random: Random, corpus: list[bytes]) -> bytes:
    """A value of the document replaced, doubled or taken out; now and then text."""
    if random.random() < 0.4:
        return spoil_text(random, corpus)
    document = json.loads(random.choice(corpus))
    for _ in range(random.choice((1, 1, 2))):
        places = list(_places(document))
        holder, key = random.choice(places)
        match random.randrange(4):
            case 0:
                holder[key] = random.choice((None, True, -1, 0, 1 << 40, 1e308, "", "a" * 300, [], {}, [[]], {"uri": "data:,"}))
            case 1 if isinstance(holder[key], list):
                holder[key] = holder[key] * random.choice((0, 2, 1000))
            case 2 if isinstance(holder, dict):
                del holder[key]
            case _:
                other, name = random.choice(list(_places(document)))
                holder[key] = json.loads(json.dumps(other[name]))
    return json.dumps(document).encode()


def _places(node: object) -> list[tuple[object, object]]:
    found: list[tuple[object, object]] = []
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        found.append((node, key))
        found += _places(value)
    return found


def spoil_glb(random: Random, corpus: list[bytes]) -> bytes:
    """The JSON chunk corrupted and put back with sizes that fit."""
    if random.random() < 0.3:
        return spoil_bytes(random, corpus)
    data = random.choice(corpus)
    (size,) = struct.unpack_from("<I", data, 12)
    text = spoil_json(random, [data[20 : 20 + size]])
    text += b" " * (-len(text) % 4)
    rest = data[20 + size :]
    return b"glTF" + struct.pack("<II", 2, 20 + len(text) + len(rest)) + struct.pack("<I4s", len(text), b"JSON") + text + rest


def spoil_npz(random: Random, corpus: list[bytes]) -> bytes:
    """Members corrupted and packed anew, so that checksums are sound."""
    if random.random() < 0.3:
        return spoil_bytes(random, corpus)
    with zipfile.ZipFile(io.BytesIO(random.choice(corpus))) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = random.choice(list(members))
    how = spoil_text if random.random() < 0.5 else spoil_bytes
    members[name] = how(random, [members[name][:128]]) + members[name][128:] if random.random() < 0.5 else how(random, [members[name]])
    if random.random() < 0.1:
        members[name.removesuffix(".npy")] = members.pop(name)
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", random.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2))) as archive:
        for known, content in members.items():
            archive.writestr(known, content)
    return whole.getvalue()


def spoil_mcap(random: Random, corpus: list[bytes]) -> bytes:
    """One to three records corrupted, doubled or taken out, with lengths that fit; now and then bytes."""
    if random.random() < 0.4:
        return spoil_bytes(random, corpus)
    whole, records, at = random.choice(corpus), [], 8
    while at + 17 <= len(whole):
        kind, size = struct.unpack_from("<BQ", whole, at)
        records.append((kind, whole[at + 9 : at + 9 + size]))
        at += 9 + size
    for _ in range(random.choice((1, 1, 3))):
        row = random.randrange(len(records))
        match random.randrange(6):
            case 0:
                records[row:row] = [random.choice(records)] * random.choice((1, 30))
            case 1 if len(records) > 1:
                del records[row]
            case _:
                records[row] = (records[row][0], spoil_bytes(random, [records[row][1]]))
    return whole[:8] + b"".join(struct.pack("<BQ", kind, len(body)) + body for kind, body in records) + whole[:8]


def spoil_capture(random: Random, corpus: list[bytes]) -> bytes:
    """Packets corrupted, moved, doubled and given other times, in records that are sound; now and then bytes, and packed with gzip."""
    if random.random() < 0.3:
        data = spoil_bytes(random, corpus)
    else:
        whole = random.choice(corpus)
        head, records = whole[:24], _records(whole)
        for _ in range(random.choice((1, 2, 5))):
            if not records:
                break
            row = random.randrange(len(records))
            match random.randrange(5):
                case 0:
                    records[row] = (records[row][0], spoil_bytes(random, [records[row][1]])[:65535])
                case 1:
                    records[row] = (random.choice(_NASTY) % (1 << 64), records[row][1])
                case 2:
                    records[row:row] = [records[row]] * random.choice((1, 3, 40))
                case 3:
                    del records[row : row + random.choice((1, 5, 50))]
                case _:
                    frame = bytearray(records[row][1])
                    at = 42 + random.randrange(max(len(frame) - 42, 1))
                    frame[at : at + 4] = random.randbytes(4)
                    records[row] = (records[row][0], bytes(frame))
        data = head + b"".join(struct.pack("<QII", stamp, len(frame), len(frame)) + frame for stamp, frame in records)
    if random.random() < 0.1:
        data = bytearray(zlib.compress(data, wbits=31))
        if random.random() < 0.7:
            data[random.randrange(len(data))] ^= 0x10
    return bytes(data)


def _records(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 24
    while at + 16 <= len(data):
        stamp, size, _ = struct.unpack_from("<QII", data, at)
        found.append((stamp, data[at + 16 : at + 16 + size]))
        at += 16 + size
    return found
