"""`learnable doctor`: what this machine has, and whether kernels come compiled, cached or not at all."""

from __future__ import annotations

from . import options

#: Shown by --help.
EXAMPLES = ("learnable doctor",)


def doctor(debug: options.Debug = False) -> None:
    """Say where compiled kernels come from on this machine, and which libraries and threads are used."""
    from .display import console

    out = console()
    for name, value in findings():
        out.print(f"{name:<20} {value}", soft_wrap=True)


def findings() -> list[tuple[str, str]]:
    """Return what there is to say, a name and a sentence each."""
    import os
    import platform
    from importlib.metadata import version

    import llvmlite.binding as llvm

    from ..core import kernel_cache
    from ..core.threads import blas_libraries, thread_budget

    levels = kernel_cache.levels_here()
    folder = kernel_cache.user_folder()
    cached = kernel_cache.count_kernels(folder)
    writable = os.access(next(path for path in (folder, *folder.parents) if path.exists()), os.W_OK)
    shipped = {level: kernel_cache.count_kernels(kernel_cache.shipped_folder(level)) for level in levels}
    best = next((level for level, count in shipped.items() if count), None)
    if best:
        source = f"{shipped[best]} came compiled for {best}; others are compiled once, when they are first used"
    else:
        source = "none came compiled; each is compiled once, when it is first used (learnable warmup: all now)"
    libraries = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")
    return [
        ("learnable", f"{version('learnable')}, Python {platform.python_version()}, {platform.platform()}"),
        ("processor", f"{llvm.get_host_cpu_name()}: {' and '.join(levels) or 'no level that kernels are shipped for'}"),
        ("kernels", source),
        ("cache", f"{cached} kernels in {folder}; {'it can' if writable else 'it can NOT'} be written to"),
        ("BLAS", "; ".join(blas_libraries()) or "none found"),
        ("threads", f"{thread_budget()} of {os.cpu_count()} processors"),
        ("libraries", ", ".join(f"{name} {version(name)}" for name in libraries)),
    ]
