"""The bundles of arrays that the kernels of `histogram_grower` hand to each other."""

from __future__ import annotations

from typing import Any, NamedTuple


class Fields(NamedTuple):
    """How sums are packed; exact: not at all."""

    exact: Any
    h_bits: Any
    g_bits: Any
    h_most: Any  #: largest h of a row in steps
    g_step: Any
    h_step: Any


class Limits(NamedTuple):
    """What a cut must keep."""

    min_rows: Any
    min_hessian: Any
    reg_lambda: Any
    smoothing: Any
    monotone: Any


class Table(NamedTuple):
    """What does not change from tree to tree: codes, and where each column's bins are."""

    rows: Any  #: flat
    stride: Any
    columns: Any
    group_start: Any
    stored: Any
    first: Any
    n_bins: Any
    default: Any
    missing: Any
    categorical: Any
    has_missing: Any
    by_stored: Any
    stored_start: Any
    sign: Any
    edge_start: Any
    edges: Any


class Task(NamedTuple):
    """One tree: derivatives, rows (empty: all), seed and the rule."""

    gradient: Any
    hessian: Any
    sample: Any
    seed: Any
    max_leaves: Any
    max_depth: Any
    breadth_first: Any
    gamma: Any
    mode: Any  #: 0 choose, 1 quantised, 2 exact
    limits: Any
    shares: Any  #: columns for each tree, level and node
    sets: Any  #: (sets, d) uint8, interactions


class Work(NamedTuple):
    """Scratch of one thread for one column."""

    bins: Any
    sorted: Any
    prefix: Any
    g: Any
    h: Any
    n_left: Any
    n_right: Any
    score: Any
    score_bits: Any
    order: Any
    lut: Any
    masks: Any
    sums: Any


class Space(NamedTuple):
    """What threads share, and their copies of the nodes (first axis: thread)."""

    order: Any
    spare: Any
    pool: Any
    slot_size: Any
    n_slots: Any
    private: Any
    stats: Any
    block_sums: Any
    block_shift: Any
    middle: Any
    found: Any
    found_words: Any
    link: Any
    number: Any
    words: Any
    part: Any
    active: Any
    free: Any
    leaf_of_row: Any
    exact: Any
    stack: Any
