"""`learnable models`: what there is, before any data are seen."""

from __future__ import annotations

from typing import Any

from . import options

#: Shown by --help.
EXAMPLES = (
    "learnable models",
    "learnable models --json",
)

#: What is said of the targets that a model is made for.
_NOTES = {"counts": " of counts", "positive": " of positive numbers", "several": " of several columns (Python only)"}


def models(json: options.Json = False, debug: options.Debug = False) -> None:
    """List the models: generative or discriminative, parametric or not, and what a fit proves."""
    rows = listed_models()
    if json:
        import json as json_module

        print(json_module.dumps(rows, indent=2))
        return
    from .display import console, table_of

    shown = [
        [
            row["name"],
            row["family"],
            ", ".join(row["tasks"]) + _NOTES.get(row["targets"], ""),
            "generative" if row["generative"] else "discriminative",
            "parametric" if row["parametric"] else "nonparametric",
            row["certifies"],
        ]
        for row in rows
    ]
    heads = ["model", "family", "predicts", "models", "size", "what a fit proves"]
    console().print(table_of(heads, shown, whole=[0]))


def listed_models() -> list[dict[str, Any]]:
    """Return what the registry says of every model of data, as JSON types.

    Examples
    --------
    >>> from learnable.cli.models import listed_models
    >>> listed_models()[0]["name"]
    'LinearRegression'
    """
    from ..core.registry import REGISTRY, estimator_names

    found = []
    for name in estimator_names():
        entry = REGISTRY[name]
        if entry.traits is not None:
            traits = entry.traits
            found.append(
                {
                    "name": name,
                    "family": traits.family,
                    "tasks": list(traits.tasks),
                    "targets": traits.targets,
                    "generative": traits.generative,
                    "parametric": traits.parametric,
                    "certifies": traits.certifies,
                    "compared": [dict(variant) for variant in entry.variants],
                    "most_rows": entry.most_rows,
                }
            )
    return found
