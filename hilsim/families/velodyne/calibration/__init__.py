"""Figures of a unit, learned from captures of the still sensor: its lasers, its encoder, its clock; each figure with its samples, or the reason why it is not known."""

from hilsim.families.velodyne.calibration.calibrate import calibrate
from hilsim.families.velodyne.calibration.recording import read_recording
from hilsim.families.velodyne.calibration.report import render_lines, to_json, unit_toml
from hilsim.read.analysis.calibration import CalibrationPart

PART = CalibrationPart(
    read=lambda datagrams, name, sensor: read_recording(datagrams, name=name, sensor=sensor),
    model=lambda recording: recording.model.name,
    calibrate=calibrate,
    lines=render_lines,
    to_json=to_json,
    unit_toml=unit_toml,
)
