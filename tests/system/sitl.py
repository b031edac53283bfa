"""A peer at the JSON link that flies as ArduPilot's simulation would: by height alone, the four motors alike."""

import json
import socket
import struct
from contextlib import suppress

_MAGIC = 18458
_RATE_HZ = 400
_MAX_SENDS = 60
_LOW_US, _SPAN_US = 1000, 1000


class Sitl:
    """Sends servo packets and reads what is answered; its clock is the number of its frames."""

    def __init__(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.connect(("127.0.0.1", port))
        self.socket.settimeout(1.0)
        self.frame = 0
        self.heights_m = []

    def send(self, command):
        """The next frame with every motor at ``command``; returns the answer."""
        self.frame += 1
        self.last = self._packet(command)
        return self.exchange(self.last)

    def exchange(self, packet):
        """As ArduPilot's SIM_JSON does: a packet that is not answered within a second is sent again."""
        self._drain()
        for _ in range(_MAX_SENDS):
            self.socket.send(packet)
            with suppress(TimeoutError):
                return json.loads(self.socket.recv(4096))
        message = f"frame {self.frame} must be answered, got nothing in {_MAX_SENDS} s"
        raise TimeoutError(message)

    def _drain(self):
        """Throw away answers to what was sent again."""
        self.socket.settimeout(0.0)
        with suppress(BlockingIOError):
            while self.socket.recv(4096):
                pass
        self.socket.settimeout(1.0)

    def restart(self):
        """Its frames are counted from the beginning."""
        self.frame = 0
        self.heights_m = []

    def fly(self, seconds, target):
        """Be at the height that ``target`` gives for a time (s) above where it was first; returns the last answer."""
        hover, total, ground_m = 0.5, 0.0, None
        answer = self.send(0.0)
        for step in range(round(seconds * _RATE_HZ)):
            ground_m = -answer["position"][2] if ground_m is None else ground_m
            height_m, climb_mps = -answer["position"][2] - ground_m, -answer["velocity"][2]
            self.heights_m.append(height_m)
            wanted_m = target(step / _RATE_HZ)
            error_m = max(min(wanted_m - height_m, 1.0), -1.0)
            total = max(min(total + error_m / _RATE_HZ, 2.0), -2.0) if wanted_m > 0.0 else total
            command = hover + 0.25 * error_m - 0.2 * climb_mps + 0.12 * total
            answer = self.send(0.0 if wanted_m <= 0.0 and height_m < 0.05 else min(max(command, 0.0), 1.0))
        return answer

    def _packet(self, command):
        pwm = [round(_LOW_US + _SPAN_US * command)] * 4 + [0] * 12
        return struct.pack("<HHI16H", _MAGIC, _RATE_HZ, self.frame, *pwm)

    def close(self):
        self.socket.close()
