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
            system = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["tag"] = f"{python}-{python}-{system}"
            build_data["pure_python"] = False
