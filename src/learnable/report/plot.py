"""`ln.plot(model, X, y)`: the figures that people look at first for a model of this kind.

A notebook shows them; elsewhere they are saved as SVG, which needs nothing, or as PNG, by matplotlib or cairosvg.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
import scipy.sparse as sp
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, ParameterError
from ..core.model_file import writing
from ..data.door import is_frame, read_values, take_named_columns
from ..data.frames import open_frame
from ..plots.markup import Markup, side_by_side, stacked
from ..plots.paint import as_png, paint, size_of, standalone
from .facts import column_names
from .pictures import KINDS, RESULTS
from .predictions import Shown, predictions

_MOST_ROWS: Final = 20_000  # rows to look at: more would not be seen
_MOST_WIDTH: Final = 1000.0  # of figures side by side
#: Colours that suit light and dark pages, made from the colour of the page's text.
_COLOURS: Final = (
    "--ln-rule:color-mix(in srgb,currentColor 16%,transparent);"
    "--ln-muted:color-mix(in srgb,currentColor 62%,transparent);--ln-accent:#12907f"
)


@dataclass(frozen=True)
class Plot:
    """Figures of a model; a notebook shows them, `save` writes them.

    Attributes
    ----------
    svg : Markup
        The figures as SVG.
    kind : str
        What kind of model they are for.
    """

    svg: Markup = field(repr=False)
    kind: str

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the figures to a file that ends in .svg or .png; return its path.

        Raises
        ------
        ImportError
            For a PNG, if neither matplotlib nor cairosvg is installed.
        """
        target = Path(path)
        ending = target.suffix.lower()
        if ending not in (".svg", ".png"):
            raise ParameterError(f"plot: the file must end in .svg or .png; got {target.name!r}.")
        content = standalone(self.svg).encode() if ending == ".svg" else as_png(self.svg)
        with writing(target) as file:
            file.write(content)
        return target

    def _repr_html_(self) -> str:
        """Return the figures for a notebook, in the colours of its page."""
        width, _ = size_of(self.svg)
        return f'<div style="max-width:{width:.0f}px;overflow-x:auto;{_COLOURS}">{self.svg}</div>'

    def _repr_svg_(self) -> str:
        return standalone(self.svg)


def plot(model: Any, X: Any = None, y: Any = None, *, ax: Any = None) -> Any:
    """Draw what people look at first for a model of this kind.

    Linear models: coefficients and residuals. Trees: the tree. Forests and boosting: importances and the loss by round.
    Networks: the loss by epoch. Classifiers of any kind: ROC, calibration and confusion. Regressions on one column: the
    curve with its band. Clusters and mixtures: rows with centres and ellipses. Components and embeddings: the rows in
    two dimensions. Hidden Markov models: states over time. Chains: traces and ranks. Solved decision processes: values;
    bandits: what was played. Simulations of bandits draw their regret (`simulate(…).plot()`).

    Parameters
    ----------
    model : estimator, Pipeline, Chains, MDPSolution or bandit policy
        Fitted.
    X : array, sparse array, dataframe or path, optional
        Rows to look at; at most 20,000 are used, evenly spaced.
    y : array of shape (n_samples,) or str, optional
        Their targets; with a dataframe or a path, the name of a column.
    ax : matplotlib.axes.Axes, optional
        Draw there instead.

    Returns
    -------
    Plot or matplotlib.axes.Axes
        The figures, with `save("x.svg")` and `save("x.png")`; or `ax`, if it was given.

    Examples
    --------
    >>> import learnable as ln
    >>> X, y = [[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]], [0.0, 1.0, 2.5, 3.0]
    >>> figure = ln.plot(ln.Ridge().fit(X, y), X, y)
    >>> figure
    Plot(kind='linear model')
    >>> figure.svg.startswith("<svg")
    True
    """
    kind, figures = _figures(model, X, y)
    if not figures:
        raise DataError(
            f"plot: there is nothing to draw of {type(model).__name__} alone; pass rows, and targets if it predicts "
            "them: plot(model, X, y)."
        )
    drawn = _arranged(figures, f"{type(model).__name__}: {kind}")
    if ax is not None:
        return paint(drawn, ax)
    return Plot(drawn, kind)


