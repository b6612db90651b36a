"""`learnable warmup`: compile all kernels now, so that no first fit has to wait."""

from __future__ import annotations

from . import options

#: Shown by --help.
EXAMPLES = ("learnable warmup",)


def warmup(debug: options.Debug = False) -> None:
    """Compile every kernel and keep it on disk; the first fit of each model is then as fast as the next."""
    import time

    from ..core.errors import LearnableError
    from ..evaluation.comparison.cases import warm_cases
    from .display import console, one_line

    out = console()
    began = time.perf_counter()
    failed = 0
    for warmed in warm_cases():
        failed += warmed.failure is not None
        outcome = f"{warmed.seconds:.1f} s" if warmed.failure is None else one_line(warmed.failure)
        out.print(f"{warmed.name:<24} {outcome}")
    out.print(f"ready after {time.perf_counter() - began:.1f} s")
    if failed:
        raise LearnableError(f"warmup: {failed} case(s) could not be run on a few rows; see above.")
