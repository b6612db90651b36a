"""The page of hidden states: what the record says, escaped, and nothing of a wrong record."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.report import render_states


def record(**more):
    states = [
        {"name": "0 (low)", "share": 0.75, "stay": 4.0, "mean": [1.0], "spread": [0.5]},
        {"name": "1 (high)", "share": 0.25, "stay": 2.0, "mean": [9.0], "spread": [1.5]},
    ]
    series = {"name": "<b>level</b>", "x": np.arange(8), "y": np.arange(8.0), "labels": np.arange(8) % 2}
    return {
        "format": "learnable-states",
        "model": "GaussianHMM with 2 states",
        "rows": 8,
        "columns": ["<b>level</b>"],
        "states": states,
        "transitions": np.array([[0.75, 0.25], [0.5, 0.5]]),
        "series": series,
    } | more


def test_states_and_transitions_are_shown_and_names_are_escaped():
    page = render_states(record())
    for words in ("2 hidden states", "0 (low)", "75.0 %", "4 rows", "9 ± 1.5", "50.0 %", "&lt;b&gt;level"):
        assert words in page
    assert "<b>level" not in page and "<script" not in page


def test_a_record_of_something_else_is_refused():
    with pytest.raises(DataError, match="learnable-states"):
        render_states({"format": "learnable-clusters"})
