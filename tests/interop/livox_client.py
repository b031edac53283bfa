"""Livox-SDK2, as py-livox2 brings it, as a host of sensors: steps from standard input, their results on standard output, both JSON.

It runs in the environment of the SDK, and imports nothing of hilsim. The extension module exports the SDK's functions of C, which say more than its Python ones.
"""

import ctypes
import itertools
import json
import os
import sys
import tempfile
import threading
import time

import livox_sdk

SDK = ctypes.CDLL(livox_sdk.__file__)
HEADER = 36
PACKET = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint8, ctypes.c_void_p, ctypes.c_void_p)
INFO = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
PUSH = ctypes.CFUNCTYPE(None, ctypes.c_uint32, ctypes.c_uint8, ctypes.c_char_p, ctypes.c_void_p)
ANSWER = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_uint32, ctypes.c_void_p, ctypes.c_void_p)
TIMEOUT_S = 60.0


def text(data):
    return data.split(b"\0")[0].decode()


class Host:
    """What the SDK calls back with, of the sensors with some addresses; others of the machine are found, too."""

    def __init__(self, config, addresses):
        self.addresses, self.found, self.points, self.imu, self.pushed, self.kept = addresses, {}, {}, {}, {}, []
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            json.dump(config, file)
            file.flush()
            SDK.SetLivoxLidarPointCloudCallBack(
                self.keep(PACKET(lambda handle, _type, packet, _client: self.take(self.points, handle, packet))), None
            )
            SDK.SetLivoxLidarImuDataCallback(self.keep(PACKET(lambda handle, _type, packet, _client: self.take(self.imu, handle, packet))), None)
            SDK.SetLivoxLidarInfoCallback(
                self.keep(PUSH(lambda handle, _type, info, _client: self.pushed.setdefault(handle, []).append(info.decode()))), None
            )
            SDK.SetLivoxLidarInfoChangeCallback(self.keep(INFO(self.change)), None)
            if not SDK.LivoxLidarSdkInit(file.name.encode(), b"", None):
                raise RuntimeError("the SDK must start")

    def keep(self, callback):
        self.kept.append(callback)
        return callback

    def change(self, handle, info, _client):
        data = ctypes.string_at(info, 33)
        if text(data[17:33]) in self.addresses:
            self.found[handle] = {"type": data[0], "serial": text(data[1:17]), "address": text(data[17:33])}

    @staticmethod
    def take(where, handle, packet):
        where.setdefault(handle, []).append(ctypes.string_at(packet, HEADER + 24))

    def ask(self, name, *arguments):
        """Status and answer of a function of the SDK for each sensor, by address."""
        answers = {}
        for handle, info in sorted(self.found.items()):
            answered = threading.Event()

            def take(status, _handle, response, _client, answered=answered, address=info["address"]):
                answers[address] = [status, ctypes.string_at(response, 3).hex() if response and status == 0 else ""]
                answered.set()

            getattr(SDK, name)(handle, *arguments, self.keep(ANSWER(take)), None)
            if not answered.wait(TIMEOUT_S):
                raise RuntimeError(f"{name} must be answered within {TIMEOUT_S} s")
        return answers

    def named(self, by_handle):
        return {info["address"]: by_handle.get(handle, []) for handle, info in self.found.items()}


def until(condition, what):
    deadline_s = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"{what} within {TIMEOUT_S} s")
        time.sleep(0.02)


def find(host):
    until(lambda: len(host.found) == len(host.addresses), f"{' and '.join(host.addresses)} must be found")
    return sorted(host.found.values(), key=lambda each: each["address"])


def stamp_ns(packet):
    return int.from_bytes(packet[28:36], "little")


def summary(packets):
    """Number, lengths, types and counters of packets, and the time from the first stamp to the last one."""
    counters = [int.from_bytes(packet[7:9], "little") for packet in packets]
    return {
        "packets": len(packets),
        "span_ns": stamp_ns(packets[-1]) - stamp_ns(packets[0]),
        "lengths": sorted({int.from_bytes(packet[1:3], "little") for packet in packets}),
        "counts": sorted({int.from_bytes(packet[5:7], "little") for packet in packets}),
        "types": sorted({packet[10] for packet in packets}),
        "lost": sum((after - before) % 65_536 - 1 for before, after in itertools.pairwise(counters)),
    }


def collect(host, seconds):
    """Summaries of points and of inertial packets of each sensor, over a time by stamps."""
    for kind in (host.points, host.imu):
        for packets in kind.values():
            packets.clear()

    def is_whole(packets):
        return len(packets) > 1 and stamp_ns(packets[-1]) - stamp_ns(packets[0]) >= seconds * 1e9

    until(lambda: all(is_whole(kind.get(handle, [])) for kind in (host.points, host.imu) for handle in host.found), "packets must come")
    points, imu = (host.named({handle: list(packets) for handle, packets in kind.items()}) for kind in (host.points, host.imu))
    return {address: {"points": summary(points[address]), "imu": summary(imu[address])} for address in points}


def push(host, number):
    for messages in host.pushed.values():
        messages.clear()
    until(lambda: all(len(host.pushed.get(handle, [])) >= number for handle in host.found), f"{number} push messages must come")
    return {address: json.loads(messages[-1]) for address, messages in host.named(host.pushed).items()}


def silence(host, seconds):
    """Numbers of packets within a time that begins a little later, for what is on its way to arrive."""
    time.sleep(0.2)
    before = counts(host)
    time.sleep(seconds)
    return [after - number for after, number in zip(counts(host), before, strict=True)]


def counts(host):
    return [sum(len(kind.get(handle, [])) for handle in host.found) for kind in (host.points, host.imu)]


STEPS = {
    "find": find,
    "collect": collect,
    "push": push,
    "silence": silence,
    "work_mode": lambda host, mode: host.ask("SetLivoxLidarWorkMode", mode),
    "data_type": lambda host, data_type: host.ask("SetLivoxLidarPclDataType", data_type),
    "imu": lambda host, on: host.ask("EnableLivoxLidarImuData" if on else "DisableLivoxLidarImuData"),
    "query": lambda host: host.ask("QueryLivoxLidarInternalInfo"),
    "reboot": lambda host: host.ask("LivoxLidarRequestReboot"),
}


def main():
    asked = json.load(sys.stdin)
    results, out = [], os.dup(1)
    os.dup2(2, 1)  # the SDK's log goes to standard output
    host = Host(asked["config"], asked["addresses"])
    for name, *arguments in asked["steps"]:
        try:
            results.append({"result": STEPS[name](host, *arguments)})
        except RuntimeError as error:
            results.append({"error": str(error)})
            break
    os.write(out, json.dumps(results).encode())
    os._exit(0)  # threads of the SDK are in callbacks


main()
