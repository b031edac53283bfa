"""The same source gives the same hits compiled, as plain Python and under CUDA's simulator, and compiles for a GPU."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.renderers import CpuRenderer, cast

SCRIPT = Path(__file__).with_name("backend_rays.py")

PTX = """
import sys
import numpy as np
from numba import cuda, float32, float64, int32, int64, typeof
import numba.cuda.dispatcher as dispatcher
from numba.cuda.cudadrv.error import NvvmSupportError
from numba.cuda.cudadrv.nvvm import NVVM

try:
    NVVM()
except (NvvmSupportError, OSError) as fault:
    print(fault)
    sys.exit(77)

class Hopper:
    compute_capability = (9, 0)

# Without a driver Numba cannot ask the GPU what it is; nothing else of the GPU is needed to compile for it.
dispatcher.get_current_device = lambda: Hopper

from hilsim.world.render.device_blocks import HostParts, StillBlock, cast_on_device, still_block
from hilsim.world.render.traverse import closest_triangle
from hilsim.world.scene.world import build_world

rows = float32[:, ::1]
signature = (rows, int32[:, ::1], rows, int32, *[float32] * 7, int32[::1], int64)
ptx, _ = cuda.compile_ptx(closest_triangle.py_func, signature, device=True, cc=(9, 0))
assert ".target sm_90" in ptx and "closest_triangle" in ptx
assert ".f64" not in ptx, "traversal must stay float32"
world = build_world([])
still, moving = still_block(world), HostParts(1, 1, world.live, np.zeros).block
ptx, _ = cuda.compile_ptx(cast_on_device, (typeof(still), typeof(moving), int64, int64, float64), cc=(9, 0))
assert ".visible .entry" in ptx
"""


def backend_script():
    spec = importlib.util.spec_from_file_location("backend_rays", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """File of what the compiled CPU kernel sees of the script's scene."""
    script = backend_script()
    hits = cast(CpuRenderer(), script.scene(), *script.rays())
    movers = hits.instance >= script.scene().tile_count
    assert movers.sum() > 20
    assert np.isinf(hits.range_m).sum() > 20
    path = tmp_path_factory.mktemp("rays") / "expected.npz"
    np.savez(path, **hits._asdict())
    return path


def run(*arguments, **environment):
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, env=os.environ | environment, capture_output=True, text=True, timeout=240, check=False)


@pytest.mark.parametrize(
    ("backend", "environment"),
    [
        pytest.param("cpu", {"NUMBA_DISABLE_JIT": "1"}, id="plain Python"),
        pytest.param("cuda", {"NUMBA_ENABLE_CUDASIM": "1"}, id="CUDA simulator over compiled functions", marks=pytest.mark.extended),
        pytest.param("cuda", {"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"}, id="CUDA simulator over plain Python"),
    ],
)
def test_another_backend_sees_the_same(expected, backend, environment):
    result = run("-W", "error", SCRIPT, backend, expected, **environment)
    assert result.returncode == 0, result.stderr


@pytest.mark.gpu
def test_a_gpu_sees_the_same(expected):
    result = run("-c", "from numba import cuda; import sys; sys.exit(0 if cuda.is_available() else 77)", NUMBA_ENABLE_CUDASIM="0")
    if result.returncode == 77:
        pytest.skip("this machine has no NVIDIA GPU")
    result = run(SCRIPT, "cuda", expected, NUMBA_ENABLE_CUDASIM="0")
    assert result.returncode == 0, result.stderr


def test_the_cuda_renderer_says_that_it_needs_a_gpu():
    code = "from numba import cuda; import sys; sys.exit(77) if cuda.is_available() else None; from hilsim.world.render.cuda import CudaRenderer; CudaRenderer()"
    result = run("-c", code, NUMBA_ENABLE_CUDASIM="0")
    if result.returncode == 77:
        pytest.skip("this machine has a GPU: there is nothing to complain about")
    assert "DeviceError: must have an NVIDIA GPU and its driver for cuda, found none" in result.stderr


def test_a_numba_cuda_that_cannot_compile_is_a_missing_device():
    code = (
        "from numba import cuda\n"
        "def jit(body):\n    raise AttributeError(\"module 'numpy' has no attribute 'row_stack'\")\n"
        "cuda.jit = jit\n"
        "from hilsim.world.render.cuda import CudaRenderer\nCudaRenderer()"
    )
    result = run("-c", code, NUMBA_ENABLE_CUDASIM="1")
    assert "DeviceError: must have a numba-cuda that compiles (pip install 'hilsim-lidar[cuda]'), got AttributeError: module 'numpy'" in result.stderr


@pytest.mark.extended
def test_the_device_code_compiles_for_a_gpu_and_its_traversal_has_no_float64():
    result = run("-c", PTX, NUMBA_ENABLE_CUDASIM="0")
    if result.returncode == 77:
        pytest.skip(f"NVVM, the compiler for NVIDIA GPUs, is not on this machine: {result.stdout.strip()}")
    assert result.returncode == 0, result.stderr
