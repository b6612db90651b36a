"""What is known about the coefficients of a fit, as a record that prints as a table."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import fdtrc, gammaincc, ndtr, ndtri, stdtr, stdtrit

from ...core.errors import DataError, ParameterError
from ...data.door import read_features
from .families import Family, Link

Array = NDArray[np.float64]


class Test(NamedTuple):
    """A test of a hypothesis.

    Attributes
    ----------
    statistic : float
        F where the dispersion is estimated, else χ².
    df : float
        Degrees of freedom of the hypothesis.
    df_resid : float
        Those of the dispersion; infinite for χ².
    p_value : float
        Probability of a statistic at least as large if the hypothesis were true.
    """

    statistic: float
    df: float
    df_resid: float
    p_value: float

    def __str__(self) -> str:
        law = f"χ²({self.df:g})" if np.isinf(self.df_resid) else f"F({self.df:g}, {self.df_resid:g})"
        return f"{law} = {self.statistic:.4f}, p = {self.p_value:.4g}"


def chi_square_or_f(statistic: float, df: float, df_resid: float) -> Test:
    """Return the test of a χ² statistic divided by its degrees of freedom where φ is estimated."""
    if np.isinf(df_resid):
        return Test(statistic, df, df_resid, float(gammaincc(df / 2, statistic / 2)))
    return Test(statistic / df, df, df_resid, float(fdtrc(df, df_resid, statistic / df)))


@dataclass(frozen=True)
class Inference:
    """Estimates of a fit and what their errors are; `infer` makes it.

    Attributes
    ----------
    names : list of str
        Names of the coefficients, the intercept first; with several classes "label: column".
    estimate : (p,) array
        The coefficients.
    covariance : (p, p) array
        Their covariance, of the kind `covariance_kind`.
    df : float
        Degrees of freedom of the t-distribution that statistics are compared with; infinite is the normal.
    n_rows, df_resid : float
        Number of observations, and what is left of it beyond the coefficients.
    dispersion : float
        φ: 1 for counts and classes, else Pearson's estimate (σ² of the normal family).
    deviance, null_deviance : float
        Of this model and of the one with an intercept only.
    log_likelihood, null_log_likelihood : float
        The same; NaN where the family has no density in closed form.
    leverage, pearson : (n,) array or None
        hᵢ, and (yᵢ − μᵢ)√(sᵢ/V(μᵢ)); None with several classes.
    """

    model: Any = field(repr=False)
    title: str
    names: list[str]
    estimate: Array
    covariance: Array = field(repr=False)
    covariance_kind: str
    df: float
    level: float
    n_rows: float
    df_resid: float
    dispersion: float
    deviance: float
    null_deviance: float
    log_likelihood: float
    null_log_likelihood: float
    n_estimated: int
    leverage: Array | None = field(repr=False)
    pearson: Array | None = field(repr=False)
    family: Family | None = field(repr=False)
    link: Link | None = field(repr=False)
    design_width: int
    free_columns: NDArray[np.int64] = field(repr=False)

    @property
    def std_error(self) -> Array:
        """Standard errors of the coefficients."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def statistic(self) -> Array:
        """Estimate over standard error."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.estimate / self.std_error)

    @property
    def p_value(self) -> Array:
        """Probability of a statistic at least as far from zero if the coefficient were zero."""
        below = -np.abs(self.statistic)
        return 2.0 * np.asarray(ndtr(below) if np.isinf(self.df) else stdtr(self.df, below))

    @property
    def aic(self) -> float:
        """−2 log-likelihood + 2 times the number of estimated parameters, φ among them."""
        return -2.0 * self.log_likelihood + 2.0 * self.n_estimated

    @property
    def bic(self) -> float:
        """−2 log-likelihood + log(n) times the number of estimated parameters, φ among them."""
        return -2.0 * self.log_likelihood + np.log(self.n_rows) * self.n_estimated

    @property
    def r_squared(self) -> float:
        """Share of the null deviance that the model explains: R² of the normal family, D² of the others."""
        return 1.0 - self.deviance / self.null_deviance if self.null_deviance > 0 else np.nan

    @property
    def adjusted_r_squared(self) -> float:
        """R² with both sums of squares over their degrees of freedom."""
        free = self.n_rows - bool(self.model.fit_intercept)
        return 1.0 - (1.0 - self.r_squared) * free / self.df_resid if self.df_resid > 0 else np.nan

    @property
    def pseudo_r_squared(self) -> float:
        """McFadden's 1 − log-likelihood over that of the null model."""
        return 1.0 - self.log_likelihood / self.null_log_likelihood if self.null_log_likelihood else np.nan

    def overall_test(self) -> Test:
        """Test that all coefficients but the intercept are zero.

        Classical errors compare the deviances of both models: F where φ is estimated, else the likelihood ratio.
        Robust and clustered errors, and fits without an intercept, have Wald's test.
        """
        intercepts = [name for name in self.names if name.endswith("(intercept)")]
        others = [name for name in self.names if name not in intercepts]
        if not others:
            raise DataError("overall_test: there is no coefficient besides the intercept.")
        if self.covariance_kind not in ("classical", "observed") or not intercepts:
            return self.wald_test(others)
        fall = (self.null_deviance - self.deviance) / self.dispersion
        if np.isfinite(self.log_likelihood) and np.isinf(self.df):
            fall = 2.0 * (self.log_likelihood - self.null_log_likelihood)
        return chi_square_or_f(max(fall, 0.0), len(others), self.df)

    @property
    def cooks_distance(self) -> Array:
        """By how much all coefficients move, in squared standard errors over p, if a row is left out (one step)."""
        if self.leverage is None or self.pearson is None:
            raise DataError(
                "cooks_distance: with several classes a row has several residuals; there is no one distance."
            )
        h = np.minimum(self.leverage, 1.0 - np.finfo(float).eps)
        return self.pearson**2 * h / (self.dispersion * len(self.estimate) * (1.0 - h) ** 2)

    @property
    def studentized_residuals(self) -> Array:
        """Pearson residuals over their standard deviations √(φ(1 − hᵢ))."""
        if self.leverage is None or self.pearson is None:
            raise DataError("studentized_residuals: with several classes a row has several residuals.")
        return self.pearson / np.sqrt(self.dispersion * np.maximum(1.0 - self.leverage, np.finfo(float).eps))

    def conf_int(self, level: float | None = None) -> tuple[Array, Array]:
        """Return lower and upper ends of the coefficients."""
        half = self._quantile(self.level if level is None else level) * self.std_error
        return self.estimate - half, self.estimate + half

    def _quantile(self, level: float) -> float:
        if not 0 < level < 1:
            raise ParameterError(f"Inference: level must lie between 0 and 1; got {level}.")
        tail = (1.0 + level) / 2
        return float(ndtri(tail) if np.isinf(self.df) else stdtrit(self.df, tail))

    def wald_test(self, hypothesis: str | Sequence[str] | ArrayLike, value: ArrayLike = 0.0) -> Test:
        """Test R·coefficients = value.

        Parameters
        ----------
        hypothesis : str, list of str, or array of shape (q, p)
            Names of coefficients that are zero, or R.
        value : float or (q,) array
            What they are under the hypothesis.
        """
        R = self._rows_of(hypothesis)
        gap = R @ self.estimate - np.broadcast_to(np.asarray(value, dtype=float), (len(R),))
        spread = R @ self.covariance @ R.T
        if np.linalg.matrix_rank(spread) < len(R):
            raise ParameterError("wald_test: the hypotheses depend on each other; leave out the redundant ones.")
        return chi_square_or_f(float(gap @ np.linalg.solve(spread, gap)), len(R), self.df)

    def _rows_of(self, hypothesis: Any) -> Array:
        if isinstance(hypothesis, str):
            hypothesis = [hypothesis]
        if len(hypothesis) and isinstance(hypothesis[0], str):
            unknown = [name for name in hypothesis if name not in self.names]
            if unknown:
                raise ParameterError(
                    f"wald_test: there is no coefficient {unknown[0]!r}; there are {', '.join(self.names)}."
                )
            return np.eye(len(self.names))[[self.names.index(name) for name in hypothesis]]
        R = np.atleast_2d(np.asarray(hypothesis, dtype=float))
        if R.shape[1] != len(self.names):
            raise ParameterError(f"wald_test: the hypothesis must have {len(self.names)} columns; got {R.shape[1]}.")
        return R

    def predict_interval(
        self, X: Any, level: float | None = None, kind: Literal["mean", "new"] = "new"
    ) -> tuple[Array, Array]:
        """Return ends that hold the mean, or a new observation, of each row.

        The mean's interval is that of the score, carried through the link. The new observation's adds the family's
        spread: exact for the normal family; elsewhere quantiles of the family at the two ends of the mean, which holds
        at least `level` where the mean's interval does.
        """
        family, link = self._one_score("predict_interval")
        level = self.level if level is None else level
        eta, error = self._scores(X)
        half = self._quantile(level) * error
        if kind == "mean":
            return _ordered(link.mean(eta - half), link.mean(eta + half))
        if kind != "new":
            raise ParameterError(f"predict_interval: kind must be 'mean' or 'new'; got {kind!r}.")
        if family.name == "normal" and link.name == "identity":
            wide = self._quantile(level) * np.sqrt(error**2 + self.dispersion)
            return eta - wide, eta + wide
        inner = 1.0 - (1.0 - level) / 2  # half of the misses for the mean, half for the observation
        half = self._quantile(inner) * error
        low, high = _ordered(link.mean(eta - half), link.mean(eta + half))
        lower = self._distribution(low).interval(inner)[0]
        upper = self._distribution(high).interval(inner)[1]
        return np.asarray(lower), np.asarray(upper)

    def predict_dist(self, X: Any) -> Any:
        """Return the distribution of a new observation at each row, at the estimated coefficients and φ."""
        _, link = self._one_score("predict_dist")
        return self._distribution(np.asarray(link.mean(self._scores(X)[0])))

    def _distribution(self, mean: Array) -> Any:
        assert self.family is not None
        if self.family.distribution is None:
            raise ParameterError(f"predict_dist: the {self.family.name} family has no distribution in closed form.")
        return self.family.distribution(mean, self.dispersion)

    def _one_score(self, owner: str) -> tuple[Family, Link]:
        if self.family is None or self.link is None:
            raise ParameterError(f"{owner}: with several classes use the model's predict_proba.")
        return self.family, self.link

    def _scores(self, X: Any) -> tuple[Array, Array]:
        """Return the score of each row and its standard error."""
        X = read_features(self.model, X)
        X = np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=np.float64)
        coef = np.asarray(self.model.coef_, dtype=np.float64).ravel()
        eta = X @ coef + float(np.ravel(self.model.intercept_)[0])
        free = X[:, self.free_columns]
        rows = np.column_stack([np.ones(len(X)), free]) if self.model.fit_intercept else free
        return eta, np.sqrt(np.maximum(np.einsum("ij,jk,ik->i", rows, self.covariance, rows), 0.0))

    def to_frame(self, level: float | None = None) -> Any:
        """Return the table as a pandas dataframe, one row per coefficient."""
        import pandas as pd

        lower, upper = self.conf_int(level)
        columns = {
            "estimate": self.estimate,
            "std_error": self.std_error,
            "statistic": self.statistic,
            "p_value": self.p_value,
            "lower": lower,
            "upper": upper,
        }
        return pd.DataFrame(columns, index=self.names)

    def _lines(self) -> tuple[str, list[str], list[list[str]], str]:
        """Return title, head, rows and foot of the table."""
        lower, upper = self.conf_int()
        letter = "z" if np.isinf(self.df) else "t"
        head = ["coefficient", "estimate", "std. error", letter, f"P(>|{letter}|)", f"{100 * self.level:g}% interval"]
        rows = [
            [name, f"{b:.6g}", f"{se:.4g}", f"{t:.3f}", f"{p:.3g}", f"[{low:.5g}, {high:.5g}]"]
            for name, b, se, t, p, low, high in zip(
                self.names, self.estimate, self.std_error, self.statistic, self.p_value, lower, upper, strict=True
            )
        ]
        parts = [
            f"{self.n_rows:g} rows, {self.df_resid:g} residual degrees of freedom",
            f"{self.covariance_kind} errors",
        ]
        if self.family is None or self.family.knows_dispersion:
            parts.append(f"deviance {self.deviance:.6g} (null {self.null_deviance:.6g})")
            parts.append(f"pseudo-R² {self.pseudo_r_squared:.4f} (McFadden)")
        elif self.family.name == "normal":
            parts.append(f"dispersion {self.dispersion:.6g}")
            parts.append(f"R² {self.r_squared:.4f}, adjusted {self.adjusted_r_squared:.4f}")
        else:
            parts.append(f"dispersion {self.dispersion:.6g}")
            parts.append(f"D² {self.r_squared:.4f}")
        with contextlib.suppress(DataError, ParameterError):  # nothing to test, or hypotheses that depend on each other
            which = "all coefficients but the intercept" if self.model.fit_intercept else "all coefficients"
            parts.append(f"test of {which}: {self.overall_test()}")
        if (a := getattr(self.model, "overdispersion_", 0.0)) > 0:
            parts.append(f"overdispersion {a:.6g}")
        if np.isfinite(self.log_likelihood):
            parts.append(f"log-likelihood {self.log_likelihood:.6g}, AIC {self.aic:.6g}, BIC {self.bic:.6g}")
        return self.title, head, rows, "; ".join(parts)

    def __str__(self) -> str:
        title, head, rows, foot = self._lines()
        widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
        lines = [title]
        for row in [head, *rows]:
            cells = [
                row[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)),
            ]
            lines.append("  ".join(cells))
        return "\n".join([*lines, *foot.split("; ")])

    def _repr_html_(self) -> str:
        title, head, rows, foot = self._lines()
        top = "".join(f"<th>{escape(cell)}</th>" for cell in head)
        body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
        return f"<table><caption>{escape(title)}</caption><tr>{top}</tr>{body}</table><p>{escape(foot)}</p>"


def _ordered(a: Any, b: Any) -> tuple[Array, Array]:
    return np.minimum(a, b), np.maximum(a, b)
