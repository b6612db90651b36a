"""The rounds of a fit on a cluster in a file, so that a fit that was cut off can go on.

The file is an `.npz` archive of plain arrays: nothing in it is executed, and its arrays are checked when it is read. It
names the fit it belongs to: parameters, shape and bins of the table.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from ...core.errors import DataError, LearnableError
from ...trees.histogram.bins import Bins
from ...trees.layout import Trees, concatenate
from .driver import take_trees
from .rank import Kept

_TREES = (
    "start", "feature", "threshold", "left", "right", "missing_left", "category", "bits", "impurity", "n_rows",
    "weight", "value",
)  # fmt: skip
_LISTS = ("steps", "losses", "scores", "train_scores")


class Checkpoint:
    """Where the rounds so far are kept; nowhere, if there is no path.

    Parameters
    ----------
    owner : str
        For messages.
    path : path or None
        The file.
    """

    def __init__(self, owner: str, path: Any) -> None:
        self.owner = owner
        self.path = None if path is None else Path(path)
        self.key = ""

    def seed(self) -> int | None:
        """Return the seed of the fit that the file belongs to; None without a file."""
        found = self._read()
        return None if found is None else int(found["seed"])

    def name(self, model: Any, bins: Bins, shape: tuple[int, int]) -> None:
        """Say which fit the rounds are those of."""
        chosen = {k: repr(v) for k, v in model.get_params(deep=False).items() if k not in _FREE}
        text = json.dumps([type(model).__name__, chosen, model.seed_, list(shape)], sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=16)
        for array in (bins.edges, bins.n_bins, bins.level_bin):
            digest.update(np.ascontiguousarray(array).tobytes())
        self.key = digest.hexdigest()
        self._seed, self._d = model.seed_, shape[1]

    def load(self) -> Kept | None:
        """Return the rounds of the file; None if there is none; DataError if they are those of another fit."""
        found = self._read()
        if found is None:
            return None
        if str(found["key"]) != self.key:
            raise DataError(
                f"{self.owner}: the checkpoint {str(self.path)!r} belongs to another fit: its data or parameters "
                "differ. Remove it, or name another file."
            )
        try:
            trees = Trees(**{name: found[name] for name in _TREES})
            trees.check(self._d, 1)
            baseline = np.asarray(found["baseline"], np.float64)
            lists = [np.asarray(found[name], np.float64).tolist() for name in _LISTS]
            outside = [(float(a), float(b)) for a, b in np.asarray(found["outside"], np.float64)]
            K, n = len(baseline), len(lists[0])
            if trees.n_trees != K * n or len(lists[1]) != n + 1:
                raise ValueError("rounds and trees differ")
        except (LearnableError, KeyError, TypeError, ValueError) as error:
            raise self._damaged(error) from error
        one_by_one = [take_trees(trees, [t]) for t in range(trees.n_trees)]
        return Kept(baseline, one_by_one, lists[0], lists[1], outside, lists[2], lists[3])

    def save(self, kept: Kept) -> None:
        """Write the rounds; a file that was there stays whole until the new one is."""
        if self.path is None or not kept.steps or kept.baseline is None:
            return
        trees = concatenate(kept.trees)
        arrays: dict[str, Any] = {name: getattr(trees, name) for name in _TREES}
        arrays |= {name: np.array(getattr(kept, name), np.float64) for name in _LISTS}
        outside = np.array(kept.outside, np.float64).reshape(-1, 2)
        beside = self.path.with_name(self.path.name + ".part")
        try:
            with open(beside, "wb") as file:
                np.savez(file, key=self.key, seed=self._seed, baseline=kept.baseline, outside=outside, **arrays)
            os.replace(beside, self.path)
        except OSError as error:
            raise DataError(f"{self.owner}: the checkpoint {str(self.path)!r} cannot be written: {error}.") from error

    def remove(self) -> None:
        """Remove the file: the fit is done."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self) -> dict[str, Any] | None:
        if self.path is None or not self.path.exists():
            return None
        try:
            with np.load(self.path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
            int(found["seed"]), str(found["key"])
        except (OSError, ValueError, KeyError, TypeError, zipfile.BadZipFile) as error:
            raise self._damaged(error) from error
        return found

    def _damaged(self, error: BaseException) -> DataError:
        return DataError(
            f"{self.owner}: the checkpoint {str(self.path)!r} is damaged ({error}). Remove it, and fit from the start."
        )


#: Parameters that do not change the rounds so far.
_FREE = frozenset({"max_iter", "max_seconds", "n_jobs", "verbose", "random_state", "checkpoint", "warm_start"})
