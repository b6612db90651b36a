"""`ln.summary(model)`: what was fitted, on what, how well it was solved, and its most important numbers.

Text in a terminal, a small page in a notebook. Where the coefficients have standard errors, their table is that of
`ln.infer`.
"""

from __future__ import annotations

import textwrap
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, LearnableError, ParameterError
from ..core.estimator import Certificate
from ..plots.markup import Markup, clean, join, tag
from .card import changed_parameters
from .facts import Grid, column_names, declared, grids, objective, single_numbers
from .tables import is_numeral
from .words import certificate_mark

_WIDTH: Final = 80
_STYLE: Final = Markup(
    "<style>"
    ".ln-summary{font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;font-variant-numeric:tabular-nums;"
    "max-width:52em;padding:.7em 1em;border:1px solid color-mix(in srgb,currentColor 22%,transparent);"
    "border-radius:6px;overflow-x:auto}"
    ".ln-summary h4{margin:0;font-size:1.05em}.ln-summary p{margin:.2em 0}"
    ".ln-summary dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.1em 1.2em;margin:.4em 0}"
    ".ln-summary dt{opacity:.72}.ln-summary dd{margin:0;overflow-wrap:anywhere}"
    ".ln-summary table{font:inherit;border-collapse:collapse;margin:.5em 0;background:none}"
    ".ln-summary caption{text-align:left;font-weight:650;padding:.2em 0;color:inherit;caption-side:top;"
    "white-space:nowrap}"
    ".ln-summary th,.ln-summary td{padding:.1em .9em .1em 0;text-align:right;background:none;color:inherit}"
    ".ln-summary th{font-weight:400;opacity:.72}"
    ".ln-summary th:first-child,.ln-summary td:first-child,.ln-summary .ln-left{text-align:left}"
    "</style>"
)


