"""A network of its own for each process of pytest-xdist, so that no two tests meet at a port."""

import ctypes
import shutil
import subprocess

_CLONE_NEWNET = 0x40000000
_SET_UP = (
    "link set lo up",
    "link add wire type veth peer name far",
    "address add 198.18.0.1/24 dev wire",
    "link set wire up",
    "link set far up",
    "route add default dev wire",
)


def enter():
    """Move this process into a new network with a loopback and a cable that ends nowhere; where that is not permitted, tests share the machine's."""
    if shutil.which("ip") is None or ctypes.CDLL(None).unshare(_CLONE_NEWNET) != 0:
        return
    for command in _SET_UP:
        subprocess.run(["ip", *command.split()], check=True)
