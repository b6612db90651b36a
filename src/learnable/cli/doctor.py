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
    libraries = ("numpy", "scipy", "scikit-learn", "numba", "llvmlite")
    return [
        ("learnable", f"{version('learnable')}, Python {platform.python_version()}, {platform.platform()}"),
        ("processor", f"{llvm.get_host_cpu_name()}: {' and '.join(levels) or 'no level that kernels are shipped for'}"),
        ("kernels", _shipped(levels)),
        (
            "cache",
            f"{cached} kernels compiled here, in {folder}; {'it can' if writable else 'it can NOT'} be written to",
        ),
        ("BLAS", "; ".join(blas_libraries()) or "none found"),
        ("threads", f"{thread_budget()} of {os.cpu_count()} processors"),
        ("libraries", ", ".join(f"{name} {version(name)}" for name in libraries)),
    ]


def _shipped(levels: tuple[str, ...]) -> str:
    """Return which kernels came with the wheel, and why they cannot be used if they cannot."""
    from ..core import kernel_cache

    folders = {level: kernel_cache.shipped_folder(level) for level in levels}
    best = next((level for level, folder in folders.items() if kernel_cache.count_kernels(folder)), None)
    if best is None:
        return "none came compiled; each is compiled once, when it is first used (learnable warmup: all now)"
    shipped = f"{kernel_cache.count_kernels(folders[best])} came compiled for {best}"
    built = kernel_cache.shipped_versions()
    here = kernel_cache.build_versions()
    other = [f"{name} {version}, not {here[name]}" for name, version in built.items() if here.get(name) != version]
    if other:
        return f"{shipped}, but for {' and '.join(other)}: each is compiled once, when it is first used"
    if not kernel_cache.is_safe(folders[best]):
        return f"{shipped}, but are not used, because others can write to {folders[best]}: chmod -R go-w that folder"
    versions = ", ".join(f"{name} {version}" for name, version in built.items())
    return f"{shipped} and {versions}; others are compiled once, when they are first used"
