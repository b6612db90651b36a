"""Ways to cut rows into training and test rows.

They stand in `learnable.meta`, below the models, because models that choose their own parameters cut rows too.
"""

from __future__ import annotations

from ..meta.splits import Split, hold_out, make_splits

__all__ = ["Split", "hold_out", "make_splits"]
