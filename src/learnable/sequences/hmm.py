r"""What all hidden Markov models share: the fit by expectation–maximisation, and every question about hidden states.

A model has a first law π, transitions A and emissions p(x | z = k). Baum–Welch maximises

$$ \sum_s \log p(x^{(s)} \mid \pi, A, \theta) + \log p(\pi) + \log p(A) + \log p(\theta) $$

over sequences s. The E-step is forward–backward (`inference.py`); the M-step divides expected counts:
π_k ∝ γ_1(k) + a_k − 1, A_ij ∝ Σ_t P(z_t = i, z_{t+1} = j | x) + a_ij − 1, with Dirichlet parameters a ≥ 1; transitions
that are zero stay zero.

References: L. Baum, T. Petrie, G. Soules and N. Weiss, A maximization technique occurring in the statistical analysis
of probabilistic functions of Markov chains, Annals of Mathematical Statistics 41 (1970), 164–171; L. Rabiner (1989).
"""

from __future__ import annotations

import logging
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from ..core import (
    MAX_SECONDS,
    N_JOBS,
    RANDOM_STATE,
    TOLERANCE,
    AnyArray,
    ArrayLike,
    Boolean,
    Certificate,
    DataError,
    Estimator,
    Matches,
    ModelFileError,
    Number,
    Options,
    ParameterError,
    Run,
    fitted,
    param,
    resolve_n_jobs,
    tags,
)
from ..solvers.em import em_in_time
from .baum_welch import (
    BaumWelch,
    Frames,
    Parameters,
    SequenceTable,
    Theta,
    allowed_moves,
    check_probabilities,
    cut_sequences,
    frames_of,
    read_sequences,
    smooth,
)
from .inference import best_path, draw_paths, filtered, pairwise
from .markov import MarkovChain

_LOG = logging.getLogger(__name__)

_AT_LEAST_ONE = Number(low=1.0)

PRIOR = _AT_LEAST_ONE | ArrayLike(_AT_LEAST_ONE)

LETTERS = Matches(lambda v: isinstance(v, str), "a string of letters")


