"""Livox-SDK2, the vendor's library, as a host of sensors.

It is installed in an environment of its own, ``.venv-livox``: py-livox2, which brings it, requires numpy below 2.3, and hilsim's tests have a newer one.
"""

import functools
import json
import subprocess
import tempfile
from pathlib import Path

CLIENT = Path(__file__).parent / "livox_client.py"
PYTHON = CLIENT.parents[2] / ".venv-livox" / "bin" / "python"
TIMEOUT_S = 150
LIDAR_PORTS = {"cmd_data_port": 56_100, "push_msg_port": 56_200, "point_data_port": 56_300, "imu_data_port": 56_400, "log_data_port": 56_500}
HAP_PORTS = {"cmd_data_port": 56_000, "push_msg_port": 0, "point_data_port": 57_000, "imu_data_port": 58_000, "log_data_port": 59_000}


@functools.cache
def fault():
    """Reason why the SDK cannot be asked; None if it can."""
    if not PYTHON.is_file():
        return "its environment .venv-livox is not installed"
    probe = subprocess.run([PYTHON, "-c", "import livox_sdk"], check=False, capture_output=True, text=True)
    return None if probe.returncode == 0 else (probe.stderr.strip().splitlines() or ["it ends the process"])[-1]


def ask(host, addresses, *steps):
    """Results of the SDK's steps, which ``livox_client`` describes, for sensors with some addresses; ``host`` is the address that it takes."""
    host_ports = {name: port + 1 for name, port in LIDAR_PORTS.items()}
    config = {
        "master_sdk": True,
        "MID360": {"lidar_net_info": LIDAR_PORTS, "host_net_info": [{"host_ip": host, **host_ports}]},
        "HAP": {"lidar_net_info": HAP_PORTS, "host_net_info": [{"host_ip": host, **HAP_PORTS}]},
    }
    with tempfile.TemporaryDirectory() as folder:  # the SDK writes its log into the working folder
        run = subprocess.run(
            [PYTHON, CLIENT],
            check=False,
            input=json.dumps({"config": config, "addresses": addresses, "steps": steps}),
            capture_output=True,
            text=True,
            cwd=folder,
            timeout=TIMEOUT_S,
        )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert [each["error"] for each in found if "error" in each] == [], run.stderr
    return [each["result"] for each in found]
