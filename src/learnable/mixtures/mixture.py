r"""Mixtures of any exponential family.

    p(x) = Σₖ πₖ pₖ(x),    pₖ a member of one family: normal, Poisson, Gamma, Bernoulli, multinomial, Dirichlet, …

The fit climbs Σᵢ wᵢ log p(xᵢ) + log prior to a local maximum: by EM (`families.py` has the two steps, `solvers/em.py`
the driver), or, for comparison, by gradient ascent on the same function (`NegativeLikelihood`).

Reference: A. Dempster, N. Laird and D. Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39
(1977), 1–38.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .. import probability
from ..core import (
    MAX_ITER,
    TOLERANCE,
    AnyArray,
    Boolean,
    Certificate,
    DataError,
    Matches,
    ModelFileError,
    Nothing,
    Number,
    Options,
    ParameterError,
    fitted,
    param,
)
from ..data.blocks import Blocks, Part, add_each, map_reduce
from ..data.door import Table, door, read_features
from ..meta.splits import as_generator
from ..probability import ExponentialFamily, MultivariateNormal, Normal
from ..solvers.em import EMResult, em_in_time
from ..solvers.lab.minimize import minimize
from ..solvers.problem import Evaluation, Moment
from .base import InformationCriteria, MixtureBase
from .families import FamilyMixture, Members, NormalFamily, as_events, chunks, log_joint
from .starts import check_enough_rows, responsibilities, sample_rows, seconds_left, table_moments

#: Parameters of one member, where they are fewer than the entries of t(x); d is the number of columns.
_FREE = {
    "Categorical": lambda d, S: S - 1,
    "Multinomial": lambda d, S: S - 1,
    "MultivariateNormal": lambda d, S: d + d * (d + 1) // 2,
    "Wishart": lambda d, S: 1 + round(d**0.5) * (round(d**0.5) + 1) // 2,
    "InverseWishart": lambda d, S: 1 + round(d**0.5) * (round(d**0.5) + 1) // 2,
}


class MixtureModel(InformationCriteria, MixtureBase):
    """A mixture of members of an exponential family: max Σᵢ wᵢ log Σₖ πₖ pₖ(xᵢ) + log prior.

    A family of numbers (`Normal`, `Poisson`, `Gamma`, `Bernoulli`, …) is taken for each column, independently given the
    component; a family of vectors (`MultivariateNormal`, `Multinomial`, `Dirichlet`) for the row; one of matrices
    (`Wishart`) for rows that hold a matrix row by row. Memory besides X: O(K) parameters and a few thousand rows.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import MixtureModel
    >>> counts = np.array([1, 0, 2, 1, 3, 11, 9, 12, 10, 8])[:, None]
    >>> model = MixtureModel("Poisson", 2, random_state=0).fit(counts)
    >>> np.sort(model.parameters_["rate"].ravel()).round(1)
    array([1.4, 9.9])
    >>> model.predict_proba([[5]]).max().round(2)
    np.float64(0.79)
    """

    _theory = "mixture"

    component: Any = param(
        Matches(lambda v: _family(v) is not None, "an exponential family of learnable.probability"),
        "An exponential family of `learnable.probability`. Models with a name can be saved.",
        default="Normal",
        kw_only=False,
    )
    known: dict[str, Any] | None = param(
        Nothing() | Matches(lambda v: isinstance(v, dict), "a dict"),
        'Parameters that are known: `{"n": 10}` of a Binomial or Multinomial, `{"n_categories": 4}` of a '
        "Categorical. The latter two are read off the rows if left out.",
        default=None,
    )
    solver: str = param(
        Options("em", "gd", "lbfgs"),
        "EM, or steepest ascent or L-BFGS on the same likelihood, in natural parameters.",
        default="em",
    )
    accelerate: bool = param(
        Boolean(), "Whether EM steps are extrapolated (SQUAREM); the objective never falls either way.", default=False
    )
    prior: Any = param(
        Nothing() | Options("default") | Matches(lambda v: isinstance(v, dict), "a dict"),
        "A dict may have `rows` κ and `alpha` α: −κ Σₖ KL(q‖pₖ) + (α − 1) Σₖ log πₖ is added to the "
        "objective, where q is the family's fit to all rows. It counts as κ more rows of each component, "
        'distributed like the table, and no component can collapse. "default" is κ = 1, α = 1.',
        default=None,
    )
    tol: float = param(
        TOLERANCE, "A climb ends when a step adds no more than this to the objective per unit of weight.", default=1e-4
    )
    max_iter: int = param(MAX_ITER, "Steps of one restart.", default=500)
    _positional: ClassVar[tuple[str, ...]] = ("component", "n_components")

    parameters_: dict[str, AnyArray] = fitted(
        "dict of arrays",
        "The parameters of the components by name, as the family's constructor takes them; `densities()` returns the "
        "components themselves.",
    )
    means_: AnyArray = fitted("array of shape (n_components, n_features)", "The means of the components.")
    family_: str = fitted("str", "The family's name.")

    _door = staticmethod(door(target="none", sparse=False))
    _remedy = "raise max_iter or tol"

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner = type(self).__name__
        K = self.n_components
        family = _family(self.component)
        check_enough_rows(owner, table.n_rows, max(2, K), "n_components" if K > 1 else "2 rows; n_components")
        blocks, known = self._blocks(table)
        rows, alpha = prior_of(owner, self.prior)
        weight = float(table.weight_sum)
        with np.errstate(over="ignore", invalid="ignore"):
            problem = family_problem(owner, family, K, blocks, self.known or {}, rows, alpha, self.n_jobs)
        if self.warm_start and hasattr(run.previous, "parameters_") and run.previous.family_ == family.__name__:
            starts = iter([run.previous._members()])
        else:
            starts = self._starts(problem, blocks, known, run)
        try:
            found = self._climb(problem, blocks, starts, weight, run)
        except (DataError, ParameterError) as error:
            raise DataError(
                f"{owner}: a component has no {family.__name__} distribution of greatest likelihood, because too few "
                "different rows belong to it. Ask for fewer components, or set prior='default'."
            ) from error
        self._set_members(found.parameters)
        if known is not None:
            self.known_labels_ = known
        self.converged_ = bool(found.converged)
        self.n_iter_ = max(1, found.n_iter)
        self.lower_bound_ = found.bound / weight
        self.bound_history_ = found.history / weight
        rise = max(found.rise, 0.0) / weight
        return Certificate("ascent", value=rise, tolerance=self.tol, n_iter=self.n_iter_)

    def _climb(self, problem: FamilyMixture, blocks: Any, starts: Iterator[Members], weight: float, run: Any) -> Any:
        if self.solver != "em":
            objective = NegativeLikelihood(problem, blocks, weight, self.n_jobs, run.flag)
            return ascend(objective, starts, method=self.solver, tol=self.tol, max_iter=self.max_iter, run=run)
        extrapolation = {"pack": problem.pack, "unpack": problem.unpack} if self.accelerate else {}
        return em_in_time(
            problem,
            blocks,
            starts,
            run.should_stop if self.max_seconds is not None else None,
            owner=type(self).__name__,
            tol=self.tol * weight,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            flag=run.flag,
            progress=run.progress,
            rounding=1e-10 * weight,
            **extrapolation,  # type: ignore[arg-type]
        )

    def _starts(self, problem: FamilyMixture, blocks: Any, known: AnyArray | None, run: Any) -> Iterator[Members]:
        rng = as_generator(self.random_state)
        K = self.n_components
        X, weight = sample_rows(blocks, int(blocks.n_rows))
        X = np.asarray(X, dtype=np.float64)
        codes = problem.family.__name__ == "Categorical"  # distances of codes mean nothing, those of indicators do
        features = problem.statistic(X).reshape(len(X), -1) if codes else X
        for _ in range(self.n_init):
            r = responsibilities(self.init_params, features, weight, K, rng, seconds_left(self.max_seconds, run))
            if known is not None and len(known) == len(X):
                given = np.flatnonzero(known >= 0)
                r[given] = np.eye(K)[known[given]]
            yield problem.start(X, r * weight[:, None])

    def densities(self) -> list[Any]:
        """Return the components as distributions: of all columns, independent, or of the row."""
        check_is_fitted(self)
        members = self._members().densities
        return [members[k] for k in range(self.n_components)]

    def _draw(self, counts: AnyArray, rng: np.random.Generator) -> AnyArray:
        rows = [
            np.asarray(density.sample(int(n), rng)).reshape(n, -1)
            for density, n in zip(self.densities(), counts, strict=True)
            if n > 0
        ]
        return np.concatenate(rows)

    def _n_parameters(self) -> int:
        members = self._members().densities
        statistic = np.asarray(members.mean_statistic)
        d = self.n_features_in_
        S = statistic.shape[-1]
        one = _FREE.get(self.family_, lambda d, S: S)(d, S)
        copies = d if members._event_rank == 0 else 1
        return self.n_components * (one * copies + 1) - 1

    def _log_joint(self, X: Any) -> AnyArray:
        X = read_features(self, X, sparse=False)
        mixture = self._members()
        out = np.empty((self.n_components, X.shape[0]))

        def work(block: Any) -> None:
            done = block.start
            for rows, _, _ in chunks(block):
                out[:, done : done + len(rows)] = log_joint(mixture, rows)
                done += len(rows)

        map_reduce(Blocks([Part(X)]), work, lambda a, b: None, n_jobs=self.n_jobs)
        return out

    def _members(self) -> Members:
        return Members(self.weights_, getattr(probability, self.family_)(**self.parameters_))

    def _set_members(self, mixture: Members) -> None:
        members = mixture.densities
        self.family_ = type(members).__name__
        self.weights_ = np.ascontiguousarray(mixture.weights)
        self.parameters_ = {name: np.array(value) for name, value in members.parameters.items()}
        self.means_ = np.array(members.mean).reshape(self.n_components, -1)

    def _check_loaded(self) -> None:
        if not hasattr(self, "weights_"):
            return
        owner = type(self).__name__
        K = self.n_components
        if not isinstance(self.weights_, np.ndarray) or self.weights_.shape != (K,) or _family(self.family_) is None:
            raise ModelFileError(f"{owner}: weights_ must be an array of shape {(K,)}, family_ an exponential family.")
        if not (self.weights_ >= 0).all() or not abs(self.weights_.sum() - 1) < 1e-6:
            raise ModelFileError(f"{owner}: weights_ must be probabilities.")
        try:
            members = self._members().densities
        except (ParameterError, TypeError, AttributeError, ValueError) as error:
            raise ModelFileError(f"{owner}: parameters_ are no {self.family_}: {error}") from None
        rank = members._event_rank
        d = self.n_features_in_
        size = round(float(np.sqrt(d)))
        wanted = {0: ((K, d), ()), 1: ((K,), (d,)), 2: ((K,), (size, size))}[rank]
        if (members.batch_shape, members.event_shape) != wanted:
            raise ModelFileError(f"{owner}: parameters_ must be those of {K} components of {d} columns.")


def prior_of(owner: str, prior: Any) -> tuple[float, float]:
    """Return κ and α of a prior that is None, "default" or a dict."""
    given = {"rows": 1.0} if isinstance(prior, str) else prior or {}
    unknown = set(given) - {"rows", "alpha"}
    if unknown:
        raise ParameterError(f"{owner}: prior must have keys among alpha, rows; got {sorted(unknown)[0]!r}.")
    rows = float(given.get("rows", 0.0))
    alpha = float(given.get("alpha", 1.0))
    if not rows >= 0 or not alpha >= 1 or not np.isfinite(rows + alpha):
        raise ParameterError(f"{owner}: prior must have rows >= 0 and alpha >= 1; got {rows} and {alpha}.")
    return rows, alpha


def _family(value: Any) -> Any:
    """Return the family that a name or a class stands for, or None."""
    found: Any = getattr(probability, value, None) if isinstance(value, str) and value in dir(probability) else value
    return found if is_family(found) and getattr(probability, found.__name__, None) is found else None


# Gradient ascent on the likelihood of a mixture: the other way up the hill that EM climbs.
#
# By Fisher's identity the gradient of log p(x) is the expectation of that of log p(x, z) given x, so that it needs
# what
# an E-step leaves: $N_k$ and $T_k$. In natural parameters and logarithms of the weights,
#
# $$ \partial_{\eta_k} = T_k - N_k\,\mathbb{E}_k[t], \qquad \partial_{\log\pi_k} = N_k - \pi_k\sum_j N_j. $$
#
# EM goes to the member with the mean statistic T/N at once, and needs no step length; the gradient needs a line
# search.
# A climb stops where an EM step would add no more than `tol`, so that both end with the same certificate.
#
# Reference: L. Xu and M. Jordan, On convergence properties of the EM algorithm for Gaussian mixtures, Neural
# Computation
# 8 (1996), 129–151.

_ROUNDS = 6  # of smaller tolerances, until the rise of an EM step is small enough too


class NegativeLikelihood:
    """−(log-likelihood + log-prior)/W of a mixture, as a function of its packed parameters.

    Its measure is what the M-step adds to the expected log-likelihood, per unit of weight: zero at a stationary point.
    """

    def __init__(self, problem: Any, blocks: Any, weight: float, n_jobs: int | None = None, flag: Any = None) -> None:
        self.problem = problem
        self.blocks = blocks
        self.weight = weight
        self.n_jobs = n_jobs
        self.flag = flag

    def at(self, mixture: Any) -> tuple[tuple[Any, ...], float]:
        """Return the expected statistics and the objective, not divided."""
        expectation = partial(_expect, self.problem, mixture)
        statistics, likelihood = map_reduce(self.blocks, expectation, _merge, n_jobs=self.n_jobs, flag=self.flag)
        return statistics, likelihood + self.problem.log_prior(mixture)

    def evaluate(self, z: AnyArray) -> Evaluation:
        """Return value, gradient and measure; infinite where the vector stands for no mixture."""
        mixture = self.problem.unpack(z)
        if mixture is None:
            return Evaluation(np.inf, np.zeros_like(z), np.inf)
        statistics, objective = self.at(mixture)
        if not np.isfinite(objective):
            return Evaluation(np.inf, np.zeros_like(z), np.inf)
        gain = self.problem.gain(statistics, mixture, self.problem.maximisation(statistics, mixture))
        gradient = self.problem.gradient(statistics, mixture) / self.weight
        return Evaluation(-objective / self.weight, -gradient, abs(gain) / self.weight)


def ascend(
    objective: NegativeLikelihood, starts: Iterable[Any], *, method: str, tol: float, max_iter: int, run: Any
) -> Any:
    """Climb from every start in turn, and return the best, as `em` does.

    Parameters
    ----------
    objective : NegativeLikelihood
        What is minimised.
    starts : iterable of mixtures
        Where to begin.
    method : {"gd", "lbfgs"}
        Steepest ascent with a line search, or L-BFGS.
    tol : float
        What an EM step may still add, per unit of weight.
    max_iter : int
        Iterations from each start.
    run : Run
        The clock and the callbacks.
    """
    climbs = []
    for start in starts:
        climbs.append(_climb(objective, start, method, tol, max_iter, run))
        if run.should_stop():
            break
    bounds = np.array([climb.bound for climb in climbs])
    best = int(bounds.argmax())
    return climbs[best]._replace(start=best, bounds=bounds)


def _climb(
    objective: NegativeLikelihood, start: Any, method: str, tol: float, max_iter: int, run: Any
) -> EMResult[Any]:
    weight = objective.weight
    z = objective.problem.pack(start)
    history: list[float] = []

    def watch(moment: Moment) -> bool:
        if not history or moment.iteration > 0:
            history.append(-moment.value * weight)
        return bool(run.progress(len(history), history[-1]))

    mixture = start
    bound = -np.inf
    rise = np.inf
    goal = tol
    used = 0
    for _ in range(_ROUNDS):
        found = minimize(
            objective, z, method=method, callback=watch, tol=goal, max_iter=max_iter - used, keep_path=False
        )
        z = found.x
        used = used + found.n_iter
        mixture = objective.problem.unpack(z)
        statistics, bound = objective.at(mixture)
        rise = objective.at(objective.problem.maximisation(statistics, mixture))[1] - bound
        if rise <= tol * weight or used >= max_iter or (found.n_iter == 0 and goal < tol) or run.should_stop():
            break
        goal *= 0.2
    kept = np.maximum.accumulate(history)  # a line search may take a step that rounding makes a little worse
    return EMResult(mixture, bound, rise, used, kept, bool(rise <= tol * weight), 0, np.array([bound]))


def _expect(problem: Any, mixture: Any, block: Any) -> Any:
    return problem.expectation(block, mixture)


def _merge(a: Any, b: Any) -> Any:
    return add_each(a[0], b[0]), float(a[1]) + float(b[1])


# What a mixture of an exponential family needs to know of a table before it starts.
#
# One pass finds the total weight, the mean of t(x), its spread and its largest entries, and refuses rows that no
# member
# of the family can produce. The mean gives the member of greatest likelihood of the whole table, about which the
# prior is
# centred and from which components start. Normal families need the mean and the covariance instead.

_MOST_CATEGORIES = 100_000  # a guard against a code that is a mistake: a table has a column for each


def family_problem(
    owner: str, family: type[Any], K: int, blocks: Any, given: dict[str, Any], rows: float, alpha: float, n_jobs: Any
) -> FamilyMixture:
    """Return the two steps for a table; raise DataError where the family does not fit its rows.

    Parameters
    ----------
    given : dict
        Parameters that are known: the n of Binomial and Multinomial, the n_categories of Categorical.
    """
    d = int(blocks.n_columns)
    if family in (Normal, MultivariateNormal):
        mean, cov = table_moments(blocks, n_jobs)
        if not np.isfinite(cov).all():
            raise DataError(f"{owner}: X has numbers whose squares overflow. Divide the columns by their spread.")
        flat = np.flatnonzero(~(np.diag(cov) > 0))
        if flat.size:
            raise DataError(
                f"{owner}: column {flat[0]} is constant, or its squares underflow, and a normal density of it is "
                "unbounded; leave it out, or rescale it."
            )
        vector = family is MultivariateNormal
        spread = np.sqrt(np.diag(cov))
        if vector and not np.linalg.eigvalsh(cov / np.outer(spread, spread))[0] > 1e-13 * d:
            raise DataError(f"{owner}: columns of X depend on each other, or are more than its rows; leave some out.")
        example = MultivariateNormal(np.zeros(d), np.eye(d)) if vector else Normal()
        return NormalFamily(example, K, mean, cov, rows, alpha)
    example, known = _example(owner, family, d, blocks, given, n_jobs)
    weight, total, squares, reach = map_reduce(
        blocks, partial(_statistics, owner, example), _merge_moments, n_jobs=n_jobs
    )
    try:
        centre = family.from_mean_statistic(total / weight, **known)
    except (DataError, ParameterError) as error:
        raise DataError(
            f"{owner}: the rows have no {family.__name__} distribution of greatest likelihood: {error}"
        ) from None
    problem = FamilyMixture(example, K, known, centre, rows, alpha)
    problem.reach = reach
    spread = np.sqrt(np.maximum(squares / weight - np.square(total / weight), 0.0))
    problem.spread = np.where((spread > 0) & np.isfinite(spread), spread, 1.0)
    return problem


def _example(
    owner: str, family: type[Any], d: int, blocks: Any, given: dict[str, Any], n_jobs: Any
) -> tuple[Any, dict[str, Any]]:
    """Return a member that lends t(x), and what `from_mean_statistic` takes besides the means."""
    name = family.__name__
    allowed = {"Binomial": {"n"}, "Multinomial": {"n"}, "Categorical": {"n_categories"}}.get(name, set())
    if set(given) - allowed:
        raise ParameterError(f"{owner}: known has {sorted(set(given) - allowed)[0]!r}, which {name} does not know.")
    for key, value in given.items():
        if not Number(low=1, integer=True).allows(value):
            raise ParameterError(f"{owner}: known[{key!r}] must be an integer >= 1; got {value!r}.")
    if name == "Categorical":
        C = int(given.get("n_categories", map_reduce(blocks, _largest, max, n_jobs=n_jobs) + 1))
        if C > _MOST_CATEGORIES:
            raise DataError(f"{owner}: codes of categories reach {C - 1}; number the categories from 0 on.")
        return family(np.full(max(C, 1), 1 / max(C, 1))), {}
    if name == "Binomial":
        if "n" not in given:
            raise ParameterError(f"{owner}: a Binomial needs its number of trials: known={{'n': 10}}, say.")
        return family(given["n"], 0.5), {"n": float(given["n"])}
    if name == "Multinomial":
        n = float(given.get("n", np.asarray(blocks.head().X[0]).sum()))
        return family(n, np.full(d, 1 / d)), {"n": n}
    if family._event_rank == 2:
        size = round(float(np.sqrt(d)))
        if size * size != d:
            raise DataError(f"{owner}: a {name} needs rows that are square matrices, row by row; got {d} columns.")
        return family(size + 1.0, np.eye(size)), {}
    if name == "Dirichlet":
        return family(np.ones(d)), {}
    return family(*([0.5] if name == "Bernoulli" else [1.0])), {}


def is_family(value: Any) -> bool:
    """Tell whether a class is an exponential family that mixtures can have."""
    return isinstance(value, type) and issubclass(value, ExponentialFamily)


@np.errstate(over="ignore")
def _statistics(owner: str, example: Any, block: Any) -> tuple[float, AnyArray, AnyArray, AnyArray]:
    """Weight, sum of t(x), of its squares, and its largest entries; rows outside the support are refused."""
    weight = 0.0
    total: Any = 0.0
    squares: Any = 0.0
    reach: Any = 0.0
    for X, w, _ in chunks(block):
        events = as_events(type(example), X)
        t = np.asarray(example.sufficient_statistic(events))
        if np.isneginf(example.log_base_measure(events)).any() or not np.isfinite(t).all():
            name = type(example).__name__
            support = example._support
            raise DataError(f"{owner}: {name} needs rows that are {support}; X has others.")
        weight = weight + float(w.sum())
        total = total + np.tensordot(w, t, axes=1)
        squares = squares + np.tensordot(w, np.square(t), axes=1)
        reach = np.maximum(reach, np.abs(t).max(axis=0))
    return weight, np.asarray(total), np.asarray(squares), np.asarray(reach)


def _largest(block: Any) -> float:
    return float(np.max(block.X))


def _merge_moments(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
    return a[0] + b[0], a[1] + b[1], a[2] + b[2], np.maximum(a[3], b[3])