class HiddenMarkovModel(Estimator, ABC):
    """A hidden Markov model; its emissions are the subclass's."""

    n_components: int = param(Number(low=1, integer=True), "Number of states, K.", default=1, kw_only=False)
    startprob_prior: Any = param(PRIOR, "Dirichlet parameters of π, ≥ 1.", default=1.0, kw_only=False)
    transmat_prior: Any = param(PRIOR, "Dirichlet parameters of the rows of A, ≥ 1.", default=1.0, kw_only=False)
    structure: Any = param(
        Options("left-right", "banded")
        | Matches(lambda v: v is None or np.ndim(v) == 2, "a square table of what is allowed, or None"),
        'Which transitions a drawn start may have; what is zero stays zero. "left-right" begins in state 0.',
        default=None,
    )
    algorithm: str = param(
        Options("viterbi", "map"),
        "How `predict` finds states: the most likely path, or the most likely state of each row.",
        default="viterbi",
    )
    random_state: Any = param(RANDOM_STATE, "Draws the starts.", default=None)
    n_iter: int = param(Number(low=0, integer=True), "Most steps of a climb.", default=10)
    tol: float = param(TOLERANCE, "A climb ends when a step adds no more to the objective.", default=1e-2)
    n_init: int = param(Number(low=1, integer=True), "Starts; the best climb is kept.", default=1)
    verbose: bool = param(Boolean(), "Accepted for compatibility; callbacks show progress.", default=False)
    params: str = param(
        LETTERS,
        "Which parameters are estimated, by their letters: s (π), t (A). The others are taken from the attributes.",
        default="st",
    )
    init_params: str = param(
        LETTERS, "Which parameters start anew; the others are taken from the attributes.", default="st"
    )
    implementation: str = param(
        Options("log", "scaling"),
        "Accepted for compatibility; sums are scaled, and logarithms taken where that is not exact.",
        default="log",
    )
    max_seconds: float | None = param(MAX_SECONDS, "Time limit.", default=None)
    n_jobs: int | None = param(N_JOBS, "Threads; the result does not depend on it.", default=None)

    startprob_: AnyArray = fitted("(n_components,)", "π.", low=0.0, high=1.0)
    transmat_: AnyArray = fitted("(n_components, n_components)", "A.", low=0.0, high=1.0)
    bound_history_: AnyArray = fitted("(n_steps,)", "The objective after each step; `n_iter_` + 1 numbers.")
    n_iter_: int = fitted("int", "Steps.")
    converged_: bool = fitted("bool", "Whether the last step added no more than `tol`.")

    _remedy = "raise n_iter, or tol"
    #: Letter of each emission parameter in `params` and `init_params`, and its attribute.
    _letters: ClassVar[dict[str, str]] = {}
    _tags = tags(allow_nan=True, required=False)

    # What hmmlearn's users read besides

    @property
    def monitor_(self) -> Any:
        """The objective of each step, as hmmlearn's ConvergenceMonitor; one that is set is told after a fit."""
        monitor = getattr(self, "_monitor", None)
        if monitor is not None:
            return monitor
        steps = getattr(self, "_steps", getattr(self, "bound_history_", []))
        return replay(ConvergenceMonitor(self.tol, self.n_iter, self.verbose), steps)

    @monitor_.setter
    def monitor_(self, monitor: Any) -> None:
        self._monitor = monitor

    @property
    def n_features(self) -> Any:
        """How many columns an observation has (how many symbols there are); None before it is known."""
        return self._known_features()

    @n_features.setter
    def n_features(self, value: Any) -> None:
        self._given_features = value

    def _known_features(self) -> Any:
        return getattr(self, "n_features_in_", self.__dict__.get("_given_features"))

    # What a subclass states of its emissions.

    def _check_rows(self, X: AnyArray) -> None:
        """Raise DataError unless the numbers are ones that the emissions can have."""

    def _encode(self, X: AnyArray) -> tuple[AnyArray, AnyArray]:
        """Return the distinct observations and the number of each row's; or the rows and nothing."""
        return X, np.empty(0, dtype=np.int64)

    @abstractmethod
    def _emission(self) -> Any:
        """Return the emissions as the parameters state them: an `Emission` that is `Observed`, with a `log_prior`."""

    @abstractmethod
    def _draw_start(self, X: AnyArray, rng: Any) -> dict[str, AnyArray]:
        """Return first values of the emissions' attributes."""

    @abstractmethod
    def _emission_of(self, attributes: Mapping[str, Any]) -> Theta:
        """Return the emissions' parameters θ, checked, from attributes."""

    def _expected(self, proba: AnyArray) -> AnyArray:
        """Return the mean observation under probabilities of the states (…, K)."""
        return np.asarray(self._emission().expected(self._fitted().emission, proba))

    def fit(self, X: Any, lengths: Any = None) -> Self:  # type: ignore[override]
        """Fit the model to one or several sequences.

        Parameters
        ----------
        X : array or dataframe of shape (n_samples, n_features)
            The observations, one sequence after the other. NaN marks a missing one.
        lengths : array of int, optional
            The lengths of the sequences, with the sum n_samples; by default there is one sequence.
        """
        return super().fit(X, lengths)

    @staticmethod
    def _door(model: Any, X: Any, lengths: Any, sample_weight: Any, run: Run) -> SequenceTable:
        table = read_sequences(model, X, lengths, run.n_jobs)
        model._check_rows(table.X)
        return table

    def _fit(self, table: SequenceTable, run: Run) -> Certificate:
        owner = type(self).__name__
        for letters in (self.params, self.init_params):
            unknown = set(letters) - {"s", "t", *self._letters}
            if unknown:
                raise ParameterError(
                    f"{owner}: params and init_params must be letters of 'st{''.join(self._letters)}'; got {letters!r}."
                )
        threads = resolve_n_jobs(run.n_jobs)
        blocks = cut_sequences(*self._encode(table.X), table.offsets)
        rng = check_random_state(self.random_state)
        starts = (self._start(table.X, run.previous, rng) for _ in range(self.n_init))
        problem = self._problem(threads if len(blocks) < threads else 1)
        result = em_in_time(
            problem,
            blocks,
            starts,
            run.should_stop if self.max_seconds is not None else None,
            owner=owner,
            tol=self.tol,
            max_iter=self.n_iter,
            n_jobs=run.n_jobs,
            flag=run.flag,
            progress=run.progress,
            rounding=1e-14 * len(table.X),  # log p(x) may be zero: a sum of rounded zeros
        )
        self.startprob_, self.transmat_, theta = result.parameters
        for name, values in zip(self._letters.values(), theta, strict=True):
            setattr(self, name, values)
        self.n_iter_ = result.n_iter
        self.converged_ = bool(result.converged)
        self.bound_history_ = result.history
        self._steps = [*result.history.tolist(), *([result.bound + result.rise] if np.isfinite(result.rise) else [])]
        monitor = getattr(self, "_monitor", None)
        if monitor is not None:
            replay(monitor, self._steps)
        size = max(abs(result.bound), 1.0)
        return Certificate("ascent", max(result.rise, 0.0) / size, self.tol / size, n_iter=max(result.n_iter, 1))

    def _problem(self, threads: int) -> BaumWelch:
        K = self.n_components
        emission = self._emission()
        return BaumWelch(
            type(self).__name__,
            emission,
            emission.log_prior,
            np.broadcast_to(np.asarray(self.startprob_prior, dtype=float), (K,)),
            np.broadcast_to(np.asarray(self.transmat_prior, dtype=float), (K, K)),
            {"e" if letter in self._letters else letter for letter in self.params},
            threads,
        )

    def _start(self, X: AnyArray, previous: Any, rng: Any) -> Parameters:
        """Return where a climb begins: what `init_params` names is drawn, the rest is what the model has."""
        K = self.n_components
        owner = type(self).__name__
        allowed = allowed_moves(owner, self.structure, K)
        first = (
            np.full(K, 1.0 / K) if not isinstance(self.structure, str) or self.structure == "banded" else np.eye(K)[0]
        )
        P = np.where(allowed, 0.5 / allowed.sum(axis=1, keepdims=True) + 0.5 * rng.dirichlet(np.ones(K), K), 0.0)
        letters = {"s": "startprob_", "t": "transmat_", **self._letters}
        attributes = {
            name: getattr(previous, name)
            for letter, name in letters.items()
            if letter not in self.init_params and hasattr(previous, name)
        }
        for name in [name for letter, name in letters.items() if letter in self.init_params and name in vars(previous)]:
            if not hasattr(previous, "certificate_"):
                _LOG.warning("%s: %s is set, but will be overwritten, as init_params says.", owner, name)
        drawn = {"startprob_": first, "transmat_": P / P.sum(axis=1, keepdims=True)}
        if not attributes.keys() >= set(self._letters.values()):
            drawn |= self._draw_start(X, rng)
        attributes = {**drawn, **attributes}
        start = _check_law(owner, "startprob_", attributes["startprob_"], (K,))
        A = _check_law(owner, "transmat_", attributes["transmat_"], (K, K))
        return Parameters(start, A, self._emission_of(attributes))

    def score(self, X: Any, lengths: Any = None) -> float:
        """Return the log-likelihood of the sequences, Σ log p(x)."""
        frames, parameters = self._ask(X, lengths)
        return float(filtered(frames, parameters.startprob, parameters.transmat, keep=False)[0].sum())

    def score_samples(self, X: Any, lengths: Any = None) -> tuple[float, AnyArray]:
        """Return the log-likelihood and the smoothed probabilities P(z_t | x), of shape (n_samples, K)."""
        frames, parameters = self._ask(X, lengths)
        found = smooth(frames, parameters.startprob, parameters.transmat, self._threads())
        if not np.isfinite(found.log_likelihoods).all():
            raise DataError(f"{type(self).__name__}: the observations are impossible under the model.")
        return float(found.log_likelihoods.sum()), np.ascontiguousarray(found.gamma)

    def predict_proba(self, X: Any, lengths: Any = None) -> AnyArray:
        """Return the smoothed probabilities P(z_t = k | x_1…x_T), of shape (n_samples, K)."""
        return self.score_samples(X, lengths)[1]

    def filter_proba(self, X: Any, lengths: Any = None) -> AnyArray:
        """Return the filtered probabilities P(z_t = k | x_1…x_t), of shape (n_samples, K)."""
        frames, parameters = self._ask(X, lengths)
        totals, proba = filtered(frames, parameters.startprob, parameters.transmat)
        if not np.isfinite(totals).all():
            raise DataError(f"{type(self).__name__}: the observations are impossible under the model.")
        return np.ascontiguousarray(proba)

    def pairwise_proba(self, X: Any, lengths: Any = None) -> AnyArray:
        """Return P(z_t = i, z_{t+1} = j | x) for all t but each sequence's last, of shape (n_samples − S, K, K)."""
        frames, parameters = self._ask(X, lengths)
        return pairwise(frames, parameters.startprob, parameters.transmat)

    def decode(self, X: Any, lengths: Any = None, algorithm: str | None = None) -> tuple[float, AnyArray]:
        """Return states and their log-probability.

        Parameters
        ----------
        X, lengths
            As in `fit`.
        algorithm : {"viterbi", "map"}, optional
            The most likely path, with log p(x, z); or the most likely state of each row by itself, with the sum of
            their posterior probabilities, as hmmlearn has it. By default the model's `algorithm`.
        """
        algorithm = self.algorithm if algorithm is None else algorithm
        if algorithm not in ("viterbi", "map"):
            raise ParameterError(f"{type(self).__name__}: algorithm must be 'viterbi' or 'map'; got {algorithm!r}.")
        if algorithm == "map":
            gamma = self.predict_proba(X, lengths)
            return float(gamma.max(axis=1).sum()), gamma.argmax(axis=1)
        frames, parameters = self._ask(X, lengths)
        logs, path = best_path(frames, parameters.startprob, parameters.transmat, self._threads())
        return float(logs.sum()), path

    def predict(self, X: Any, lengths: Any = None) -> AnyArray:
        """Return the states, of shape (n_samples,), by the model's `algorithm`."""
        return self.decode(X, lengths)[1]

    def sample_paths(self, X: Any, lengths: Any = None, n_paths: int = 1, random_state: Any = None) -> AnyArray:
        """Return state paths drawn from P(z | x), of shape (n_paths, n_samples)."""
        frames, parameters = self._ask(X, lengths)
        rng = check_random_state(self.random_state if random_state is None else random_state)
        u = rng.random_sample((n_paths, frames.n_rows))
        return draw_paths(frames, parameters.startprob, parameters.transmat, u)

    def predict_ahead(self, X: Any, lengths: Any = None, steps: int = 1) -> AnyArray:
        """Return the probabilities of the states 1 … `steps` steps after each sequence's end: (S, steps, K)."""
        if not Number(low=1, integer=True).allows(steps):
            raise ParameterError(f"{type(self).__name__}: steps must be an integer >= 1; got {steps!r}.")
        frames, parameters = self._ask(X, lengths)
        law = filtered(frames, parameters.startprob, parameters.transmat)[1][frames.offsets[1:] - 1]
        ahead = []
        for _ in range(steps):
            law = law @ parameters.transmat
            ahead.append(law)
        return np.stack(ahead, axis=1)

    def forecast(self, X: Any, lengths: Any = None, steps: int = 1) -> AnyArray:
        """Return the expected observations (for symbols: their probabilities) after each sequence's end."""
        return self._expected(self.predict_ahead(X, lengths, steps))

    def sample(
        self, n_samples: int = 1, random_state: Any = None, currstate: int | None = None
    ) -> tuple[AnyArray, AnyArray]:
        """Return simulated observations and states; with `currstate`, the first state is it."""
        rng = check_random_state(self.random_state if random_state is None else random_state)
        states = np.array(self.markov_chain().sample(n_samples, start=currstate, random_state=rng), dtype=np.int64)
        return np.asarray(self._emission().draw(self._fitted().emission, states, rng)), states

    def markov_chain(self) -> MarkovChain:
        """Return the hidden chain."""
        check_is_fitted(self, "transmat_")
        return MarkovChain(self.transmat_, startprob=self.startprob_)

    def get_stationary_distribution(self) -> AnyArray:
        """Return the stationary law of the hidden chain."""
        return self.markov_chain().stationary_distribution()

    def n_parameters(self) -> int:
        """Return how many free parameters the fitted model has; transitions that are zero by structure are none."""
        K = self.n_components
        allowed = allowed_moves(type(self).__name__, self.structure, K)
        first = K - 1 if not isinstance(self.structure, str) or self.structure == "banded" else 0
        return int(first + allowed.sum() - K + self._emission().n_parameters(self._fitted().emission))

    def aic(self, X: Any, lengths: Any = None) -> float:
        """Return −2 log p(x) + 2 · number of parameters; the lower the better."""
        return -2 * self.score(X, lengths) + 2 * self.n_parameters()

    def bic(self, X: Any, lengths: Any = None) -> float:
        """Return −2 log p(x) + log n · number of parameters; the lower the better. Missing rows are not counted."""
        rows = read_sequences(self, X, lengths, None, reset=False).X
        n = max(int((~np.isnan(rows).all(axis=1)).sum()), 1)
        return float(-2 * self.score(X, lengths) + np.log(n) * self.n_parameters())

    def online(self) -> Any:
        """Return a filter that takes one observation at a time."""
        from .inference import OnlineFilter

        return OnlineFilter(self)

    def _ask(self, X: Any, lengths: Any) -> tuple[Frames, Parameters]:
        check_is_fitted(self, "startprob_")
        table = read_sequences(self, X, lengths, self.n_jobs, reset=False)
        self._check_rows(table.X)
        parameters = self._fitted()
        lines, codes = self._encode(table.X)
        return frames_of(self._emission(), lines, codes, table.offsets, parameters), parameters

    def _fitted(self) -> Parameters:
        K = self.n_components
        owner = type(self).__name__
        missing = [name for name in self._letters.values() if not hasattr(self, name)]
        if missing:
            raise ParameterError(f"{owner}: {missing[0]} is not set; call fit, or set it.")
        attributes = {name: getattr(self, name) for name in self._letters.values()}
        start = _check_law(owner, "startprob_", self.startprob_, (K,))
        return Parameters(start, _check_law(owner, "transmat_", self.transmat_, (K, K)), self._emission_of(attributes))

    def _threads(self) -> int:
        return resolve_n_jobs(self.n_jobs)

    def _check_loaded(self) -> None:
        try:
            self._fitted()
        except (ParameterError, AttributeError, TypeError, ValueError) as error:
            raise ModelFileError(f"load: {error}") from error


