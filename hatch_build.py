"""A wheel that carries compiled kernels is for one version of Python and one kind of system."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CompiledKernels(BuildHookInterface):
    """Tag the wheel if `make wheel` has filled src/learnable/compiled; without it the wheel is pure Python."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Set the tag."""
        compiled = Path(self.root) / "src" / "learnable" / "compiled"
        if self.target_name == "wheel" and version == "standard" and any(compiled.rglob("*.kernel")):
            python = f"cp{sys.version_info.major}{sys.version_info.minor}"
            build_data["tag"] = f"{python}-{python}-{system()}"
            build_data["pure_python"] = False
            build_data["extra_metadata"] = {str(compiled / "versions.json"): "kernels.json"}


def system() -> str:
    """Return the tag of the system; on Linux that of Numba's own wheels: kernels call no library but through Numba."""
    tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
    return tag.replace("linux_", "manylinux_2_17_", 1) if tag.startswith("linux_") else tag
