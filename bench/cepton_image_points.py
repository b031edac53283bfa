"""Image points of a Cepton capture of the older generation, as the vendor's first SDK decodes them; a process of its own, because the library is not ours to trust.

python bench/cepton_image_points.py CAPTURE OUT.npz    (arrays by source address; 32 bytes a point, see IMAGE_POINT_DTYPE of hilsim.families.cepton.background.stdt_library)
"""

import os
import sys
from pathlib import Path

import numpy as np

from hilsim.capture.pcap import CaptureFile
from hilsim.families.cepton.background.stdt_library import decode_image_points


def decode(path):
    """Points by source address, in the order of their measurement."""
    found = {}
    decode_image_points(CaptureFile(path), lambda address, points: found.setdefault(address, []).append(points))
    return {address: np.concatenate(pieces) for address, pieces in found.items()}


if __name__ == "__main__":
    np.savez(sys.argv[2], **decode(Path(sys.argv[1])))
    os._exit(0)  # the library aborts when a process ends in order
