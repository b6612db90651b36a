"""Ours against the peers: `python -m benchmarks [row ...]`."""

from . import (
    adaboost,
    bayesian,
    boosting,
    forests,
    gaussian_process,
    generative,
    glm,
    kernel_ridge,
    kernel_svm,
    linear,
    mixtures,
    neighbors,
    probability,
    sequences,
    shapley,
    small,
    sparse,
    svm,
    tool,
    trees,
)

#: The rows of every family; the saved results of a family are `results/<family>.json` and `.md`.
FAMILIES = {
    "adaboost": adaboost.ROWS,
    "bayesian": bayesian.ROWS,
    "boosting": boosting.ROWS,
    "forests": forests.ROWS,
    "gaussian_process": gaussian_process.ROWS,
    "generative": generative.ROWS,
    "glm": glm.ROWS,
    "kernel_ridge": kernel_ridge.ROWS,
    "kernel_svm": kernel_svm.ROWS,
    "linear": linear.ROWS,
    "mixtures": mixtures.ROWS,
    "neighbors": neighbors.ROWS,
    "probability": probability.ROWS,
    "sequences": sequences.ROWS,
    "shapley": shapley.ROWS,
    "small": small.ROWS,
    "sparse": sparse.ROWS,
    "svm": svm.ROWS,
    "tool": tool.ROWS,
    "trees": trees.ROWS,
}
ROWS = {row.name: row for rows in FAMILIES.values() for row in rows}
