"""`Chains`: the draws of a sampler by name, what they say about themselves, and what is proven about them."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ModelFileError
from ..core.estimator import Certificate
from . import diagnostics
from .states import Sampler, Variable
from .summary import Summary, summarise

Array = NDArray[np.float64]

#: What the certificate asks for: R-hat at most 1.01 and 400 effective draws (Vehtari et al. 2021).
RHAT_EXCESS = 0.01
LEAST_ESS = 400.0
#: Two chains whose normal scores have an R-hat above this do not describe the same distribution.
APART = 1.1
#: Below this the momentum of Hamiltonian samplers cannot follow the energy.
LEAST_EBFMI = 0.3


@dataclass(frozen=True, eq=False, repr=False)
class Chains:
    """Draws by name, of shape (chain, draw, …), with their diagnostics and a certificate.

    `chains["mu"]` is an array of shape (n_chains, n_draws, *shape). Memory: 8 bytes per number and draw, so
    10⁶ draws of 100 parameters take 0.8 GB; what is told about each step takes 8 bytes more per number
    (`stats`, at most eight). `keep_warmup=True` adds the warm-up. Diagnostics look at a few parameters at a time: while
    they are computed, up to 0.5 GB more for 10⁶ draws, by Fourier transforms of slow chains on two threads.

    Attributes
    ----------
    draws : array of shape (n_chains, n_draws, n_numbers)
        All variables side by side.
    names : tuple of str
        Names of the variables.
    shapes : tuple of tuple of int
        Shape of one draw of each variable.
    stats : dict of str to array of shape (n_chains, n_draws)
        What the sampler told about each step: acceptance, energy, divergences, …
    warmup : array of shape (n_chains, n_kept, n_numbers)
        Draws of the warm-up if they were kept; part of no estimate.
    n_warmup : int
        Steps of warm-up.
    thin : int
        Steps between two draws that were kept.
    sampler : str
        The sampler's name.
    states, streams : dict of str to array; array of shape (n_chains, 6)
        Where each chain stands and its stream of random numbers: what `resume` goes on from.
    certificate_ : Certificate
        Kind `chain`: the worst of (R̂ − 1)/0.01 and 400/ESS over all parameters, bulk and tail, with tolerance 1;
        above 1 if a draw diverged.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.sampling import Chains
    >>> rng = np.random.default_rng(0)
    >>> chains = Chains.from_arrays({"mu": rng.normal(size=(4, 500)), "w": rng.normal(size=(4, 500, 2))})
    >>> chains["w"].shape, chains.certificate_.holds
    ((4, 500, 2), True)
    >>> print(chains.summary())  # doctest: +ELLIPSIS
           mean    sd  mcse...
    """

    _saves_alone: ClassVar[bool] = True  # in a file of its own

    draws: np.ndarray
    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    stats: dict[str, Any]
    warmup: np.ndarray
    n_warmup: int
    thin: int
    sampler: str
    states: dict[str, Any]
    streams: np.ndarray
    certificate_: Certificate

    # ---- making ----

    @classmethod
    def from_arrays(cls, draws: Mapping[str, Any], stats: Mapping[str, Any] | None = None) -> Chains:
        """Return chains from arrays by name, each of shape (n_chains, n_draws, …)."""
        arrays = {name: np.asarray(values, dtype=np.float64) for name, values in draws.items()}
        if not arrays:
            raise DataError("Chains: there are no draws; pass at least one named array.")
        for name, array in arrays.items():
            if array.ndim < 2:
                raise DataError(f"Chains: {name} must have shape (n_chains, n_draws, …); got {array.shape}.")
        sizes = {array.shape[:2] for array in arrays.values()}
        if len(sizes) > 1:
            raise DataError(f"Chains: all variables need the same chains and draws; got {sorted(sizes)}.")
        m, n = sizes.pop()
        flat = np.concatenate([array.reshape(m, n, -1) for array in arrays.values()], axis=2)
        variables = [Variable(name, array.shape[2:]) for name, array in arrays.items()]
        told = {name: np.asarray(values, dtype=np.float64) for name, values in (stats or {}).items()}
        return cls.of(flat, variables, told)

    @classmethod
    def of(
        cls,
        draws: Array,
        variables: Sequence[Variable],
        stats: dict[str, Array],
        *,
        warmup: Array | None = None,
        n_warmup: int = 0,
        thin: int = 1,
        sampler: str = "draws",
        states: dict[str, Array] | None = None,
        streams: NDArray[Any] | None = None,
        seconds: float = 0.0,
    ) -> Chains:
        """Return chains of flat draws, having certified them."""
        found = _convergence_of(draws)
        value = chain_value(draws, stats.get("diverging"), found)
        n_steps = draws.shape[1] * thin + n_warmup
        chains = cls(
            draws,
            tuple(v.name for v in variables),
            tuple(tuple(v.shape) for v in variables),
            stats,
            np.zeros((len(draws), 0, draws.shape[2])) if warmup is None else warmup,
            n_warmup,
            thin,
            sampler,
            states or {},
            np.zeros((0, 6), dtype=np.uint64) if streams is None else streams,
            Certificate("chain", value, 1.0, n_iter=n_steps, seconds=seconds),
        )
        vars(chains)["_convergence"] = found
        return chains

    # ---- looking ----

    @property
    def n_chains(self) -> int:
        """Number of chains."""
        return len(self.draws)

    @property
    def n_draws(self) -> int:
        """Draws per chain, without warm-up."""
        return int(self.draws.shape[1])

    @property
    def variables(self) -> tuple[Variable, ...]:
        """Names and shapes."""
        return tuple(Variable(name, shape) for name, shape in zip(self.names, self.shapes, strict=True))

    @cached_property
    def labels(self) -> list[str]:
        """A name for each number of a draw: mu, w[0], w[1], L[0,1] and so on."""
        return [label for variable in self.variables for label in _labels(variable)]

    def __getitem__(self, name: str) -> Array:
        """Return the draws of one variable, (n_chains, n_draws, …)."""
        return self._of(self.draws, name)

    def warmup_of(self, name: str) -> Array:
        """Return the warm-up of one variable, (n_chains, n_kept, …)."""
        return self._of(self.warmup, name)

    def _of(self, flat: Array, name: str) -> Array:
        if name not in self.names:
            raise DataError(f"Chains: there is no variable {name!r}; there are {', '.join(self.names)}.")
        start = 0
        for variable in self.variables:
            if variable.name == name:
                found = flat[:, :, start : start + variable.size]
                return found.reshape(*flat.shape[:2], *variable.shape)
            start += variable.size
        raise DataError(f"Chains: there is no variable {name!r}.")

    def flat(self, name: str) -> Array:
        """Return the draws of one variable from all chains together, (n_chains · n_draws, …)."""
        found = self[name]
        return found.reshape(-1, *found.shape[2:])

    def __contains__(self, name: object) -> bool:
        return name in self.names

    # ---- choosing ----

    def thinned(self, step: int) -> Chains:
        """Return every step-th draw."""
        if step < 1:
            raise DataError(f"Chains.thinned: step must be at least 1; got {step!r}.")
        return self._cut(slice(step - 1, None, step), thin=self.thin * step)

    def without_first(self, n: int) -> Chains:
        """Return the chains without their first n draws: a longer burn-in."""
        if not 0 <= n < self.n_draws:
            raise DataError(f"Chains.without_first: n must be from 0 to {self.n_draws - 1}; got {n!r}.")
        return self._cut(slice(n, None), n_warmup=self.n_warmup + n * self.thin)

    def select(self, chains: Sequence[int]) -> Chains:
        """Return some of the chains."""
        places = np.asarray(chains, dtype=np.int64)
        if places.ndim != 1 or not places.size or places.min() < -self.n_chains or places.max() >= self.n_chains:
            raise DataError(f"Chains.select: expected places of {self.n_chains} chains; got {chains!r}.")
        stats = {name: values[places] for name, values in self.stats.items()}
        states = {name: values[places] for name, values in self.states.items()}
        streams = self.streams[places] if len(self.streams) else self.streams
        cut = replace(self, stats=stats, states=states, streams=streams, warmup=self.warmup[places])
        return cut._with_draws(self.draws[places], stats)

    def _cut(self, rows: slice, **changes: Any) -> Chains:
        stats = {name: values[:, rows] for name, values in self.stats.items()}
        # The chains stand behind the last draw of all: from there a resume would not be the same run.
        cut = replace(self, stats=stats, states={}, streams=np.zeros((0, 6), dtype=np.uint64), **changes)
        return cut._with_draws(self.draws[:, rows], stats)

    def _with_draws(self, draws: Array, stats: dict[str, Array]) -> Chains:
        value = chain_value(draws, stats.get("diverging"))
        return replace(self, draws=draws, certificate_=replace(self.certificate_, value=value))

    # ---- judging ----

    @cached_property
    def _convergence(self) -> tuple[Array, Array, Array]:
        return _convergence_of(self.draws)

    @property
    def rhat(self) -> dict[str, float]:
        """Rank-normalised split R-hat by label."""
        return dict(zip(self.labels, self._convergence[0].tolist(), strict=True))

    @property
    def ess(self) -> dict[str, float]:
        """The smaller of bulk and tail effective sample size by label."""
        return dict(zip(self.labels, np.fmin(*self._convergence[1:]).tolist(), strict=True))

    @property
    def n_divergences(self) -> int:
        """Draws at which the integrator lost the energy."""
        return int(self.stats["diverging"].sum()) if "diverging" in self.stats else 0

    @property
    def ebfmi(self) -> Array | None:
        """Bridged share of the energy's variance by chain; None for samplers without energy."""
        return diagnostics.ebfmi(self.stats["energy"]) if "energy" in self.stats else None

    @cached_property
    def groups(self) -> list[list[int]]:
        """Chains that agree, together: one group where all do, several where the draws have modes apart."""
        worst = self._convergence[0]
        if not (worst > 1 + RHAT_EXCESS).any():  # chains apart would show in all of them together
            return [list(range(self.n_chains))]
        return agreeing_groups(self.draws[:, :, worst > 1 + RHAT_EXCESS])

    def warnings(self) -> list[str]:
        """Return what is wrong with the chains, each in one sentence with a remedy; empty if nothing is."""
        return describe_faults(self)

    def summary(self, level: float = 0.9) -> Summary:
        """Return mean, sd, Monte Carlo error, quantiles, ESS and R-hat of every number.

        Parameters
        ----------
        level : float
            Probability between the two quantiles.
        """
        return summarise(self, level)

    def __repr__(self) -> str:
        what = ", ".join(f"{v.name}{list(v.shape) if v.shape else ''}" for v in self.variables[:6])
        more = ", …" if len(self.names) > 6 else ""
        return f"Chains({self.n_chains} chains × {self.n_draws} draws of {what}{more}; {self.certificate_})"

    def _repr_html_(self) -> str:
        return self.summary()._repr_html_()

    # ---- exchanging ----

    def to_arviz(self) -> Any:
        """Return ArviZ's InferenceData (a DataTree since ArviZ 1.0); needs arviz."""
        draws = {name: self[name] for name in self.names}
        names = {"accept": "acceptance_rate", "log_density": "lp", "n_steps": "n_steps", "depth": "tree_depth"}
        told = {names.get(name, name): values for name, values in self.stats.items()}
        if "diverging" in told:
            told["diverging"] = told["diverging"].astype(bool)
        try:
            from arviz_base import from_dict
        except ImportError:
            try:
                from arviz import from_dict
            except ImportError:
                raise ImportError("Chains.to_arviz needs ArviZ: pip install arviz") from None
            return from_dict(posterior=draws, sample_stats=told)
        return from_dict({"posterior": draws, "sample_stats": told})

    @classmethod
    def from_arviz(cls, data: Any) -> Chains:
        """Return the chains of an InferenceData or DataTree: its posterior and its sample statistics."""
        posterior = data["posterior"] if not hasattr(data, "posterior") else data.posterior
        draws = {str(name): np.asarray(posterior[name].values) for name in posterior.data_vars}
        told: dict[str, Any] = {}
        try:
            stats = data["sample_stats"]
        except (KeyError, TypeError):
            stats = None
        if stats is not None:
            names = {"acceptance_rate": "accept", "lp": "log_density", "tree_depth": "depth"}
            for name in stats.data_vars:
                values = np.asarray(stats[name].values)
                if values.ndim == 2:
                    told[names.get(str(name), str(name))] = values.astype(np.float64)
        return cls.from_arrays(draws, told)

    def plot(self, kind: str = "trace", name: str | None = None, other: str | None = None) -> Any:
        """Return a figure as SVG text.

        Parameters
        ----------
        kind : {"trace", "rank", "autocorrelation", "pair", "energy", "posterior"}
            What to draw.
        name, other : str, optional
            Labels of the numbers to draw, such as "mu" or "w[1]"; by default the first ones.
        """
        from .figures import draw_chains

        return draw_chains(self, kind, name, other)

    # ---- files ----

    def _check_loaded(self) -> None:
        """Raise ModelFileError unless the arrays fit together."""
        check_chains(self)

    def _remember(self, sampler: Sampler) -> Chains:
        """Keep the sampler beside the fields, so that `resume` need not be told; files do not hold it."""
        object.__setattr__(self, "_sampler", sampler)
        return self


