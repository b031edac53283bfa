"""The bytes of short streams of each model, pinned field by field: a change of any of them must be meant.

``HILSIM_WRITE_GOLDEN=1`` writes the digests anew; the diff is then reviewed field by field. Ranges are without noise on the walls of a room, so that they are the
same on every CPU.
"""

import json
import os
from pathlib import Path

import pytest

from hilsim.sensor.specs import ClockSetting
from tests.golden.test_golden_stream import digest
from tests.hesai_sensors import hesai, in_room, packets_of

DIGESTS = Path(__file__).with_name("hesai_stream.json")
PACKETS = 100
MODES = {"xt32": "dual", "xt16": "strongest", "xt32m": "dual", "qt64": "dual", "pandar40p": "strongest", "pandar64": "dual"}


def sensor(model):
    """A room, of whose walls the sensor sees those within 5 m."""
    clock = ClockSetting(offset_s=12.345678, oscillator_ppm=37.0)
    return in_room(spec=hesai(model, range_noise_m=0.0, range_max_m=5.0), clock=clock, phase_deg=10.0, return_mode=MODES[model])


def stream_digests():
    found = {}
    for model in MODES:
        lidar = sensor(model)
        packets = packets_of(lidar, 0, PACKETS)
        found |= {f"{model}.header": digest(packets["header"]), f"{model}.azimuth": digest(packets["blocks"]["azimuth"])}
        found |= {f"{model}.{field}": digest(packets["blocks"]["units"][field]) for field in packets["blocks"]["units"].dtype.names}
        found |= {f"{model}.{field}": digest(packets["tail"][field]) for field in packets["tail"].dtype.names}
        found[f"{model}.deadline_ns"] = digest(lidar.data_packets(0, PACKETS).deadline_ns)
    return found


def test_the_stream_has_its_golden_bytes_field_by_field():
    found = stream_digests()
    if os.environ.get("HILSIM_WRITE_GOLDEN"):
        DIGESTS.write_text(json.dumps(found, indent=2) + "\n")
        pytest.skip("golden digests written; review the diff")
    assert found == json.loads(DIGESTS.read_text())


@pytest.mark.parametrize("model", MODES)
def test_the_pinned_stretch_holds_returns_and_none(model):
    distance = packets_of(sensor(model), 0, PACKETS)["blocks"]["units"]["distance"]
    assert 0.1 < (distance == 0).mean() < 0.9