def _check_law(owner: str, name: str, values: Any, shape: tuple[int, ...]) -> AnyArray:
    p = check_probabilities(owner, name, values, len(shape))
    if p.shape != shape:
        raise ParameterError(f"{owner}: {name} must have shape {shape}; got {p.shape}.")
    return p


# The record of a fit in hmmlearn's form: what EM's objective was after each step, and whether it converged.


class ConvergenceMonitor:
    """History of the objective of one fit.

    Parameters
    ----------
    tol : float
        A smaller rise counts as convergence.
    n_iter : int
        Steps that a fit may take.
    verbose : bool
        Kept for hmmlearn's sake; use callbacks.

    Attributes
    ----------
    history : deque of float
        The objective at the start and after each step.
    iter : int
        How many values were reported.
    converged : bool
        Whether the last rise was below `tol`, or all steps were taken.
    """

    def __init__(self, tol: float, n_iter: int, verbose: bool = False) -> None:
        self.tol = tol
        self.n_iter = n_iter
        self.verbose = verbose
        self.history: deque[float] = deque()
        self.iter = 0

    def report(self, log_prob: float) -> None:
        """Take note of the objective after a step."""
        self.history.append(log_prob)
        self.iter += 1

    @property
    def converged(self) -> bool:
        """Whether the last rise was below `tol`, or all steps were taken."""
        last = list(self.history)[-2:]
        return self.iter >= self.n_iter or (len(last) == 2 and last[1] - last[0] < self.tol)