def _convergence_of(draws: Array) -> tuple[Array, Array, Array]:
    """Return R-hat, bulk and tail ESS; NaN where there are too few draws to tell."""
    if draws.shape[1] < 4 or draws.shape[0] < 1 or draws.shape[2] < 1:
        unknown = np.full(draws.shape[2], np.nan)
        return unknown, unknown, unknown
    return diagnostics.convergence(draws)


def chain_value(draws: Array, diverging: Array | None, found: tuple[Array, Array, Array] | None = None) -> float:
    """Return the certificate's value: the worst of (R̂ − 1)/0.01 and 400/ESS, and more than 1 if a draw diverged.

    Numbers that are the same in every draw of every chain, such as the zeros of a triangular matrix, are left out,
    unless nothing moves at all.
    """
    worst_rhat, bulk, tail = _convergence_of(draws) if found is None else found
    moving = (draws != draws[:1, :1]).any(axis=(0, 1))
    if not moving.any():
        return math.inf
    ess = np.fmin(bulk, tail)[moving]
    excess = np.maximum((worst_rhat[moving] - 1) / RHAT_EXCESS, LEAST_ESS / ess)
    value = float(excess.max()) if np.isfinite(excess).all() else math.inf
    if diverging is not None and diverging.any():
        value = max(value, 1.0 + float(diverging.mean()))
    return value


