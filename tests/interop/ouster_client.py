"""ouster-sdk as a client of a sensor's control interface: steps from standard input, their results on standard output, both JSON.

It runs in the environment of the SDK, and imports nothing of hilsim.
"""

import json
import sys
import time

from ouster.sdk import core, sensor


def text_of(config):
    return json.loads(str(config))


STEPS = {
    "get_config": lambda host, active: text_of(sensor.get_config(host, active)),
    "set_config": lambda host, settings, flags: sensor.set_config(host, core.SensorConfig(json.dumps(settings)), **flags),
    "metadata": lambda host: metadata(sensor.SensorHttp.create(host).metadata()),
    "metadata_when_running": lambda host: metadata(when(host, "RUNNING").metadata()),
    "sensor_info_when_ready": lambda host: json.loads(when(host, "RUNNING", "STANDBY").sensor_info()),
    "sensor_info": lambda host: json.loads(sensor.SensorHttp.create(host).sensor_info()),
    "put_user_data": lambda host, text, keep: sensor.SensorHttp.create(host).set_user_data(text, keep),
    "get_user_data": lambda host: sensor.SensorHttp.create(host).get_user_data(),
    "delete_user_data": lambda host: sensor.SensorHttp.create(host).delete_user_data(),
    "network": lambda host: json.loads(sensor.SensorHttp.create(host).network()),
    "set_static_ip": lambda host, address: sensor.SensorHttp.create(host).set_static_ip(address),
    "delete_static_ip": lambda host: sensor.SensorHttp.create(host).delete_static_ip(),
    "auto_detected_udp_dest": lambda host: sensor.SensorHttp.create(host).auto_detected_udp_dest(),
}


def metadata(text):
    info = core.SensorInfo(text)
    issues = info.validate() if hasattr(info, "validate") else []
    return {"columns": info.w, "rows": info.h, "init_id": info.init_id, "serial": info.sn, "issues": str(issues)}


def when(host, *states):
    """Client of a sensor in one of these states."""
    client, deadline_s = sensor.SensorHttp.create(host), time.monotonic() + 20.0
    while json.loads(client.sensor_info())["status"] not in states:
        if time.monotonic() > deadline_s:
            raise RuntimeError(f"status must be one of {states} within 20 s")
        time.sleep(0.05)
    return client


def main():
    host, results = sys.argv[1], []
    for name, *arguments in json.load(sys.stdin):
        try:
            results.append({"result": STEPS[name](host, *arguments)})
        except (RuntimeError, ValueError) as error:
            results.append({"error": str(error)})
    json.dump(results, sys.stdout)


main()
