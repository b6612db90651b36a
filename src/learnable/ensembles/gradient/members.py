"""The trees of a boosted model as models of their own, and what is said while rounds go on."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...trees.decision_tree import DecisionTreeRegressor
from ...trees.layout import Trees
from .driver import Rounds

_SHARED = ("max_depth", "max_leaf_nodes", "min_samples_split", "min_samples_leaf", "min_weight_fraction_leaf",
           "min_impurity_decrease", "ccp_alpha", "max_features", "max_bins", "n_jobs")  # fmt: skip


def fitted_trees(model: Any) -> NDArray[Any]:
    """Return the trees as fitted regressors, (rounds, K); they predict the score's move before the step is applied."""
    out = np.empty((len(model.steps_), model.n_trees_per_iteration_), dtype=object)
    for t in range(out.size):
        step = float(model.steps_[t // out.shape[1]])
        out.flat[t] = _one(model, t, step)
    return out


def _one(model: Any, t: int, step: float) -> DecisionTreeRegressor:
    tree = model.trees_.tree(t)
    member = DecisionTreeRegressor(**{name: getattr(model, name) for name in _SHARED if hasattr(model, name)})
    limits = getattr(model, "depth_limits_", None)
    if limits is not None:  # rounds before a warm start may have had another limit
        limit = int(limits[t // model.n_trees_per_iteration_])
        member.max_depth = None if limit < 0 else limit
    member.trees_ = replace(tree, value=tree.value / step) if step else tree
    member.n_outputs_ = 1
    member.n_features_in_ = model.n_features_in_
    member.max_features_ = model.max_features_
    member.seed_ = model.seed_
    member.ccp_alpha_ = float(model.ccp_alpha)
    return member


def constant_start(model: Any) -> Any:
    """Return the start of boosting's rounds, the best constant, as scikit-learn's constant model."""
    from sklearn.dummy import DummyClassifier, DummyRegressor

    loss = model._fitted_loss()
    before = np.asarray(model.baseline_, dtype=np.float64)[:, None]
    if model._classes:
        if not loss.has_probability:
            return None
        K = len(model.classes_)
        prior = DummyClassifier(strategy="prior")
        return prior.fit(np.zeros((K, model.n_features_in_)), model.classes_, sample_weight=loss.probability(before)[0])
    if np.ndim(loss.predict(before)) != 1:
        return None  # several quantiles at once: scikit-learn has no such model
    levels = {"absolute_error": 0.5, "huber": 0.5, "quantile": model.alpha}
    if model.loss in levels:
        constant = DummyRegressor(strategy="quantile", quantile=float(levels[model.loss]))
    else:
        constant = DummyRegressor(strategy="mean")
    return constant.fit(np.zeros((1, model.n_features_in_)), loss.predict(before))


class Observer:
    """What happens after every round: lines are printed, a monitor is asked, early stopping looks at the scores."""

    def __init__(self, model: Any, watch: Any, keep: Callable[[Rounds], None], monitor: Any) -> None:
        self.model, self.watch, self.keep, self.monitor = model, watch, keep, monitor
        self.verbose = int(model.verbose)
        self.began, self.first = time.monotonic(), -1
        self.every = 1

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        m = len(rounds.steps) - 1
        if self.verbose:
            self._print(rounds, m)
        enough = self.watch is not None and self.watch(rounds, trees)
        if self.monitor is not None:
            self.keep(rounds)
            enough = bool(self.monitor(m, self.model, {"rounds": rounds})) or enough
        return bool(enough)

    def _print(self, rounds: Rounds, m: int) -> None:
        """Print scikit-learn's line: every round up to the tenth, then every tenth, and so on; all if verbose > 1."""
        drawn = len(rounds.outside) > 0
        if self.first < 0:
            self.first = m
            names = ["Train Loss", *(["OOB Improve"] if drawn else []), "Remaining Time"]
            print(" ".join(["%10s"] + ["%16s"] * len(names)) % ("Iter", *names))
        done = m + 1
        if done % self.every == 0:
            pace = (time.monotonic() - self.began) / (done - self.first)
            left = pace * (self.model._n_rounds() - done)
            factor = self.model._score_factor()
            figures = [factor * rounds.losses[-1]]
            figures += [factor * (rounds.outside[-1][0] - rounds.outside[-1][1])] if drawn else []
            print(" ".join([f"{done:>10d}", *(f"{x:>16.4f}" for x in figures), f"{_duration(left):>16}"]))
        if self.verbose == 1 and done // (self.every * 10) > 0:
            self.every *= 10


class RoundLines:
    """What a histogram model says with verbose=2: a line for every round; then early stopping looks at the scores."""

    def __init__(self, model: Any, watch: Any) -> None:
        self.model, self.watch = model, watch
        self.began = time.monotonic()

    def __call__(self, rounds: Rounds, trees: list[Trees]) -> bool:
        """Look at one more round; return whether it is enough."""
        enough = self.watch is not None and self.watch(rounds, trees)
        n_leaves = sum(tree.n_leaves for tree in trees)
        depth = max(tree.max_depth for tree in trees)
        grown = "1 tree" if len(trees) == 1 else f"{len(trees)} trees"
        parts = [f"{grown}, {n_leaves} leaves", f"max depth = {depth}", f"train loss: {rounds.losses[-1]:.5f}"]
        if self.watch is not None:
            parts.append(f"score of the rows that decide: {self.watch.decisive()[-1]:.5f}")
        now = time.monotonic()
        print(f"[{len(rounds.steps)}/{self.model._n_rounds()}] {', '.join(parts)}, in {now - self.began:.3f}s")
        self.began = now
        return bool(enough)


def _duration(seconds: float) -> str:
    return f"{seconds / 60:.2f}m" if seconds > 60 else f"{seconds:.2f}s"