def _figures(model: Any, X: Any, y: Any) -> tuple[str, list[Markup]]:
    if not hasattr(model, "get_params"):
        for attributes, draw in RESULTS:
            if all(hasattr(model, name) for name in attributes):
                return type(model).__name__, draw(model)
        raise DataError(f"plot: there are no figures of {type(model).__name__}; pass a fitted estimator or Chains.")
    check_is_fitted(model)
    shown = _shown(model, X, y)
    for kind, fits, draw, with_predictions in KINDS:
        if fits(shown):
            own = draw(shown)
            return kind, [*own, *(predictions(shown, len(own)) if with_predictions else [])]
    raise DataError(f"plot: there are no figures of {type(model).__name__}, which neither predicts nor transforms.")


def _shown(model: Any, X: Any, y: Any) -> Shown:
    """Return the model that is looked at and its rows; of a pipeline, the last step and the rows that it sees."""
    if X is not None:
        X, y = _read(X, y)
    if hasattr(model, "named_steps"):
        before = model[:-1] if len(model.steps) > 1 else None
        return _shown_behind(before, model.steps[-1][1], X, y)
    if hasattr(model, "encoder_") and hasattr(model, "model_"):
        return _shown_behind(model.encoder_, model.model_, X, y)
    return _shown_alone(model, X, y, column_names(model))


def _shown_behind(before: Any, model: Any, X: Any, y: Any) -> Shown:
    """Return a model that sees what other steps make of the rows."""
    names = column_names(model)
    if before is None:
        return _shown_alone(model, X, y, names)
    with suppress(AttributeError, ValueError, TypeError):  # a step that cannot name what it makes
        made = [str(name) for name in before.get_feature_names_out()]
        names = made if len(made) == len(names) else names
    return _shown_alone(model, None if X is None else before.transform(X), y, names)


def _shown_alone(model: Any, X: Any, y: Any, names: list[str]) -> Shown:
    rows = None if X is None else _numbers_of(X)
    if not names and rows is not None:
        names = [f"x{j}" for j in range(rows.shape[1])]
    return Shown(model, X, rows, y, names)


def _read(X: Any, y: Any) -> tuple[Any, Any]:
    """Return rows and targets, at most so many as can be seen."""
    if isinstance(X, (str, os.PathLike)):
        from ..data.files import read_table

        X = read_table(X)
    X, y, _ = take_named_columns("plot", X, y, None)
    if not (is_frame(X) or sp.issparse(X)):
        X = np.asarray(X)
        X = X[:, None] if X.ndim == 1 else X
    targets = None if y is None else np.asarray(read_values("plot", y))
    n_rows = X.shape[0]
    if targets is not None and len(targets) != n_rows:
        raise DataError(f"plot: X has {n_rows} rows, y has {len(targets)}. Pass one target per row.")
    if targets is not None and targets.ndim == 2 and targets.shape[1] == 1:
        targets = targets[:, 0]
    if n_rows <= _MOST_ROWS:
        return X, targets
    kept = np.linspace(0, n_rows - 1, _MOST_ROWS).round().astype(int)
    taken = open_frame("plot", X)[kept.tolist()].to_native() if is_frame(X) else X[kept]
    return taken, None if targets is None else targets[kept]


def _numbers_of(X: Any) -> Any:
    """Return the rows as numbers; None if they are words."""
    if is_frame(X):
        X = open_frame("plot", X).to_numpy()
    if sp.issparse(X):
        X = X.toarray()
    try:
        rows = np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return None
    return rows if rows.ndim == 2 else None


def _arranged(figures: list[Markup], title: str) -> Markup:
    """Return the figures as one, in lines of at most a page's width."""
    lines: list[list[Markup]] = [[]]
    width = 0.0
    for figure in figures:
        own = size_of(figure)[0]
        if lines[-1] and width + own > _MOST_WIDTH:
            lines.append([])
            width = 0.0
        lines[-1].append(figure)
        width += own
    drawn = [side_by_side(*line, title=title) for line in lines]
    return drawn[0] if len(drawn) == 1 else stacked(*drawn, title=title)
