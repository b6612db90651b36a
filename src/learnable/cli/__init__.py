"""The command-line tool: compare, fit, predict, verify, models, warmup. One file a subcommand."""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
