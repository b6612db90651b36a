r"""Comparisons of nested models, tests of columns that are not in a model, and corrections for many tests.

    likelihood ratio   2(ℓ₁ − ℓ₀)                     both models fitted            χ²_q
    deviance           (D₀ − D₁)/(q φ̂)                the same where φ is estimated  F_{q, n−p}
    score (Rao)        uᵀ (Z'HZ − Z'HX(X'HX)⁻¹X'HZ)⁻¹ u/φ̂   only the smaller fitted  χ²_q or F

Reference: C. R. Rao, Linear Statistical Inference, 2nd ed., 1973; Y. Benjamini and Y. Hochberg, J. R. Statist. Soc. B
57 (1995); S. Holm, Scand. J. Statist. 6 (1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from ...core.errors import DataError, ParameterError
from ...data.sources import named_columns
from .design import check_independent, design_of, triangle
from .infer import infer, information_factor, row_terms
from .summary import Inference, Test, chi_square_or_f

Array = NDArray[np.float64]


def compare_nested(smaller: Inference, larger: Inference) -> Test:
    """Test whether the coefficients that only the larger of two nested models has are zero.

    Parameters
    ----------
    smaller, larger : Inference
        Of two fits to the same rows; the columns of the smaller are among those of the larger.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear import GLM, compare_nested
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [4.0, 1.0], [5.0, 0.0]])
    >>> y = np.array([1, 1, 2, 4, 4, 9])
    >>> smaller, larger = (GLM("poisson").fit(X[:, :k], y).summary() for k in (1, 2))
    >>> print(compare_nested(smaller, larger))
    χ²(1) = 0.0189, p = 0.8906
    """
    if smaller.n_rows != larger.n_rows:
        raise DataError(f"compare_nested: the fits have {smaller.n_rows:g} and {larger.n_rows:g} rows.")
    q = larger.n_estimated - smaller.n_estimated
    if q <= 0:
        raise ParameterError("compare_nested: the second model must have more coefficients than the first.")
    if larger.family is None or larger.family.knows_dispersion:
        gain = 2.0 * (larger.log_likelihood - smaller.log_likelihood)
        return chi_square_or_f(max(gain, 0.0), q, np.inf)
    gain = (smaller.deviance - larger.deviance) / larger.dispersion
    return chi_square_or_f(max(gain, 0.0), q, larger.df_resid)


def score_test(model: Any, X: Any, y: Any, extra: ArrayLike, *, sample_weight: Any = None) -> Test:
    """Test whether further columns belong in a fitted model, without fitting them.

    Parameters
    ----------
    model : fitted model
        As for `infer`, of one score.
    X, y, sample_weight : arrays
        The rows of its fit.
    extra : array of shape (n_samples,) or (n_samples, q)
        The columns in question.
    """
    extra = np.asarray(extra, dtype=np.float64)
    extra = extra[:, None] if extra.ndim == 1 else extra
    terms = row_terms(model, X, y, sample_weight)
    if terms.scores.shape[1] > 1:
        raise ParameterError("score_test: one score per row only; with several classes compare fits instead.")
    if sample_weight is not None:
        extra = extra[np.asarray(named_columns("score_test", X, y, sample_weight)[2], dtype=float) > 0]
    if len(extra) != len(terms.y):
        raise DataError(f"score_test: extra must have one row per row of X, {len(terms.y)}; it has {len(extra)}.")
    information_factor(terms)  # names columns that depend on each other
    p = terms.design.width
    q = extra.shape[1]
    old = np.vstack([terms.design.rows(terms.design.blocks[k]) for k in range(len(terms.design.blocks))])
    both = design_of(np.column_stack([old, extra]), None, False)
    R = triangle(both, terms.curvature[:, 0, 0])
    check_independent("score_test", R, [*terms.names, *(f"extra column {k}" for k in range(q))])
    gradient = extra.T @ terms.scores[:, 0]
    half = np.linalg.solve(R[p:, p:].T, gradient)
    assert terms.family is not None
    if terms.family.knows_dispersion:
        return chi_square_or_f(float(half @ half), q, np.inf)
    count = len(terms.y)
    pearson = float(terms.weight @ ((terms.y - terms.mean) ** 2 / terms.family.variance(terms.mean)))
    return chi_square_or_f(float(half @ half) / (pearson / count), q, np.inf)


@dataclass(frozen=True)
class DevianceTable:
    """An analysis of deviance: terms added one after the other, each tested against the model before it.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.linear import LinearRegression, anova
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0], [3.0, 1.0], [4.0, 1.0]])
    >>> table = anova(LinearRegression(), X, [0.1, 0.9, 2.1, 3.0, 3.9])
    >>> table.terms, bool(table.tests[0].p_value < 0.01)
    (['x0', 'x1'], True)
    """

    terms: list[str]
    deviance: Array  #: after each term; first that of the model without any
    df_resid: Array
    tests: list[Test]  #: one per term

    def __str__(self) -> str:
        width = max(len(name) for name in ["(none)", *self.terms])
        lines = [f"{'term':<{width}}  {'deviance':>12}  {'df':>6}  test"]
        lines.append(f"{'(none)':<{width}}  {self.deviance[0]:>12.6g}  {self.df_resid[0]:>6g}")
        for name, value, df, test in zip(self.terms, self.deviance[1:], self.df_resid[1:], self.tests, strict=True):
            lines.append(f"{name:<{width}}  {value:>12.6g}  {df:>6g}  {test}")
        return "\n".join(lines)


def anova(
    model: Any, X: Any, y: Any, *, terms: Mapping[str, Sequence[int]] | None = None, sample_weight: Any = None
) -> DevianceTable:
    """Return the deviance as columns are added in their order, each term tested.

    Where φ is estimated, it is that of the whole model, and the tests are F-tests.

    Parameters
    ----------
    model : estimator
        As for `infer`; it is cloned and fitted once per term.
    X, y, sample_weight : arrays
        The rows.
    terms : dict of str to list of int, optional
        Which columns enter together; by default each on its own.
    """
    X, y, sample_weight = named_columns("anova", X, y, sample_weight)
    names = [str(name) for name in getattr(X, "columns", [f"x{j}" for j in range(np.shape(X)[1])])]
    X = np.asarray(X, dtype=np.float64)
    groups = {name: [j] for j, name in enumerate(names)} if terms is None else dict(terms)
    if not groups:
        raise ParameterError("anova: terms must name at least one group of columns.")
    found = []
    used: list[int] = []
    for columns in groups.values():
        used = [*used, *columns]
        part = X[:, used]
        fitted = clone(model).fit(part, y, sample_weight=sample_weight)
        found.append(infer(fitted, part, y, sample_weight=sample_weight))
    whole = found[-1]
    known = whole.family is None or whole.family.knows_dispersion
    deviance = np.array([found[0].null_deviance, *(one.deviance for one in found)])
    width = np.cumsum([0, *(len(columns) for columns in groups.values())]) * (
        1 if whole.family is not None else len(whole.names) // whole.design_width
    )
    df = whole.df_resid + width[-1] - width
    tests = [
        chi_square_or_f(max(before - after, 0.0) / whole.dispersion, count, np.inf if known else whole.df_resid)
        for before, after, count in zip(deviance[:-1], deviance[1:], np.diff(width), strict=True)
    ]
    return DevianceTable(list(groups), deviance, df.astype(float), tests)


def adjust_p_values(p_values: ArrayLike, method: Literal["holm", "bonferroni", "bh", "by"] = "holm") -> Array:
    """Return p-values that allow for their number.

    Parameters
    ----------
    p_values : array
        Of any shape.
    method : {"holm", "bonferroni", "bh", "by"}
        The first two bound the probability of one false rejection or more, for any dependence. "bh" (Benjamini and
        Hochberg) bounds the expected share of false rejections, for independent or positively dependent tests; "by"
        does for any dependence.

    Examples
    --------
    >>> adjust_p_values([0.01, 0.04, 0.03], "holm")
    array([0.03, 0.06, 0.06])
    >>> adjust_p_values([0.01, 0.04, 0.03], "bh")
    array([0.03, 0.04, 0.04])
    """
    given = np.asarray(p_values, dtype=np.float64)
    if not ((given >= 0) & (given <= 1)).all():
        raise DataError("adjust_p_values: p-values must lie between 0 and 1.")
    p = given.ravel()
    m = len(p)
    order = np.argsort(p, kind="stable")
    rank = np.arange(1, m + 1)
    if method == "bonferroni":
        adjusted = p[order] * m
    elif method == "holm":
        adjusted = np.maximum.accumulate(p[order] * (m - rank + 1))
    elif method in ("bh", "by"):
        harmonic = np.sum(1.0 / rank) if method == "by" else 1.0
        adjusted = np.minimum.accumulate((p[order] * m * harmonic / rank)[::-1])[::-1]
    else:
        raise ParameterError(f"adjust_p_values: method must be holm, bonferroni, bh or by; got {method!r}.")
    found = np.empty(m)
    found[order] = np.minimum(adjusted, 1.0)
    return found.reshape(given.shape)
