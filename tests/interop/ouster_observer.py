"""Run by ``ouster_judge`` with the Python of ouster-sdk's own environment: what that SDK reads of packets and metadata.

``ouster_observer.py QUESTIONS ANSWERS``: archives of NumPy. A question k has ``k.metadata`` (a text) and, where asked, ``k.lidar`` and ``k.imu``
(``uint8[n, size]``), and ``k.range`` (``uint32[channel, column]``, millimetres).
"""

import json
import sys

import numpy as np
from ouster.sdk.core import ColHeader, ImuPacket, PacketFormat, SensorInfo, XYZLut, parse_and_validate_metadata

HEADERS = (
    "packet_type",
    "frame_id",
    "init_id",
    "prod_sn",
    "alert_flags",
    "countdown_thermal_shutdown",
    "countdown_shot_limiting",
    "thermal_shutdown",
    "shot_limiting",
)
LEGACY_IMU = ("sys_ts", "accel_ts", "gyro_ts", "la_x", "la_y", "la_z", "av_x", "av_y", "av_z")


def issues(text):
    """Words of the SDK's validator by severity."""
    info, found = parse_and_validate_metadata(text)
    words = {severity: [str(entry) for entry in getattr(found, severity)] for severity in ("critical", "warning", "information")}
    return words | {"accepted": info is not None}


def lidar(form, payloads):
    """Headers and fields of lidar packets."""
    names = HEADERS if form.packet_header_size else ("frame_id",)
    answer = {f"header.{name}": [int(getattr(form, name)(each)) for each in payloads] for name in names}
    for kind in (ColHeader.TIMESTAMP, ColHeader.MEASUREMENT_ID, ColHeader.STATUS):
        answer[f"column.{kind.name}"] = [form.packet_header(kind, each) for each in payloads]
    for name in form.fields:
        answer[f"field.{name}"] = [form.packet_field(name, each) for each in payloads]
    answer["crc"] = [[form.crc(each) or 0, form.calculate_crc(each) or 0] for each in payloads]
    answer["size"] = form.lidar_packet_size
    return {name: np.array(values) for name, values in answer.items()}


def imu(form, payloads):
    """Contents of IMU packets of either form."""
    if form.imu_packet_size == 48:
        rows = [[getattr(form, f"imu_{name}")(each) for name in LEGACY_IMU] for each in payloads]
        return {"imu.times": np.array([row[:3] for row in rows], np.uint64), "imu.values": np.array([row[3:] for row in rows], np.float64)}
    answer = {name: [] for name in ("accel", "gyro", "timestamp", "measurement_id", "status", "frame_id", "nmea_ts")}
    sentences = []
    for each in payloads:
        packet = ImuPacket(form)
        packet.buf[:] = each
        for name, values in answer.items():
            found = getattr(packet, name)
            values.append(np.array(found() if callable(found) else found))
        sentence = packet.nmea_sentence
        sentences.append(sentence() if callable(sentence) else sentence)
    return {f"imu.{name}": np.array(values) for name, values in answer.items()} | {"imu.nmea": np.array(sentences)}


def main(questions, answers):
    """Answer every question."""
    given, answer = np.load(questions), {}
    for number in sorted({name.partition(".")[0] for name in given}):
        text = str(given[f"{number}.metadata"])
        found = {"issues": np.array(json.dumps(issues(text)))}
        info = SensorInfo(text)
        form = PacketFormat.from_info(info)
        found["info"] = np.array(info.to_json_string())
        if f"{number}.lidar" in given:
            found |= lidar(form, given[f"{number}.lidar"])
        if f"{number}.imu" in given:
            found |= imu(form, given[f"{number}.imu"])
        if f"{number}.range" in given:
            found["points"] = XYZLut(info)(given[f"{number}.range"])
        answer |= {f"{number}.{name}": values for name, values in found.items()}
    np.savez(answers, **answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