def agreeing_groups(draws: Array) -> list[list[int]]:
    """Return the chains in groups: two belong together if a path of chains with pairwise R-hat below 1.1 joins them."""
    m = len(draws)
    if m < 2 or draws.shape[1] < 4:
        return [list(range(m))]
    group = list(range(m))
    with np.errstate(invalid="ignore", divide="ignore"):
        scores = diagnostics._normal_scores(np.moveaxis(draws, 2, 0))
        for i in range(m):
            for j in range(i):
                pair = diagnostics._plain_rhat(scores[:, [i, j]])
                if not (pair > APART).any():
                    old = max(group[i], group[j])
                    new = min(group[i], group[j])
                    group = [new if g == old else g for g in group]
    return [[i for i in range(m) if group[i] == g] for g in sorted(set(group))]


def describe_faults(chains: Chains) -> list[str]:
    """Return what is wrong, in sentences."""
    found = []
    worst_rhat, bulk, tail = chains._convergence
    labels = chains.labels
    if chains.n_divergences:
        share = chains.n_divergences / (chains.n_chains * chains.n_draws)
        found.append(
            f"{chains.n_divergences} draws ({share:.1%}) diverged: the density has a region that steps of this size "
            "cannot enter, so estimates are biased; write it in other parameters (non-centred), or raise target_accept."
        )
    if len(chains.groups) > 1:
        named = " | ".join(", ".join(map(str, group)) for group in chains.groups)
        j = int(np.nanargmax(worst_rhat)) if np.isfinite(worst_rhat).any() else 0
        found.append(
            f"the chains disagree, most about {labels[j]} (R-hat {worst_rhat[j]:.2f}): groups of chains {named}. "
            "If these are modes, no average over chains has meaning; look at them one by one, or use tempered."
        )
    elif np.nanmax(worst_rhat, initial=1.0) > 1 + RHAT_EXCESS:
        j = int(np.nanargmax(worst_rhat))
        found.append(f"R-hat of {labels[j]} is {worst_rhat[j]:.3f}, above 1.01: draw more, or warm up longer.")
    smallest = np.fmin(bulk, tail)
    if np.nanmin(smallest, initial=np.inf) < LEAST_ESS:
        j = int(np.nanargmin(smallest))
        found.append(f"{labels[j]} has {smallest[j]:.0f} effective draws, fewer than 400: draw more.")
    if chains.n_chains == 1:
        found.append("one chain cannot show that it has missed a mode: run four.")
    bridged = chains.ebfmi if chains.n_draws >= 3 else None
    if bridged is not None and (bridged < LEAST_EBFMI).any():
        which = ", ".join(str(i) for i in np.flatnonzero(bridged < LEAST_EBFMI))
        found.append(f"E-BFMI is {bridged.min():.2f} in chains {which}, below 0.3: the tails are heavy; reparametrise.")
    capped = float(chains.stats["capped"].mean()) if "capped" in chains.stats else 0.0
    if capped > 0.01:
        found.append(f"{capped:.1%} of the paths were cut at max_depth: raise it, rescale, or use metric='low-rank'.")
    return found


