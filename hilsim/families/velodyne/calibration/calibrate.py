"""Learning of one unit from captures of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from hilsim.errors import CaptureError
from hilsim.families.velodyne.calibration.byte_noise import learn_byte_noise, learn_range_noise, repeats_of, without_ripple
from hilsim.families.velodyne.calibration.cells import cells_of, visits_of
from hilsim.families.velodyne.calibration.clock import learn_clock, learn_mac, learn_positions
from hilsim.families.velodyne.calibration.encoder import learn_encoder
from hilsim.families.velodyne.calibration.figures import Figure, Learned
from hilsim.families.velodyne.calibration.laser_bytes import learn_laser_bytes
from hilsim.families.velodyne.calibration.lasers import learn_lasers
from hilsim.families.velodyne.calibration.recording import Firings, Recording
from hilsim.families.velodyne.calibration.signal import learn_empty, learn_gains, learn_one_sided, learn_range_codes
from hilsim.families.velodyne.calibration.surfaces import rays_of
from hilsim.families.velodyne.specs import VelodyneSpec


@dataclass(frozen=True, kw_only=True)
class Calibration:
    """Figures of a unit, learned from captures."""

    recordings: Annotated[tuple[Recording, ...], "The recordings."]
    learned: Annotated[Learned, "Keys of the unit's file and figures of the report."]

    @property
    def model(self) -> str:
        """Name of the model."""
        return self.recordings[0].model.name

    @property
    def figures(self) -> list[Figure]:
        """Figures in the order of the report."""
        return self.learned.figures


def calibrate(recordings: Sequence[Recording], spec: VelodyneSpec) -> Calibration:
    """Learn a unit.

    Args:
        recordings: Captures of one sensor that stands still; it may stand elsewhere in each.
        spec: Specification of its model, for what captures do not show.

    Raises:
        CaptureError: the captures are of different models, too short, or the sensor moved.
    """
    models = sorted({recording.model.name for recording in recordings})
    if len(models) > 1:
        raise CaptureError(f"captures must be of one sensor, got those of a {' and a '.join(models)}")
    if models != [spec.model]:
        raise CaptureError(f"captures must be of a {spec.model}, got those of a {models[0]}")
    lasers = spec.laser_count
    learned = Learned(keys={"model": spec.model}, lasers=[{} for _ in range(lasers)])
    firings = [Firings(recording) for recording in recordings]
    codes = learn_range_codes(firings, learned)
    visits = without_ripple([visits_of(recording, of, codes) for recording, of in zip(recordings, firings, strict=True)], learned)
    learn_mac(recordings, learned)
    learn_clock(recordings, learned)
    learn_encoder(recordings, spec, learned)
    learn_positions(recordings, spec.position.latency_us, learned)
    learn_empty(firings, learned)
    learn_one_sided(recordings, learned)
    rays = [rays_of(cells_of(part, lasers), recording.model.geometry) for recording, part in zip(recordings, visits, strict=True)]
    planes = learn_lasers(rays, lasers, learned)
    repeats = repeats_of(visits)
    learn_range_noise(repeats, spec, learned)
    learn_byte_noise(repeats, learned)
    learn_laser_bytes(firings, repeats, learned)
    learn_gains(rays, planes, lasers, learned)
    return Calibration(recordings=tuple(recordings), learned=learned)
