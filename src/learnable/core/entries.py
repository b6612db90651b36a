"""What the registry says about one class: where it lives, who checks it, what kind of model it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Entry:
    """Where a class lives and who checks its certificate.

    Attributes
    ----------
    path : str
        `"module:Class"`.
    checker : str or None
        `"module:function"`; called as `function(model, X, y, sample_weight)`, returns a fresh certificate value.
    estimator : bool
        False for parts that are stored inside models, such as distributions.
    traits : Traits or None
        What kind of model it is; None for what is no model of data, such as an encoder.
    variants : tuple of dict
        The settings that a comparison tries; empty if it leaves the class out.
    most_rows : int or None
        A comparison leaves the class out of longer tables, unless it is named; None if it never does.
    scales_target : bool
        Whether its parameters are in the units of the target, so that a comparison standardises the targets for it.
    stands_alone : bool
        Whether a file may hold it by itself although it is no estimator, as it may hold the draws of a sampler.
    only_scores : bool
        Whether a classifier has scores and no probabilities by default; a comparison calibrates it.
    """

    path: str
    checker: str | None = None
    estimator: bool = True
    traits: Traits | None = None
    variants: tuple[dict[str, Any], ...] = ()
    most_rows: int | None = None
    scales_target: bool = False
    only_scores: bool = False
    stands_alone: bool = False


@dataclass(frozen=True)
class Traits:
    """What a textbook says of a model before it looks at any data.

    Attributes
    ----------
    family : str
        "linear", "trees", …
    tasks : tuple of {"regression", "binary", "multiclass"}
        What it predicts.
    generative : bool
        Whether it models how x arises (p(x, y)), rather than y given x.
    parametric : bool
        Whether the number of parameters is fixed before the data are seen.
    certifies : str
        What a fit proves, in words.
    targets : {"any", "counts", "positive", "several"}
        Which numbers it is made for; a comparison leaves it out, unless it is named, where the targets are others.
        "several": rows of at least two numbers, which a tool for one column cannot give.
    """

    family: str
    tasks: tuple[str, ...]
    generative: bool
    parametric: bool
    certifies: str
    targets: str = "any"
