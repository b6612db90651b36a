"""The lasso along its penalty: columns enter one by one, each with the correlation that the optimum demands."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core import Array, DataError, NDArray
from ...plots import coefficient_paths
from ..drawing import level_bars
from ..scene import Scene, Step
from ..tables import as_floats, columns_of, standardised, take_numbers, thin

_MOST_COLUMNS: Final = 16
#: Smallest penalty of the path, relative to the one that sets every coefficient to zero.
_SHORTEST: Final = 0.003


def read_lasso(table: Any = None) -> tuple[Array, Array, list[str]]:
    """Return standardised columns, the last numeric column as target, and the names of the others."""
    if table is None:
        from sklearn.datasets import load_diabetes

        data = load_diabetes()
        return standardised(data.data), standardised(data.target), list(data.feature_names)
    columns = columns_of("lasso", table)
    take_numbers("lasso", columns, 2, least=6)
    names = [name for name in columns if _differs(columns[name])]
    rows = standardised(thin(np.column_stack([as_floats(columns[name]) for name in names])))
    if not np.isfinite(rows).all():
        raise DataError("lasso: a column does not differ in the rows that are shown; leave it out.")
    return rows[:, :-1][:, :_MOST_COLUMNS], rows[:, -1], names[:-1][:_MOST_COLUMNS]


def _differs(values: NDArray[Any]) -> bool:
    try:
        take_numbers("lasso", {"": values}, 1)
    except DataError:
        return False
    return True


def build_lasso(X: Array, y: Array, names: list[str], *, n_steps: int = 24) -> list[Step]:
    """Return a step for each of some penalties, from the one that sets everything to zero downwards."""
    from ...linear import Lasso, lasso_path

    n_steps = min(max(n_steps, 4), 60)
    top = float(np.abs(X.T @ y).max() / len(y))
    alphas = np.geomspace(top, _SHORTEST * top, n_steps)
    path = np.geomspace(top, _SHORTEST * top, 60)
    _, coefs, _ = lasso_path(X, y, alphas=path)
    made = []
    before = 0
    for alpha in (float(f"{value:.4g}") for value in alphas):
        model = Lasso(alpha=alpha, fit_intercept=False).fit(X, y)
        pull = np.abs(X.T @ (y - X @ model.coef_)) / len(y)
        active = model.coef_ != 0
        count = int(active.sum())
        shown = coefficient_paths(
            path, coefs, names=names, chosen=alpha, title="Coefficients along the path", x_label="log₁₀ α"
        )
        bars = level_bars(
            names,
            pull / alpha,
            highest=1.0,
            level=1.0,
            marked=active.tolist(),
            title="Correlation of each column with what is left",
            x_label="|xⱼ·(y − Xβ)| / n, as a share of α",
        )
        entered = "No column is in the model." if count == 0 else f"{count} of {len(names)} columns are in the model."
        made.append(
            Step(
                title=f"α = {alpha:.3g}" + (f": {count - before} more" if count > before else ""),
                pictures=(shown, bars),
                text=f"{entered} Their bars end exactly at the dashed line, α; all others end before it. That is the "
                "whole condition of the optimum, and the duality gap measures how well it holds.",
                formula=r"\min_β \frac{1}{2n}‖y − Xβ‖^2 + α‖β‖_1"
                "\n"
                r"β_j ≠ 0 ⇒ \frac{1}{n}|x_j·(y − Xβ)| = α",
                code=f"model = Lasso(alpha={alpha!r},\n    fit_intercept=False).fit(X, y)",
                certificates={"model": model.certificate_},
                numbers={"columns in the model": count, "R²": float(model.score(X, y))},
            )
        )
        before = count
    return made


LASSO = Scene(
    name="lasso",
    title="The path of the lasso",
    text="The penalty α falls from where every coefficient is zero; columns enter one after the other, and each "
    "stays exactly on the border that α draws.",
    built_in="Ten measurements of 442 people with diabetes, and how the disease went on.",
    setup="from learnable import Lasso\nfrom learnable.lab import SCENES\n\n"
    'X, y, names = SCENES["lasso"].read(None)  # or a table of your own',
    takes="columns of numbers, the last of them the target.",
    read=read_lasso,
    build=build_lasso,
    cover=12,
)
