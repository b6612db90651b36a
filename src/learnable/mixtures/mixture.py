r"""Mixtures of any exponential family.

    p(x) = Σₖ πₖ pₖ(x),    pₖ a member of one family: normal, Poisson, Gamma, Bernoulli, multinomial, Dirichlet, …

The fit climbs Σᵢ wᵢ log p(xᵢ) + log prior to a local maximum: by EM (`families.py` has the two steps, `solvers/em.py`
the driver), or, for comparison, by gradient ascent on the same function (`ascent.py`).

Reference: A. Dempster, N. Laird and D. Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39
(1977), 1–38.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .. import probability
from ..core.certificate import Certificate
from ..core.declare import param
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.parameters import (
    MAX_ITER,
    TOLERANCE,
    Boolean,
    Matches,
    Nothing,
    Options,
)
from ..data.blocks import Blocks, Part, map_reduce
from ..data.door import Table, door, read_features
from ..meta.splits import as_generator
from ..solvers.em import em_in_time
from .ascent import NegativeLikelihood, ascend
from .base import InformationCriteria, MixtureBase
from .families import FamilyMixture, Members, chunks, log_joint
from .family_table import family_problem, is_family
from .gaussian_starts import responsibilities, seconds_left
from .starts import check_enough_rows, sample_rows

Array = NDArray[Any]

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

    Attributes
    ----------
    weights_ : array of shape (K,)
        π.
    parameters_ : dict of arrays
        The parameters of the components by name, as the family's constructor takes them; `densities()` returns the
        components themselves.
    means_ : array of shape (K, d)
        The means of the components.
    family_ : str
        The family's name.
    converged_ : bool
        Whether the tolerance was reached.
    n_iter_ : int
        Steps of the best restart.
    lower_bound_ : float
        The objective per unit of weight.
    bound_history_ : array
        The objective per unit of weight at the start and after each step; never falls.
    known_labels_ : array of shape (n_samples,)
        The `labels` of the rows with weight, if any were given.
    certificate_ : Certificate
        What one more EM step would add to `lower_bound_`.

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

    _door = staticmethod(door(target="none", sparse=False))
    _remedy = "raise max_iter or tol"

    def _fit(self, table: Table, run: Any) -> Certificate:
        owner, K, family = type(self).__name__, self.n_components, _family(self.component)
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
        self.converged_, self.n_iter_ = bool(found.converged), max(1, found.n_iter)
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

    def _starts(self, problem: FamilyMixture, blocks: Any, known: Array | None, run: Any) -> Iterator[Members]:
        rng, K = as_generator(self.random_state), self.n_components
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

    def _draw(self, counts: Array, rng: np.random.Generator) -> Array:
        rows = [
            np.asarray(density.sample(int(n), rng)).reshape(n, -1)
            for density, n in zip(self.densities(), counts, strict=True)
            if n > 0
        ]
        return np.concatenate(rows)

    def _n_parameters(self) -> int:
        members = self._members().densities
        statistic = np.asarray(members.mean_statistic)
        d, S = self.n_features_in_, statistic.shape[-1]
        one = _FREE.get(self.family_, lambda d, S: S)(d, S)
        copies = d if members._event_rank == 0 else 1
        return self.n_components * (one * copies + 1) - 1

    def _log_joint(self, X: Any) -> Array:
        check_is_fitted(self)
        X = read_features(self, X, sparse=False)
        mixture, out = self._members(), np.empty((self.n_components, X.shape[0]))

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
        owner, K = type(self).__name__, self.n_components
        if not isinstance(self.weights_, np.ndarray) or self.weights_.shape != (K,) or _family(self.family_) is None:
            raise ModelFileError(f"{owner}: weights_ must be an array of shape {(K,)}, family_ an exponential family.")
        if not (self.weights_ >= 0).all() or not abs(self.weights_.sum() - 1) < 1e-6:
            raise ModelFileError(f"{owner}: weights_ must be probabilities.")
        try:
            members = self._members().densities
        except (ParameterError, TypeError, AttributeError, ValueError) as error:
            raise ModelFileError(f"{owner}: parameters_ are no {self.family_}: {error}") from None
        rank, d = members._event_rank, self.n_features_in_
        size = round(float(np.sqrt(d)))
        wanted = {0: ((K, d), ()), 1: ((K,), (d,)), 2: ((K,), (size, size))}[rank]
        if (members.batch_shape, members.event_shape) != wanted:
            raise ModelFileError(f"{owner}: parameters_ must be those of {K} components of {d} columns.")


def prior_of(owner: str, prior: Any) -> tuple[float, float]:
    """Return κ and α of a prior that is None, "default" or a dict."""
    given = {} if prior is None else {"rows": 1.0} if isinstance(prior, str) else prior
    unknown = set(given) - {"rows", "alpha"}
    if unknown:
        raise ParameterError(f"{owner}: prior must have keys among alpha, rows; got {sorted(unknown)[0]!r}.")
    rows, alpha = float(given.get("rows", 0.0)), float(given.get("alpha", 1.0))
    if not rows >= 0 or not alpha >= 1 or not np.isfinite(rows + alpha):
        raise ParameterError(f"{owner}: prior must have rows >= 0 and alpha >= 1; got {rows} and {alpha}.")
    return rows, alpha


def _family(value: Any) -> Any:
    """Return the family that a name or a class stands for, or None."""
    found: Any = getattr(probability, value, None) if isinstance(value, str) and value in dir(probability) else value
    return found if is_family(found) and getattr(probability, found.__name__, None) is found else None
