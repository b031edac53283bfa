"""Reads a background map's grey picture as another program would."""

import json

import numpy as np
from PIL import Image

from hilsim.background.files.bmp import read_picture, read_trailer
from hilsim.background.files.grey_scale import GreyScale


def read_grey(path):
    """Grey values ``uint8[rows, columns]``, row 0 the lowest, and their scale."""
    with Image.open(path) as image:
        assert image.mode == "L"
        pixels, text = np.asarray(image), image.info.get("hilsim-grey")
    if path.suffix == ".bmp":
        data = path.read_bytes()
        text = read_trailer(path, data, read_picture(path, data, bit_count=8).end)
    layout = json.loads(text)
    cells = pixels[: layout["rows"] * layout["row_pixels"]].reshape(layout["rows"], layout["row_pixels"], layout["columns"], layout["column_pixels"])
    grey = cells[:, 0, :, 0]
    assert (cells == grey[:, np.newaxis, :, np.newaxis]).all()
    return grey[::-1], GreyScale(near_m=layout["near_m"], far_m=layout["far_m"])