def replay(monitor: Any, values: Any) -> Any:
    """Tell a monitor, anew, what a fit found."""
    monitor.history.clear()
    monitor.iter = 0
    for value in values:
        monitor.report(float(value))
    return monitor


# The number of states by an information criterion.


class StateChoice(NamedTuple):
    """The outcome of `select_states`."""

    best: Any  #: the fitted model with the least criterion
    n_components: int  #: its number of states
    criteria: dict[int, float]  #: the criterion of each number of states


def select_states(
    model: Any, X: Any, lengths: Any = None, *, candidates: Iterable[int] = range(1, 6), criterion: str = "bic"
) -> StateChoice:
    """Fit a hidden Markov model with each number of states and keep the one of least BIC (or AIC).

    Parameters
    ----------
    model : HiddenMarkovModel
        The settings; only `n_components` changes. Several starts (`n_init`) make the comparison fair.
    X, lengths
        As in `fit`.
    candidates : iterable of int
        Numbers of states.
    criterion : {"bic", "aic"}
        What decides.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sequences import PoissonHMM, select_states
    >>> X = np.array([1, 0, 2, 1, 1, 9, 12, 8, 11, 10, 1, 0, 1, 2, 1, 10, 9, 12, 9, 8] * 3)[:, None]
    >>> select_states(PoissonHMM(n_iter=200, n_init=3, random_state=0), X, candidates=[1, 2]).n_components
    2
    """
    if criterion not in ("bic", "aic"):
        raise ParameterError(f"select_states: criterion must be 'bic' or 'aic'; got {criterion!r}.")
    fitted = {K: clone(model).set_params(n_components=K).fit(X, lengths) for K in candidates}
    if not fitted:
        raise ParameterError("select_states: candidates must hold at least one number of states; got none.")
    criteria = {K: float(getattr(each, criterion)(X, lengths)) for K, each in fitted.items()}
    K = min(criteria, key=criteria.__getitem__)
    return StateChoice(fitted[K], K, criteria)
