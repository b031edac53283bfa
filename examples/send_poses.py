"""Move hilsim's platform along a circle, 100 poses a second: python send_poses.py [PORT [SECONDS]]. The rig has ``[platform] kind = "external"``.

A sender needs no hilsim: a message is 32 bytes of header and 96 bytes for each pose (docs/reference/external-poses.md, hilsim_poses.h for C).
"""

import math
import socket
import struct
import sys
import time

HEADER, POSE = struct.Struct("<4sBBHIIIIq"), struct.Struct("<II3d4d3f3f8x")
port, seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 2400, float(sys.argv[2]) if len(sys.argv) > 2 else 3.0
speed_mps, radius_m, count = 5.0, 20.0, int(100 * seconds)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
    for number in range(count):
        time_ns = time.monotonic_ns()
        angle = speed_mps / radius_m * time_ns * 1e-9
        along, aside, half = math.cos(angle), math.sin(angle), 0.5 * (angle + 0.5 * math.pi)
        position_m, orientation = (radius_m * along, radius_m * aside, 1.5), (math.cos(half), 0.0, 0.0, math.sin(half))
        velocity_mps, rates_radps = (-speed_mps * aside, speed_mps * along, 0.0), (0.0, 0.0, speed_mps / radius_m)
        header = HEADER.pack(b"HSXP", 1, 1, 1, 7, number, 0, 0, time_ns)  # version 1, kind 1: poses, one record, from sender 7
        link.sendto(header + POSE.pack(0, 3, *position_m, *orientation, *velocity_mps, *rates_radps), ("127.0.0.1", port))
        time.sleep(0.01)
print(f"sent {count} poses to 127.0.0.1:{port}")
