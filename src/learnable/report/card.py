"""The card of an estimator in a notebook: what was set, what was fitted, how well the fit was solved.

It takes the colours of the notebook around it, so it suits light and dark themes alike, and needs no script.
"""

from __future__ import annotations

import inspect
import reprlib
from typing import Any, Final

import numpy as np

from ..core.estimator import Certificate
from ..plots.markup import Markup, clean, join, tag
from .words import certificate_mark, listing

_STYLE: Final = Markup(
    "<style>"
    ".ln-card{font:14px/1.5 system-ui,-apple-system,'Segoe UI',sans-serif;font-variant-numeric:tabular-nums;"
    "max-width:46em;padding:.7em 1em;border:1px solid color-mix(in srgb,currentColor 22%,transparent);"
    "border-radius:6px}"
    ".ln-card b{font-weight:650}"
    ".ln-card p{margin:0;padding:0}"
    ".ln-card dl{display:grid;grid-template-columns:max-content minmax(0,1fr);gap:.15em 1.2em;margin:.45em 0 0}"
    ".ln-card dt{opacity:.72;font-weight:400}"
    ".ln-card dd{margin:0;overflow-wrap:anywhere}"
    ".ln-card code{font:.92em ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;background:none;color:inherit}"
    ".ln-card .ln-state{opacity:.72}"
    "</style>"
)
_MOST_PARAMETERS: Final = 12
_MOST_CLASSES: Final = 6


def card(estimator: Any) -> str:
    """Return a short HTML card for a notebook.

    Parameters
    ----------
    estimator : estimator
        Fitted or not; any estimator with scikit-learn's `get_params`.

    Returns
    -------
    str
        HTML; everything in it is escaped.

    Examples
    --------
    >>> from learnable.linear import Ridge
    >>> from learnable.report import card
    >>> "alpha=0.5" in card(Ridge(alpha=0.5))
    True
    >>> "solved to" in card(Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5]))
    True
    """
    fitted = [item for item in vars(estimator) if item.endswith("_") and not item.startswith("_")]
    title = tag(
        "p",
        tag("b", type(estimator).__name__),
        " ",
        tag("span", "fitted" if fitted else "not fitted", class_="ln-state"),
    )
    pairs = [
        ("Parameters", _parameters(estimator)),
        ("Shape", _shape(estimator)),
        ("Classes", _classes(estimator)),
        ("Optimisation", _certificate(estimator)),
    ]
    lines = [child for term, text in pairs if text for child in (tag("dt", term), tag("dd", text))]
    return str(tag("div", _STYLE, title, tag("dl", *lines) if lines else None, class_="ln-card"))


def _parameters(estimator: Any) -> Markup | str:
    changed = [text if text == "…" else tag("code", text) for text in changed_parameters(estimator)]
    return join(changed, ", ") or "defaults"


def changed_parameters(estimator: Any) -> list[str]:
    """Return the parameters that differ from their defaults, as `name=value`; an ellipsis ends a long list."""
    defaults = {
        name: parameter.default for name, parameter in inspect.signature(type(estimator).__init__).parameters.items()
    }
    changed = [
        f"{name}={_short(value)}"
        for name, value in estimator.get_params(deep=False).items()
        if not _same(value, defaults.get(name, inspect.Parameter.empty))
    ]
    return [*changed[:_MOST_PARAMETERS], *(["…"] if len(changed) > _MOST_PARAMETERS else [])]


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and _short(value) == _short(default))


def _short(value: Any) -> str:
    shortener = reprlib.Repr()
    shortener.maxstring = shortener.maxother = 80
    return clean(" ".join(shortener.repr(value).split()), 120)


def _shape(estimator: Any) -> str | None:
    features = getattr(estimator, "n_features_in_", None)
    if features is None:
        return None
    names = [str(name) for name in getattr(estimator, "feature_names_in_", [])]
    listed = f": {clean(', '.join(names[:6]), 160)}{' …' if len(names) > 6 else ''}" if names else ""
    return f"{features:,} column{'' if features == 1 else 's'}{listed}"


def _classes(estimator: Any) -> Markup | None:
    classes = getattr(estimator, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        return None
    return listing([tag("bdi", clean(label, 40)) for label in np.asarray(classes).tolist()], _MOST_CLASSES)


def _certificate(estimator: Any) -> Markup | None:
    certificate = getattr(estimator, "certificate_", None)
    if not isinstance(certificate, Certificate):
        return None
    if certificate.kind == "none":
        return join(["nothing is known about how well the fit was solved"])
    _, mark = certificate_mark(certificate.to_dict())
    steps = "one iteration" if certificate.n_iter == 1 else f"{certificate.n_iter:,} iterations"
    return join([tag("b", mark), f": {certificate.sentence}; tolerance {certificate.tolerance:.2g}; {steps}"])
