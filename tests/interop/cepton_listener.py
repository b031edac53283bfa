"""Counts the points that the vendor's SDK decodes, from a file or live; a process of its own, because the SDK is one per process and not ours to trust.

python cepton_listener.py file CAPTURE | live PORT    (live: until standard input ends)
"""

import ctypes
import json
import sys
from ipaddress import IPv4Address

from cepton_sdk2 import c


def main():
    kind, argument = sys.argv[1:]
    counts = {}

    def count(handle, _stamp_us, points, _stride, _data, _user):
        counts[handle] = counts.get(handle, 0) + points

    on_error = c.SensorErrorCallback(lambda *_: None)
    on_points = c.PointsCallback(count)
    assert c.Initialize(c.CEPTON_API_VERSION, on_error) >= 0
    c.EnableLegacyTranslation()
    assert c.ListenPoints(on_points, None) >= 0
    if kind == "file":
        handle = c.ReplayHandle()
        assert c.ReplayLoadPcap(argument.encode(), 4, ctypes.byref(handle)) >= 0  # 4: paused
        assert c.ReplayPlayToFinish(handle) >= 0
    else:
        assert c.StartNetworkingOnPort(ctypes.c_uint16(int(argument))) >= 0
        sys.stdout.write("listening\n")
        sys.stdout.flush()
        sys.stdin.read()
        c.StopNetworking()
    c.UnlistenPoints(on_points, None)
    sys.stdout.write(json.dumps({str(IPv4Address(handle)): points for handle, points in counts.items()}) + "\n")


main()