def warn_of_faults(chains: Chains, stacklevel: int = 3) -> None:
    """Warn, once, with all that is wrong."""
    from sklearn.exceptions import ConvergenceWarning

    faults = [] if chains.certificate_.holds else chains.warnings()
    if faults:
        warnings.warn(f"{chains.sampler}: " + " ".join(faults), ConvergenceWarning, stacklevel=stacklevel)


def check_chains(chains: Chains) -> None:
    """Raise ModelFileError unless names, shapes, draws, statistics and states fit together."""

    def require(condition: bool, what: str) -> None:
        if not condition:
            raise ModelFileError(f"load: {what}")

    draws = chains.draws
    require(isinstance(draws, np.ndarray) and draws.dtype == np.float64 and draws.ndim == 3, "draws must be real, 3-d")
    require(all(isinstance(name, str) for name in chains.names), "names must be strings")
    require(len(set(chains.names)) == len(chains.names) > 0, "names must be distinct")
    sound = all(isinstance(s, tuple) and all(type(k) is int and k >= 0 for k in s) for s in chains.shapes)
    require(sound and len(chains.shapes) == len(chains.names), "each name needs a shape")
    require(sum(v.size for v in chains.variables) == draws.shape[2], "the shapes do not fill the draws")
    require(bool(np.isfinite(draws).all()), "draws must be finite")
    warmup = chains.warmup
    fits = isinstance(warmup, np.ndarray) and warmup.ndim == 3 and warmup.dtype == np.float64
    require(fits and warmup.shape[0] == draws.shape[0] and warmup.shape[2] == draws.shape[2], "warmup does not fit")
    for name, values in chains.stats.items():
        fits = isinstance(values, np.ndarray) and values.shape == draws.shape[:2] and values.dtype.kind in "fbiu"
        require(fits and not np.isnan(values.astype(np.float64)).any(), f"stats[{name!r}] does not fit the draws")
    for name, values in chains.states.items():
        require(isinstance(values, np.ndarray) and len(values) == len(draws), f"states[{name!r}] does not fit")
    require(chains.streams.shape in ((0, 6), (len(draws), 6)), "streams do not fit the chains")
    require(chains.streams.dtype == np.uint64, "streams must be words")
    require(chains.n_warmup >= 0 and chains.thin >= 1, "n_warmup or thin is out of range")
    require(chains.certificate_.kind == "chain", "the certificate must be of kind chain")


def _labels(variable: Variable) -> list[str]:
    if not variable.shape:
        return [variable.name]
    return [f"{variable.name}[{','.join(map(str, place))}]" for place in np.ndindex(*variable.shape)]
