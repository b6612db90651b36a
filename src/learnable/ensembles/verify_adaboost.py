r"""Independent checks of AdaBoost's certificates: the rounds, replayed on the data in plain NumPy.

Every distribution follows from the data and the learners before it. Under it each learner has the error and the vote
that were recorded, and no stump of any column and threshold is better. The replay costs what the fit costs, without its
compiled loops: O(T·n·d) for stumps, one prediction of each model for other learners.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ..core import Array, NDArray, Recheck, VerificationError, flaw_of
from ..data.checking import read_table
from ..trees.verify import AGREE, Limits, Rules, TreeWalk, columns_of, leaves_of
from ..trees.verify_scores import scores_for
from .verify import drawn_rows

#: How far a sum of weights, computed in another order, may be from the record.
ROUNDING = 1e-11
NEAR = 1e-9  # what sums of weights may differ by
_BLOCK_ENTRIES = 2**23  # numbers of a table of votes at a time: 64 MB


class Rows(NamedTuple):
    """The rows that were fitted."""

    X: Any
    y: NDArray[np.int64]
    log_weight: Array
    fingerprint: str
    held: tuple[Any, NDArray[np.int64], Array]  #: X, classes and weights of the rows held out for validation
    drawn: NDArray[np.int64]  #: these rows, drawn again


class Round(NamedTuple):
    """One round, replayed."""

    D: Array  #: the distribution that the learner was fitted to
    loss: float  #: after the round
    bound: float  #: on the training error
    near: bool  #: error, vote and removals are those recorded
    residual: float  #: of the reweighting


@np.errstate(all="ignore")  # a model may hold anything; NaN and infinity then fail the comparison
def adaboost_classifier(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an AdaBoostClassifier."""
    rows = read_rows(model, X, y, sample_weight)
    if flaw := _flaw_of(model, rows):
        return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but {flaw}")
    if model.n_classes_ == 1:
        return Recheck(0.0 if _is_constant(model, rows) else np.inf, 0.0, rows.fingerprint)
    learners = model.stumps_ if model.rounds_["learners"] is None else model.rounds_["learners"]
    learners = list(model.models_ if learners is None else learners)
    if len(learners) != len(model.rounds_["votes"]) or not _members_agree(model, learners):
        return Recheck(np.inf, 0.0, rows.fingerprint)
    if model.variant == "totally-corrective":
        value, loss = _gradient(model, rows, learners)
        agrees = abs(loss - model.exponential_loss_[-1]) <= NEAR * loss and stumps_follow(model, rows, None)
        agrees &= _bounds_follow(model, loss) and _validation_follows(model, rows, learners)
        return Recheck(value if agrees else np.inf, ROUNDING, rows.fingerprint)
    replay = _replay_scores if model.variant == "real" else _replay_votes
    failed = 0
    residual = 0.0
    T = len(learners)
    step = max(1, _BLOCK_ENTRIES // len(rows.y))
    rounds = replay(model, rows, learners)
    done = 0
    while block := [r for _, r in zip(range(min(step, T - done)), rounds, strict=False)]:
        good = np.array([r.near for r in block])
        recorded = slice(done, done + len(block))
        good &= np.isclose([r.loss for r in block], model.exponential_loss_[recorded], rtol=NEAR)
        good &= np.isclose([r.bound for r in block], model.training_bound_[recorded], rtol=NEAR)
        residual = max(residual, max(r.residual for r in block))
        if model.stumps_ is not None:
            good &= _are_best(model, rows, [r.D for r in block], learners[done : done + len(block)])
            good &= [sides_agree(model, rows, r.D, done + k, learners[done + k]) for k, r in enumerate(block)]
        failed += int((~good).sum())
        done += len(block)
    if not _validation_follows(model, rows, learners):
        return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but the validation errors are others")
    if model.stumps_ is not None:
        return Recheck((failed + (residual > NEAR)) / T, 0.0, rows.fingerprint)
    return Recheck(np.inf if failed else residual, ROUNDING, rows.fingerprint)


def read_rows(model: Any, X: Any, y: Any, sample_weight: Any) -> Rows:
    """Return the rows of the fit, without those held out for validation."""
    table = read_table(model, X, y, sample_weight)
    if not table.in_memory:
        raise VerificationError("verify: the data must be in memory.")
    codes = table.y
    fingerprint = table.fingerprint
    if table.classes is not None and not np.array_equal(table.classes, model.classes_):
        fingerprint += f", but the data have the labels {table.classes.tolist()[:10]}"
        codes = np.minimum(codes, len(model.classes_) - 1)
    fitted = np.ones(table.n_rows, dtype=bool)
    out = getattr(model, "validation_rows_", np.empty(0, np.int64))
    fitted[out[out < table.n_rows]] = False
    weight = np.ones(table.n_rows) if table.weight is None else table.weight
    w = weight[fitted] / weight[fitted].sum()
    held = (table.X[~fitted], codes[~fitted], weight[~fitted])
    drawn = np.empty(0, np.int64)
    if getattr(model, "n_iter_no_change", None) is not None and table.classes is not None and len(out):
        drawn = _held_out(codes, len(model.classes_), model.validation_fraction, model.seed_)
    return Rows(table.X[fitted] if len(out) else table.X, codes[fitted], np.log(w), fingerprint, held, drawn)


def _held_out(y: NDArray[np.int64], n_classes: int, fraction: float, seed: int) -> NDArray[np.int64]:
    """Return the rows held out: the same share of each class, rounded down, and never all rows of one."""
    rng = np.random.default_rng([seed, n_classes])
    classes = [np.flatnonzero(y == k) for k in range(n_classes)]
    shares = [rng.permutation(rows)[: min(int(fraction * len(rows)), len(rows) - 1)] for rows in classes]
    return np.sort(np.concatenate(shares))


def _members_agree(model: Any, learners: list[Any]) -> bool:
    """Tell whether the members and their weights are the rounds that were not removed."""
    members = np.flatnonzero(model.rounds_["removed"] < 0)
    scale = (model.n_classes_ - 1) ** 2 / model.n_classes_ if model.vote == "half" else 1.0
    if len(members) != len(model.estimator_weights_):
        return False
    same = np.allclose(model.estimator_weights_, scale * model.rounds_["votes"][members], rtol=1e-12, atol=0.0)
    same &= np.allclose(model.estimator_errors_, model.rounds_["errors"][members], rtol=1e-12, atol=0.0)
    kept = [learners[t] for t in members]
    if model.stumps_ is not None:
        pairs = zip(kept, model.stumps_, strict=True)
        return bool(same) and all(a[:2] == b[:2] and np.array_equal(a[2], b[2]) for a, b in pairs)
    return bool(same)


def _says(model: Any, learner: Any, X: Any) -> Array:
    """Return a learner's scores: (n, 1) for two classes, (n, K) for K."""
    K = model.n_classes_
    if model.stumps_ is not None:
        feature, threshold, value = learner
        return np.asarray(value)[np.where(column_of(X, feature) <= threshold, 0, 1)]
    if model.variant != "real":
        named = np.asarray(learner.predict(X))[:, None] == model.classes_
        return np.where(named[:, 1:], 1.0, -1.0) if K == 2 else np.where(named, 1.0, -1.0 / (K - 1))
    least = 0.5 / model.n_rows_
    p = np.zeros((X.shape[0], K))
    p[:, [model.classes_.tolist().index(label) for label in learner.classes_.tolist()]] = learner.predict_proba(X)
    if K == 2:
        odds = np.log(np.clip(p[:, 1], least, 1 - least) / np.clip(p[:, 0], least, 1 - least))
        return (odds / np.log((1 - least) / least))[:, None]
    logs = np.log(np.clip(p, least, 1.0))
    return (logs - logs.mean(axis=1, keepdims=True)) * K / (K - 1) / -np.log(least)


def _names(scores: Array) -> NDArray[np.int64]:
    return (scores[:, 0] > 0).astype(np.int64) if scores.shape[1] == 1 else scores.argmax(axis=1)


def _normalised(exponent: Array) -> Array:
    D = np.exp(exponent - exponent.max())
    return D / D.sum()


def _replay_votes(model: Any, rows: Rows, learners: list[Any]) -> Iterator[Round]:
    """Replay discrete AdaBoost; with removals, FloatBoost."""
    K = model.n_classes_
    rounds = model.rounds_
    n = len(rows.y)
    c = (K - 1) / K
    smallest = {0: 1.0}
    wrong: list[NDArray[np.bool_]] = []
    for t, learner in enumerate(learners):
        present = [s for s in range(t) if not 0 <= rounds["removed"][s] < t]
        g = sum((rounds["votes"][s] * wrong[s] for s in present), np.zeros(n))
        total = sum(rounds["votes"][s] for s in present)
        D = _normalised(rows.log_weight + g)
        wrong.append(_names(_says(model, learner, rows.X)) != rows.y)
        error = float(D[wrong[t]].sum())
        vote = float(rounds["votes"][t])
        if wrong[t].any():
            right_vote = model.learning_rate * np.log((1 - error) / np.float64(error) * (K - 1))
        else:
            right_vote = total + np.log((2 * n - 1) * (K - 1))
        near = abs(error - rounds["errors"][t]) <= NEAR and abs(vote - right_vote) <= NEAR * max(1.0, abs(right_vote))
        after = float(_normalised(rows.log_weight + g + vote * wrong[t])[wrong[t]].sum())
        expected = error / (error + (1 - error) * np.exp(-vote)) if error > 0 else 0.0
        present.append(t)
        if model.variant == "float" and wrong[t].any():
            near &= _removals_follow(rounds, rows, wrong, present, t, c, smallest)
        kept = [s for s in present if rounds["removed"][s] != t]
        loss = _loss(rows, rounds["votes"], wrong, kept, c)
        bound = _loss(rows, rounds["votes"], wrong, kept, 0.5)
        yield Round(D, loss, bound, bool(near), abs(after - expected))


def _loss(rows: Rows, votes: Array, wrong: list[Any], members: list[int], c: float) -> float:
    exponent = sum((votes[s] * (wrong[s] - c) for s in members), rows.log_weight.copy())
    return float(np.exp(exponent).sum())


def _removals_follow(
    rounds: Any, rows: Rows, wrong: list[Any], present: list[int], t: int, c: float, smallest: dict[int, float]
) -> bool:
    """Tell whether the learners removed in round t are those of the rule; note the smallest losses."""
    members = list(present)
    votes = rounds["votes"]
    recorded = {s for s in present if rounds["removed"][s] == t}
    loss = _loss(rows, votes, wrong, members, c)
    smallest[len(members)] = min(loss, smallest.get(len(members), np.inf))
    removed: set[int] = set()
    while len(members) > 2:
        left = {s: _loss(rows, votes, wrong, [m for m in members if m != s], c) for s in members}
        s = min(left, key=left.__getitem__)
        before = smallest.get(len(members) - 1, np.inf)
        if abs(left[s] / before - 1) < 2e-9:  # too close to tell: the record decides
            if s not in recorded:
                break
        elif left[s] >= before:
            break
        removed.add(s)
        members.remove(s)
        smallest[len(members)] = min(left[s], before)
    return removed == recorded


def _replay_scores(model: Any, rows: Rows, learners: list[Any]) -> Iterator[Round]:
    """Replay real AdaBoost."""
    K = model.n_classes_
    rounds = model.rounds_
    n = len(rows.y)
    power = 1.0 if K == 2 else 1.0 / (K - 1)
    own = np.zeros(n)
    scores = np.zeros((n, 1 if K == 2 else K))
    for t, learner in enumerate(learners):
        D = _normalised(rows.log_weight - own)
        before = float(np.exp(rows.log_weight - own).sum())
        says = _says(model, learner, rows.X)
        error = float(D[_names(says) != rows.y].sum())
        alpha = rounds["votes"][t] * (K - 1) ** 2 / K
        near = abs(error - rounds["errors"][t]) <= NEAR
        if model.stumps_ is not None:
            near &= _sides_follow(model, rows, learner, D, alpha)
        else:
            least = 0.5 / model.n_rows_
            full = 0.5 * np.log((1 - least) / least) if K == 2 else (K - 1) ** 2 / K * -np.log(least)
            near &= abs(alpha - model.learning_rate * full) <= NEAR * full
        h = np.where(rows.y == 1, 1.0, -1.0) * says[:, 0] if K == 2 else says[np.arange(n), rows.y]
        Z = float(D @ np.exp(-power * alpha * h))
        own = own + power * alpha * h
        loss = float(np.exp(rows.log_weight - own).sum())
        scores = scores + alpha * says
        yield Round(D, loss, _score_bound(rows, scores, loss), bool(near), abs(loss - before * Z) / before)


def _score_bound(rows: Rows, scores: Array, loss: float) -> float:
    """Return Σ w e^{−(f_y − max other f)/2}; for two classes it is the loss."""
    if scores.shape[1] == 1:
        return loss
    others = scores.copy()
    others[np.arange(len(scores)), rows.y] = -np.inf
    lead = scores[np.arange(len(scores)), rows.y] - others.max(axis=1)
    return float(np.exp(rows.log_weight - lead / 2).sum())


def _sides_follow(model: Any, rows: Rows, stump: Any, D: Array, alpha: float) -> bool:
    """Tell whether both sides of a confidence-rated stump say half the (smoothed) log-odds of their weights."""
    left = column_of(rows.X, stump[0]) <= stump[1]
    delta = 0.5 / len(rows.y)
    odds = []
    for side in (left, ~left if (~left).any() else left):
        odds.append(0.5 * np.log((D[side & (rows.y == 1)].sum() + delta) / (D[side & (rows.y == 0)].sum() + delta)))
    said = np.asarray(stump[2])[:, 0] * alpha / model.learning_rate
    return bool(np.allclose(said, odds, rtol=1e-7, atol=1e-9) and abs(np.abs(stump[2]).max() - 1) <= NEAR)


def _is_constant(model: Any, rows: Rows) -> bool:
    """Tell whether a model of one class has one learner that always names it, and nothing else."""
    rounds = model.rounds_
    same = [model.estimator_weights_, rounds["votes"]], [model.estimator_errors_, rounds["errors"]]
    zeros = [*same[1], model.exponential_loss_, model.training_bound_]
    good = all(np.array_equal(a, [1.0]) for a in same[0]) and all(np.array_equal(a, [0.0]) for a in zeros)
    good &= np.array_equal(rounds["removed"], [-1])
    if model.stumps_ is None:
        return bool(good and (np.asarray(model.models_[0].predict(rows.X)) == model.classes_[0]).all())
    sides = np.array([[[1.0, len(rows.y)], [0.0, 0.0]]])
    good &= np.array_equal(model.stump_sides_, sides) and bool((model.stumps_.value == -1.0).all())
    return bool(good and model.stumps_.feature.tolist() == [0] and model.stumps_.threshold.tolist() == [0.0])


def _flaw_of(model: Any, rows: Rows) -> str:
    """Say what is wrong with the shapes and ranges of the model's arrays; nothing if nothing is."""
    parts = [model, model.stumps_, model.rounds_["learners"], *(model.models_ or [])]
    if flaw := flaw_of(parts):
        return flaw
    T = len(model.rounds_["votes"])
    if len(model.estimator_weights_) != np.count_nonzero(model.rounds_["removed"] < 0):
        return "estimator_weights_ has no entry for each learner"
    for name in ("exponential_loss_", "training_bound_"):
        if np.shape(getattr(model, name)) != (T,):
            return f"{name} has no entry for each round"
    if np.shape(model.rounds_["errors"]) != (T,) or np.shape(model.rounds_["removed"]) != (T,):
        return "rounds_ has no entry for each round"
    if np.shape(model.estimator_errors_) != np.shape(model.estimator_weights_):
        return "estimator_errors_ has no entry for each learner"
    out = model.validation_rows_
    if not np.array_equal(out, rows.drawn):
        return "validation_rows_ are others"
    if np.shape(model.validation_errors_) != ((T,) if len(out) else (0,)):
        return "validation_errors_ has no entry for each round"
    return "" if model.n_rows_ == len(rows.y) else f"n_rows_ is {model.n_rows_}, not {len(rows.y)}"


def _validation_follows(model: Any, rows: Rows, learners: list[Any]) -> bool:
    """Tell whether the errors on rows held out are those of the votes; corrected votes are known of the end only."""
    X, y, weight = rows.held
    if not len(y):
        return len(model.validation_errors_) == 0
    says = [_says(model, learner, X) for learner in learners]
    votes = model.rounds_["votes"]
    removed = model.rounds_["removed"]
    last = model.variant == "totally-corrective"
    for t in range(len(learners) - 1 if last else 0, len(learners)):
        members = [s for s in range(t + 1) if not 0 <= removed[s] <= t]
        guess = _names(np.asarray(sum(votes[s] * says[s] for s in members)))
        error = float(weight[guess != y].sum() / weight.sum())
        if not abs(error - model.validation_errors_[t]) <= NEAR:
            return False
    return bool(((model.validation_errors_ >= 0) & (model.validation_errors_ <= 1)).all())


def _bounds_follow(model: Any, loss: float) -> bool:
    """Tell whether the bounds of corrected votes are their losses: of two classes they are the same."""
    return bool(np.allclose(model.training_bound_, model.exponential_loss_, rtol=NEAR, atol=0.0))


def _are_best(model: Any, rows: Rows, Ds: list[Array], stumps: list[Any]) -> NDArray[np.bool_]:
    """Tell for each round whether no stump of any column does better, and the threshold is between two values."""
    D = np.stack(Ds)
    K = model.n_classes_
    real = model.variant == "real"
    delta = 0.5 / len(rows.y) if real else 0.0
    totals = np.stack([D[:, rows.y == k].sum(axis=1) for k in range(K)], axis=1)
    best = _merit(totals, None, delta, real)  # the constant
    own = best.copy()
    placed = np.zeros(len(D), dtype=bool)
    for j in range(rows.X.shape[1]):
        x = column_of(rows.X, j)
        order = np.argsort(x, kind="stable")
        values = x[order]
        cuts = np.flatnonzero(values[1:] > values[:-1])
        below = values[cuts]
        above = values[cuts + 1]
        middle = below / 2 + above / 2
        middle = np.where((middle >= below) & (middle < above), middle, below)
        merits = np.empty((len(D), 0))
        if len(cuts):
            left = [np.cumsum(D[:, order] * (rows.y[order] == k), axis=1)[:, cuts] for k in range(K)]
            L = np.stack(left, axis=2)
            merits = _merit(L, np.maximum(totals[:, None] - L, 0.0), delta, real)
            best = np.maximum(best, merits.max(axis=1))
        for t, stump in enumerate(stumps):
            if stump[0] == j:
                at = int(np.searchsorted(middle, stump[1]))
                is_cut = at < len(middle) and middle[at] == stump[1]
                placed[t] = is_cut or stump[1] == values[-1]
                own[t] = merits[t, at] if is_cut else own[t]
    return placed & (own >= best - NEAR)


def _merit(L: Array, R: Array | None, delta: float, real: bool) -> Array:
    """Return 1 − ε, or −Z: the larger the better."""
    if not real:
        return L.max(axis=-1) + (0.0 if R is None else R.max(axis=-1))
    sides = [np.sqrt((S[..., 0] + delta) * (S[..., 1] + delta)) for S in (L, R) if S is not None]
    return -2.0 * np.sum(sides, axis=0)


def _gradient(model: Any, rows: Rows, learners: list[Any]) -> tuple[float, float]:
    """Return the projected gradient of Σ w exp(Σ a_t(1[wrong] − c)) at the votes, and the sum itself."""
    c = (model.n_classes_ - 1) / model.n_classes_
    a = np.asarray(model.rounds_["votes"], dtype=np.float64)
    wrong = [_names(_says(model, learner, rows.X)) != rows.y for learner in learners]
    E = np.exp(sum((a[t] * (wrong[t] - c) for t in range(len(a))), rows.log_weight.copy()))
    slope = np.array([float(E @ (mistakes - c)) for mistakes in wrong])
    if (a < 0).any():
        return np.inf, np.inf
    return float(np.where(a > 0, np.abs(slope), np.maximum(-slope, 0.0)).max()), float(E.sum())


# --------------------------------------------------------------------------------------------------------------------
# Stumps: where they cut, what they say, and the classes on both sides of them.


def stumps_follow(model: Any, rows: Any, D: Array | None) -> bool:
    """Tell whether the stumps of corrected votes cut between two values, say a class, and know their rows."""
    if model.stumps_ is None:
        return True
    return all(
        _is_placed(rows, stump) and sides_agree(model, rows, D, t, stump) for t, stump in enumerate(model.stumps_)
    )


def _is_placed(rows: Any, stump: Any) -> bool:
    values = np.unique(column_of(rows.X, stump[0]))
    if stump[1] == values[-1]:
        return True
    middle = values[:-1] / 2 + values[1:] / 2
    middle = np.where((middle >= values[:-1]) & (middle < values[1:]), middle, values[:-1])
    return bool((middle == stump[1]).any())


def sides_agree(model: Any, rows: Any, D: Array | None, t: int, stump: Any) -> bool:
    """Tell whether a stump's recorded sides are what D makes of them, and what it says follows from them.

    Of corrected votes D is not known any more: then only the rows, the sum and the classes are compared.
    """
    if model.variant != "real" and not _says_a_class(stump[2], model.n_classes_):
        return False
    members = np.flatnonzero(model.rounds_["removed"] < 0)
    if t not in members and D is not None:
        return True  # removed later: it has no entry
    recorded = model.stump_sides_[int(np.searchsorted(members, t)) if D is not None else t]
    right = column_of(rows.X, stump[0]) > stump[1]
    if not np.array_equal(recorded[:, -1], [np.count_nonzero(~right), np.count_nonzero(right)]):
        return False
    K = model.n_classes_
    if D is None:
        present = np.array([[(rows.y[side] == k).any() for k in range(K)] for side in (~right, right)])
        says = [int(value[0] > 0) if len(value) == 1 else int(value.argmax()) for value in stump[2]]
        sided = [s for s in (0, 1) if recorded[s, -1] > 0]
        follows = all(recorded[s, says[s]] >= recorded[s, :-1].max() - NEAR for s in sided)
        return bool(follows and abs(recorded[:, :-1].sum() - 1) <= NEAR and not recorded[:, :-1][~present].any())
    wanted = np.array([[D[side & (rows.y == k)].sum() for k in range(K)] for side in (~right, right)])
    return bool(np.allclose(recorded[:, :-1], wanted, rtol=0.0, atol=NEAR))


def _says_a_class(value: Any, K: int) -> bool:
    """Tell whether both sides name a class: ±1 of two, else 1 for one class and −1/(K−1) for the others."""
    value = np.asarray(value)
    if K == 2:
        return bool((np.abs(value) == 1.0).all())
    return bool((np.sort(value, axis=1) == np.r_[np.full(K - 1, -1.0 / (K - 1)), 1.0]).all())


def column_of(X: Any, j: int) -> Array:
    """Return a column of a dense or sparse table."""
    return X[:, [j]].toarray().ravel() if sp.issparse(X) else np.asarray(X[:, j], dtype=np.float64)


# --------------------------------------------------------------------------------------------------------------------
# AdaBoost.R2: distributions, errors and weights are replayed, trees walked again.


@np.errstate(all="ignore")
def adaboost_regressor(model: Any, X: Any, y: Any, sample_weight: Any) -> Recheck:
    """Recompute the certificate of an AdaBoostRegressor: replay its distributions, errors and weights.

    Trees are walked again on the rows that were drawn for them; what other regressors were fitted to is not judged.
    """
    rows = read_rows(model, X, y, sample_weight)
    T = len(model.estimator_weights_)
    flaw = flaw_of([model, *(model.models_ or [])])
    if not flaw and (np.shape(model.estimator_errors_) != (T,) or model.certificate_.n_iter != T):
        flaw = f"there are {T} weights, {np.size(model.estimator_errors_)} errors, {model.certificate_.n_iter} rounds"
    if flaw:
        return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but {flaw}")
    D = np.exp(rows.log_weight)
    value = 0.0
    for t, predicted in enumerate(_regressions(model, rows.X)):
        if model.trees_ is not None and not _tree_follows(model, rows, D, t):
            return Recheck(np.inf, 0.0, f"{rows.fingerprint}, but tree {t} does not follow from its rows")
        error = np.abs(predicted - rows.y)
        L = error / error.max() if error.max() > 0 else error
        L = {"linear": L, "square": L * L, "exponential": 1 - np.exp(-L)}[model.loss]
        mean = float((D * L).sum())
        recorded = float(model.estimator_errors_[t])
        if mean <= 0:
            right = float(model.estimator_weights_[:t].sum() + 1.0)
        else:
            right = float(model.learning_rate * np.log((1 - mean) / mean)) if mean < 0.5 else 1.0
        value = max(value, abs(mean - recorded), abs(float(model.estimator_weights_[t]) - right) / max(1.0, abs(right)))
        D = D * (mean / (1 - mean)) ** ((1 - L) * model.learning_rate) if 0 < mean < 0.5 else D
        D = D / D.sum()
    return Recheck(value if value == value else np.inf, ROUNDING, rows.fingerprint)


def _tree_follows(model: Any, rows: Rows, D: Array, number: int) -> bool:
    """Tell whether a tree of depth three is what the rows drawn from D make of it."""
    n = len(rows.y)
    counts = np.bincount(drawn_rows(model.seed_, number, n, n, D), minlength=n).astype(np.float64)
    rule = Rules(Limits(max_depth=3), np.zeros(model.n_features_in_, dtype=bool), True)
    scores = scores_for("squared_error", rows.y, [], counts)
    walk = TreeWalk(model.trees_.tree(number), rows.X, rows.X, counts, scores, rule, 0)
    return walk.shortfall() <= AGREE


def _regressions(model: Any, X: Any) -> Iterator[Array]:
    """Yield what each regressor predicts; trees are walked row by row of nodes, in plain NumPy."""
    if model.trees_ is None:
        for learner in model.models_:
            yield np.asarray(learner.predict(X), dtype=np.float64).ravel()
        return
    for number in range(model.trees_.n_trees):
        learner = model.trees_.tree(number)
        yield learner.value[leaves_of(learner, columns_of(X), X.shape[0]), 0]
