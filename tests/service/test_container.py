"""The Containerfile, built from the same Debian root and wheels as the service's machine: no registry is asked for anything."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.service.machine import PROJECT, SCRATCH, missing_requirement, prepared_root

pytestmark = [pytest.mark.service, pytest.mark.timeout(3600)]

BASE, IMAGE = "localhost/hilsim-test-base", "localhost/hilsim-test"


def buildah(*words, timeout_s=3000):
    """Standard output of buildah; a fault shows its output."""
    ran = subprocess.run(["buildah", *map(str, words)], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout_s, check=False)
    if ran.returncode:
        pytest.fail(f"buildah {words[0]} must succeed, got exit code {ran.returncode}:\n{ran.stdout[-2000:]}{ran.stderr[-4000:]}")
    return ran.stdout.strip()


@pytest.fixture(scope="module")
def image():
    """The image, built without a container runtime's cgroups (``--isolation chroot``), so that it builds inside containers too."""
    missing = missing_requirement() or ("" if shutil.which("buildah") else "not installed (Debian package): buildah")
    if missing:
        pytest.skip(missing)
    root = prepared_root()
    wheels = root / "var/tmp/wheels"
    subprocess.run([sys.executable, "-m", "pip", "wheel", "--quiet", f"--wheel-dir={wheels}", "hatchling>=1.27"], check=True, timeout=600)
    scratch = buildah("from", "scratch")
    archive = SCRATCH / "base.tar"
    leave_out = ["./opt/hilsim", "./var/tmp", "./proc", "./sys", "./dev", "./run"]
    subprocess.run(["tar", "-C", str(root), "-cf", str(archive), *(f"--exclude={path}" for path in leave_out), "."], check=True, timeout=600)
    buildah("add", scratch, archive, "/")
    archive.unlink()
    buildah("commit", "--rm", scratch, BASE)
    settings = SCRATCH / "pip.conf"
    settings.write_text("[global]\nno-index = true\nfind-links = /wheels\n")
    offline = ["--volume", f"{wheels}:/wheels:ro", "--volume", f"{settings}:/etc/pip.conf:ro"]
    buildah(
        "bud",
        "--isolation",
        "chroot",
        *offline,
        "--build-arg",
        f"BASE={BASE}",
        "--build-arg",
        "KERNELS=--rig demo",
        "-f",
        PROJECT / "Containerfile",
        "-t",
        IMAGE,
        PROJECT,
    )
    yield IMAGE
    for made in (IMAGE, BASE):
        buildah("rmi", "--force", made)


@pytest.fixture(scope="module")
def inside(image):
    """Runs a command in a container of the image, as its user; returns what it says on both outputs."""
    container = buildah("from", image)

    def run(*words):
        ran = subprocess.run(
            ["buildah", "run", "--isolation", "chroot", container, "--", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert ran.returncode == 0, ran.stderr
        return ran.stdout + ran.stderr

    yield run
    buildah("rm", container)


def test_its_entry_is_hilsim_as_a_user_of_its_own_and_it_checks_no_health(image):
    config = json.loads(buildah("inspect", "--type", "image", image))["OCIv1"]["config"]
    assert (config["Entrypoint"], config["Cmd"], config["User"]) == (["hilsim"], ["run", "demo"], "hilsim")
    assert "Healthcheck" not in config


def test_nothing_runs_as_root(inside):
    assert inside("id", "-un").strip() == "hilsim"


def test_its_kernels_are_there(inside):
    assert "demo.toml: its kernels are already compiled" in inside("hilsim", "warm", "demo")


def test_it_streams_and_stops(inside):
    said = [
        json.loads(line)
        for line in inside("hilsim", "run", "demo", "--duration-s", "1", "--set", "metrics.port=0").splitlines()
        if line.startswith("{")
    ]
    events = [event["event"] for event in said]
    assert "kernels.compiling" not in events
    assert "daemon.started" in events
    assert said[-1]["event"] == "daemon.stopped"
    assert said[-1]["sent_packets"] > 100


def test_sources_and_tools_for_building_are_not_in_it(inside):
    assert inside("sh", "-c", "test ! -e /src && ls -A /tmp").strip() == ""
