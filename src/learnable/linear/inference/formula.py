"""Formulas such as "y ~ a*b + bs(x)", through formulaic where it is installed."""

from __future__ import annotations

from typing import Any

from ...core.errors import DataError, ParameterError


def from_formula(formula: str, data: Any) -> tuple[Any, Any]:
    """Return the columns and the target that a formula makes of a dataframe.

    Parameters
    ----------
    formula : str
        "target ~ terms"; `a*b` is both with their product, `bs(x)` a B-spline, `C(a)` a category, `- 1` takes no
        intercept, for which the model is told `fit_intercept=False`.
    data : dataframe
        With the columns that the formula names. Rows with missing values are left out of both.

    Returns
    -------
    X : dataframe
        One column per coefficient, without the intercept: models have their own.
    y : array
        The target.

    Examples
    --------
    >>> import pandas as pd
    >>> from learnable.linear import from_formula
    >>> table = pd.DataFrame({"y": [1.0, 2.0, 3.0, 5.0], "a": [0.0, 1.0, 2.0, 3.0], "g": ["u", "v", "u", "v"]})
    >>> X, y = from_formula("y ~ a*g", table)  # doctest: +SKIP
    >>> list(X)  # doctest: +SKIP
    ['a', 'g[T.v]', 'a:g[T.v]']
    """
    try:
        import formulaic
    except ImportError as error:
        raise ImportError('from_formula needs formulaic: pip install "learnable[formula]".') from error
    if "~" not in formula:
        raise ParameterError(f"from_formula: a formula has a target, as in 'y ~ a + b'; got {formula!r}.")
    try:
        target, columns = formulaic.model_matrix(formula, data)
    except formulaic.errors.FormulaicError as error:
        raise ParameterError(f"from_formula: {formula!r} cannot be read: {error}") from error
    if target.shape[1] != 1:
        raise DataError(f"from_formula: the target must be one column of numbers; {formula!r} makes {target.shape[1]}.")
    X = columns.drop(columns="Intercept", errors="ignore")
    if X.shape[1] == 0:
        raise DataError(f"from_formula: {formula!r} has no columns besides the intercept.")
    return X, target.to_numpy(dtype=float).ravel()
