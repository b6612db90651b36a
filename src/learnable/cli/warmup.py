"""`learnable warmup`: compile all kernels now, so that no first fit has to wait."""

from __future__ import annotations

from . import options

#: Shown by --help.
EXAMPLES = ("learnable warmup",)


def warmup(debug: options.Debug = False) -> None:
    """Compile every kernel and keep it on disk; the first fit of each model is then as fast as the next."""
    import time

    from ..core.errors import LearnableError
    from ..decisions.warm import small_decisions
    from ..evaluation.comparison.warm import warm_models
    from .display import console, one_line

    out = console()
    began = time.perf_counter()
    failed = 0
    for warmed in warm_models():
        failed += warmed.failure is not None
        outcome = f"{warmed.seconds:.1f} s" if warmed.failure is None else one_line(warmed.failure)
        out.print(f"{warmed.name:<24} {outcome}")
    began_decisions = time.perf_counter()
    for name, _ in small_decisions():
        out.print(f"{name:<24} {time.perf_counter() - began_decisions:.1f} s")
        began_decisions = time.perf_counter()
    out.print(f"ready after {time.perf_counter() - began:.1f} s")
    if failed:
        raise LearnableError(f"warmup: {failed} model(s) could not be fitted to a few rows; see above.")
