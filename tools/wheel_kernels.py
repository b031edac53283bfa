"""Hatch's hook for wheels: takes along the kernels in the directory that ``HILSIM_KERNELS`` names (``python -m tools.kernels``)."""

import os
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class WheelKernels(BuildHookInterface):  # type: ignore[misc]
    """Adds the directory to the package, where ``hilsim.compilation.cache`` finds it."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002 - Hatch's signature
        """Add the directory, if there is one."""
        if directory := os.environ.get("HILSIM_KERNELS"):
            build_data["force_include"][directory] = "hilsim/_kernels"
