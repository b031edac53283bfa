"""Load folders of ``hilsim export`` with the devkits of nuScenes and KITTI, and print what each reports; for ``bench_outputs.py folders``.

    python -m venv judges
    judges/bin/pip install nuscenes-devkit pykitti pyyaml && judges/bin/pip install --no-deps semantic-kitti-api
    judges/bin/python bench/outputs_judges.py FOLDER

FOLDER has ``nuscenes`` and ``kitti``. No part of hilsim is imported. Exit code 1 if a devkit refuses something.
"""

import contextlib
import io
import sys
import traceback
from pathlib import Path

import numpy as np


def judge_nuscenes(folder):
    """Tables, sweeps, labels and pictures by nuscenes-devkit, as its tutorial reads them."""
    import matplotlib as mpl  # noqa: PLC0415 - of the judges' environment

    mpl.use("Agg")
    from nuscenes.nuscenes import NuScenes  # noqa: PLC0415 - of the judges' environment
    from nuscenes.utils.data_classes import LidarPointCloud  # noqa: PLC0415 - of the judges' environment

    data = NuScenes(version="v1.0-mini", dataroot=str(folder), verbose=False)
    sample = data.get("sample", data.scene[0]["first_sample_token"])
    samples, points = 0, []
    while True:
        samples += 1
        row = data.get("sample_data", sample["data"]["LIDAR_TOP"])
        cloud = LidarPointCloud.from_file(str(folder / row["filename"]))
        labels = np.fromfile(folder / data.get("lidarseg", row["token"])["filename"], np.uint8)
        if labels.size != cloud.points.shape[1]:
            raise ValueError(f"{labels.size} labels of {cloud.points.shape[1]} points")
        points.append(labels.size)
        if not sample["next"]:
            break
        sample = data.get("sample", sample["next"])
    with contextlib.redirect_stdout(io.StringIO()):
        data.list_scenes()
    yield f"nuScenes: {len(data.scene)} scene of {samples} samples, {points} points"
    with contextlib.redirect_stdout(io.StringIO()):
        data.list_lidarseg_categories(sort_by="count")
    names = sorted({data.lidarseg_idx2name_mapping[number] for number in np.unique(labels).tolist()})
    yield f"nuScenes: classes of the last scan: {', '.join(names)}"
    merged, _ = LidarPointCloud.from_file_multisweep(data, sample, "LIDAR_TOP", "LIDAR_TOP", nsweeps=3)
    yield f"nuScenes: {merged.nbr_points()} points of three sweeps in one frame"
    token = data.sample[0]["data"]["LIDAR_TOP"]
    data.render_sample_data(token, underlay_map=False, show_lidarseg=True, out_path=str(folder / "picture.png"), verbose=False)
    yield "nuScenes: picture with labels drawn"


def judge_kitti(folder):
    """A sequence by pykitti: scans, times, calibration and poses."""
    import pykitti  # noqa: PLC0415 - of the judges' environment

    data = pykitti.odometry(str(folder), "00")
    scans = [scan.shape for scan in data.velo]
    yield f"pykitti: {len(data)} frames, scans {scans}, last time {data.timestamps[-1].total_seconds():.3f} s"
    if not len(data) == len(scans) == len(data.poses):
        raise ValueError(f"{len(data)} times, {len(scans)} scans, {len(data.poses)} poses")
    if not np.array_equal(data.calib.T_cam0_velo, np.eye(4)):
        raise ValueError(f"calibration {data.calib.T_cam0_velo}")
    yield f"pykitti: the sensor moved {np.linalg.norm(data.poses[-1][:3, 3]):.3f} m"


def judge_semantic_kitti(folder):
    """Scans and labels by semantic-kitti-api."""
    from auxiliary.laserscan import SemLaserScan  # noqa: PLC0415 - of the judges' environment

    found = SemLaserScan({number: (number, 0, 0) for number in range(260)}, project=True)
    sequence = folder / "sequences" / "00"
    for scan in sorted((sequence / "velodyne").glob("*.bin")):
        found.open_scan(str(scan))
        found.open_label(str(sequence / "labels" / f"{scan.stem}.label"))
        found.colorize()
    classes, counts = np.unique(found.sem_label, return_counts=True)
    yield f"semantic-kitti-api: classes of the last scan {dict(zip(classes.tolist(), counts.tolist(), strict=True))}"
    yield f"semantic-kitti-api: {np.unique(found.inst_label).size} instances, remission {found.remissions.min():.2f} to {found.remissions.max():.2f}"


def main():
    """Judge, and print each refusal."""
    folder, refused = Path(sys.argv[1]), 0
    for judge, part in ((judge_nuscenes, "nuscenes"), (judge_kitti, "kitti"), (judge_semantic_kitti, "kitti")):
        try:
            for line in judge(folder / part):
                print(line, flush=True)
        except Exception as error:  # noqa: BLE001 - each refusal is a result
            refused += 1
            print(f"{judge.__name__}: refused: {type(error).__name__}: {error} at {traceback.extract_tb(error.__traceback__)[-1].line}", flush=True)
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()