@dataclass(frozen=True, repr=False)
class Summary:
    """What `ln.summary` found; it prints as text, and a notebook shows it as a page.

    Attributes
    ----------
    title : str
        The model and the table it was fitted to.
    lines : tuple of (str, str)
        Terms and what is to be said about them.
    grids : tuple of Grid
        Small tables: title, head, rows, note.
    inference : Inference or None
        Standard errors, tests and intervals of the coefficients, where they are known.
    """

    title: str
    lines: tuple[tuple[str, str], ...]
    grids: tuple[Grid, ...] = ()
    inference: Any = None

    def __str__(self) -> str:
        pieces = [self.title, ""]
        width = max((len(term) for term, _ in self.lines), default=0)
        for term, text in self.lines:
            filled = textwrap.wrap(text, _WIDTH - width - 4, break_on_hyphens=False) or [""]
            pieces.append(f"  {term:<{width}}  {filled[0]}")
            pieces += [" " * (width + 4) + more for more in filled[1:]]
        for grid in self.grids:
            pieces += ["", f"  {grid.title}", *_text_of(grid)]
        if self.inference is not None:
            pieces += ["", *(f"  {line}" for line in str(self.inference).splitlines())]
        return "\n".join(pieces)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the page that notebooks show; everything in it is escaped."""
        pairs = [child for term, text in self.lines for child in (tag("dt", term), tag("dd", text))]
        tables = [_table_of(grid) for grid in self.grids]
        inference = None if self.inference is None else Markup(self.inference._repr_html_())
        body = [tag("h4", self.title), tag("dl", *pairs), *tables, inference]
        return str(tag("div", _STYLE, *body, class_="ln-summary"))


def summary(model: Any, X: Any = None, y: Any = None) -> Summary:
    """Say what a fitted model is: the table, the objective, how well it was solved, the most important numbers.

    Parameters
    ----------
    model : estimator, Pipeline, Chains, or a solved decision process
        Fitted.
    X, y : optional
        The rows of the fit. With them the score on these rows is given, and, for likelihood models without a penalty,
        standard errors, tests and intervals of the coefficients (`ln.infer`).

    Returns
    -------
    Summary
        Prints as text; a notebook shows it as a page.

    Examples
    --------
    >>> import learnable as ln
    >>> model = ln.Ridge(alpha=0.5).fit([[0.0], [1.0], [2.0], [3.0]], [0.0, 1.0, 2.5, 3.0])
    >>> print(ln.summary(model))
    Ridge, fitted to 4 rows and 1 column
    <BLANKLINE>
      Settings   alpha=0.5
      Solved     solved to ...
    ...
      Coefficients, the largest first
      column  coefficient
      x0           0.9545
    """
    if not hasattr(model, "get_params"):
        return _of_result(model)
    check_is_fitted(model)
    inner = _inner_of(model)
    names = _names_of(model, inner)
    found = grids(inner, names)
    inference = _inference(inner, X, y) if inner is model else None
    if inference is not None:
        found = [grid for grid in found if not grid.title.startswith("Coefficients")]
    elif not found:
        found = [grid for grid in [declared(inner)] if grid is not None]
    lines = [*_settings(model, inner), *_classes(model), *_result(inner), *_effort(inner), *_score(model, X, y)]
    if inference is None:
        lines += single_numbers(inner)
    return Summary(_title(model, inner), tuple(lines), tuple(found), inference)


def _inner_of(model: Any) -> Any:
    """Return the model that sees the numbers: the last step of a pipeline, the model behind an encoder."""
    if hasattr(model, "steps") and hasattr(model, "named_steps"):
        return model.steps[-1][1]
    return model.model_ if hasattr(model, "encoder_") and hasattr(model, "model_") else model


def _names_of(model: Any, inner: Any) -> list[str]:
    """Return the names of the columns that the inner model sees, as well as they are known."""
    names = column_names(inner)
    before = getattr(model, "encoder_", None)
    if before is None and inner is not model and len(model.steps) > 1:
        before = model[:-1]
    if before is not None and not hasattr(inner, "feature_names_in_"):
        with suppress(AttributeError, ValueError, TypeError):  # a step that cannot name what it makes
            named = [str(name) for name in before.get_feature_names_out()]
            names = named if len(named) == len(names) else names
    return names


def _title(model: Any, inner: Any) -> str:
    name = type(inner).__name__
    if hasattr(model, "named_steps"):
        name = " → ".join(type(step).__name__ for _, step in model.steps)
    elif inner is not model:
        name = f"{type(model).__name__}: {name} on an encoded table"
    n_rows = rows_of(inner)
    n_columns = getattr(model, "n_features_in_", getattr(inner, "n_features_in_", None))
    table = [_count(n_rows, "row")] if n_rows else []
    table += [_count(n_columns, "column")] if n_columns else []
    return f"{name}, fitted to {' and '.join(table)}" if table else f"{name}, fitted"


def rows_of(model: Any) -> int | None:
    """Return how many rows a model was fitted to; None where it does not say."""
    certificate = getattr(model, "certificate_", None)
    known = vars(model)
    if isinstance(certificate, Certificate) and certificate.n_rows:
        return certificate.n_rows
    for name in ("n_rows_", "n_samples_", "n_samples_fit_"):
        if isinstance(known.get(name), (int, np.integer)):
            return int(known[name])
    for name in ("labels_", "embedding_", "doc_topic_", "Q_"):
        if known.get(name) is not None:
            return len(known[name])
    members = known.get("estimators_") or known.get("members_") or []
    counts = [rows_of(member) for member in list(members)[:1] if hasattr(member, "__dict__")]
    return counts[0] if counts and type(model).__name__.startswith("OneVsRest") else None


def _count(number: Any, what: str) -> str:
    return f"{int(number):,} {what}{'' if number == 1 else 's'}"


def _settings(model: Any, inner: Any) -> list[tuple[str, str]]:
    return [("Settings", ", ".join(changed_parameters(inner)) or "defaults")]


def _classes(model: Any) -> list[tuple[str, str]]:
    classes = getattr(model, "classes_", None)
    if not isinstance(classes, np.ndarray) or classes.ndim != 1:
        return []
    shown = ", ".join(clean(label, 30) for label in classes[:8].tolist())
    return [("Classes", f"{len(classes)}: {shown}{' …' if len(classes) > 8 else ''}")]


def _result(model: Any) -> list[tuple[str, str]]:
    """Return the objective and how well it was solved, in words."""
    lines = []
    reached = objective(model)
    if reached is not None:
        lines.append(("Objective", f"{reached[1]} ({reached[0]})"))
    certificate = getattr(model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return lines
    if certificate.kind == "none":
        return [*lines, ("Solved", "nothing is known about how well the fit was solved")]
    _, mark = certificate_mark(certificate.to_dict())
    text = f"{mark}: {certificate.sentence}; tolerance {certificate.tolerance:.2g}"
    if not certificate.holds:
        text += f". The tolerance is not reached: {getattr(model, '_remedy', 'fit for longer')}"
    return [*lines, ("Solved" if certificate.holds else "Not solved", text)]


def _effort(model: Any) -> list[tuple[str, str]]:
    certificate = getattr(model, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return []
    time = f", {certificate.seconds:.2g} s" if certificate.seconds else ""
    return [("Effort", f"{_count(certificate.n_iter, 'iteration')}{time}")]


def _score(model: Any, X: Any, y: Any) -> list[tuple[str, str]]:
    """Return the score on the rows given, if the model has one for them."""
    if X is None or y is None or not hasattr(model, "score"):
        return []
    what = "score"
    if is_classifier(model):
        what = "accuracy"
    elif is_regressor(model):
        what = "R² (or the share of the deviance)"
    try:
        value = float(model.score(X, y))
    except (LearnableError, ValueError, TypeError) as error:
        raise DataError(f"summary: the score on these rows cannot be computed: {error}") from error
    return [("Score", f"{value:.4g}: {what} on the rows given")]


def _inference(model: Any, X: Any, y: Any) -> Any:
    """Return the table of the coefficients with their errors, where the model is one of likelihood and unpenalised."""
    if hasattr(model, "summary") and hasattr(model, "information_factor_"):
        with suppress(LearnableError):  # a fit on the border has no standard errors
            return model.summary()
    if X is None or y is None or not hasattr(model, "coef_"):
        return None
    from ..linear import infer

    with suppress(ParameterError, DataError):  # penalised, or no likelihood: the coefficients alone
        return infer(model, X, y)
    return None


def _of_result(result: Any) -> Summary:
    """Return the summary of what is no estimator: chains, a solved process, a policy."""
    name = type(result).__name__
    known = {key: value for key, value in getattr(result, "__dict__", {}).items() if not key.startswith("_")}
    lines = []
    certificate = getattr(result, "certificate_", known.get("certificate"))
    if isinstance(certificate, Certificate):
        _, mark = certificate_mark(certificate.to_dict())
        lines.append(("Solved" if certificate.holds else "Not solved", f"{mark}: {certificate.sentence}"))
    if hasattr(result, "summary"):
        found = result.summary()
        return Summary(f"{name}", tuple(lines), (), found)
    if not known:
        raise DataError(f"summary: {name} is neither a fitted estimator nor a result of this library.")
    rows = []
    for key, value in known.items():
        shape = "×".join(str(size) for size in np.shape(value)) if isinstance(value, np.ndarray) else ""
        rows.append([key, f"array {shape}" if shape else clean(repr(value), 60)])
    return Summary(name, tuple(lines), (Grid("What it holds", ["name", "value"], rows[:12]),))


def _text_of(grid: Grid) -> list[str]:
    """Return a table as lines, numbers to the right; lines that are too wide are cut."""
    cells = [grid.head, *grid.rows]
    widths = [max(len(row[k]) for row in cells) for k in range(len(grid.head))]
    right = _numeric(grid)
    lines = []
    for row in cells:
        padded = [
            cell.rjust(n) if right[k] else cell.ljust(n) for k, (cell, n) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  " + "  ".join(padded).rstrip()[: _WIDTH - 2])
    return [*lines, *([f"  {grid.note}"] if grid.note else [])]


def _numeric(grid: Grid) -> list[bool]:
    """Tell which columns, the first aside, hold numbers."""
    return [
        k > 0 and all(is_numeral(row[k].strip(" %").replace(",", "") or "0") for row in grid.rows)
        for k in range(len(grid.head))
    ]


def _table_of(grid: Grid) -> Markup:
    sides = [None if right else "ln-left" for right in _numeric(grid)]
    head = tag("tr", *(tag("th", cell, class_=side) for cell, side in zip(grid.head, sides, strict=True)))
    rows = [
        tag("tr", *(tag("td", cell, class_=side) for cell, side in zip(row, sides, strict=True))) for row in grid.rows
    ]
    note = tag("p", grid.note) if grid.note else None
    return join([tag("table", tag("caption", grid.title), head, *rows), note or ""])
