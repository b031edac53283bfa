"""A robot's dynamics in MuJoCo, its VLP-16 in another process: 100 poses a second go to `hilsim run`, and a driver decodes what comes.

The robot drives a curve on soft springs, so that its lidar pitches. Needs `pip install "mujoco<4"`. The rig has `platform.kind = "external"`.
"""

import socket
import struct
import sys
import time
from importlib.util import find_spec

import numpy as np

import hilsim

COUNT = 200
MODEL = """<mujoco><option timestep="0.001" integrator="implicitfast"/><worldbody><body name="robot" pos="0 0 0.5">
  <joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/><joint name="yaw" axis="0 0 1"/>
  <joint name="pitch" axis="0 1 0" stiffness="60" damping="2"/><geom type="box" size="0.4 0.3 0.2" mass="20"/></body></worldbody>
  <actuator><velocity joint="x" kv="200"/><velocity joint="y" kv="200"/><velocity joint="yaw" kv="50"/></actuator></mujoco>"""
RIG = {
    "name": "robot",
    "scene": {"generator": "street"},
    "platform": {"kind": "external", "position_m": [0.0, 0.0, 0.5]},
    "external": {"listen": "unix:robot.poses"},
    "sensor": [{"name": "top", "profile": "vlp16", "mount_position_m": [0.0, 0.0, 0.4], "sub_rays": 1}],
}
HEADER, POSE = struct.Struct("<4sBBHIIIIq"), struct.Struct("<II3d4d3f3f8x")  # docs/reference/external-poses.md


def drive(link: socket.socket, driver: socket.socket) -> list[bytes]:
    """Step the robot in real time, send its poses, and take what its lidar sends."""
    import mujoco  # noqa: PLC0415

    model, packets = mujoco.MjModel.from_xml_string(MODEL), []
    data, motion, begin_s = mujoco.MjData(model), np.zeros(6), time.monotonic()
    body = data.body("robot")
    for number in range(COUNT):
        heading = data.joint("yaw").qpos[0]
        data.ctrl[:] = 2.0 * np.cos(heading), 2.0 * np.sin(heading), 0.5
        mujoco.mj_step(model, data, 10)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_BODY, 1, motion, 1)  # rates and velocity in the body's axes
        pose = POSE.pack(0, 3, *body.xpos, *body.xquat, *(body.xmat.reshape(3, 3) @ motion[3:]), *motion[:3])
        link.sendto(HEADER.pack(b"HSXP", 1, 1, 1, 1, number, 0, 0, round(data.time * 1e9)) + pose, "robot.poses")
        packets += [driver.recv(2000) for _ in range(7)]
        time.sleep(max(begin_s + data.time - time.monotonic(), 0.0))
    return packets


if __name__ == "__main__":
    if find_spec("mujoco") is None:
        sys.exit(print('this example needs MuJoCo: pip install "mujoco<4"'))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as driver, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as link:
        driver.bind(("127.0.0.1", 0))
        driver.settimeout(10.0)
        with hilsim.Daemon(RIG, to=f"127.0.0.1:{driver.getsockname()[1]}"):
            packets = drive(link, driver)
    print(f"{COUNT} poses sent, {hilsim.decode(packets).size} points in {len(packets)} packets received")
