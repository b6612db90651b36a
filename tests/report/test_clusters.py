"""The report of a clustering: everything is there, nothing is unescaped, nothing runs."""

import numpy as np
import pytest

from learnable.core.errors import DataError
from learnable.report import render_clusters

RECORD = {
    "format": "learnable-clusters",
    "source": "<b>rows</b>.csv",
    "created": "2024-02-29",
    "model": "GaussianMixture with 2 clusters",
    "rows": 1500,
    "columns": ["<script>", *(f"x{j}" for j in range(13))],
    "notes": ["columns were divided & so on"],
    "certificate": "ascent: …",
    "clusters": [
        {"name": "0", "rows": 1000, "share": 2 / 3, "mean": np.arange(14.0), "spread": np.ones(14)},
        {"name": "1", "rows": 500, "share": 1 / 3, "mean": -np.arange(14.0), "spread": np.ones(14)},
    ],
    "choice": {"criterion": "BIC", "candidates": [1, 2, 3], "values": [10.0, 5.0, 6.0], "caption": "The BIC."},
    "picture": {
        "x": [0.0, 1.0], "y": [0.0, 1.0], "labels": [0, 1], "centres": [[0.0, 0.0], [1.0, 1.0]],
        "covariances": [np.eye(2)] * 2, "x_label": "<i>", "y_label": "b", "caption": "Rows by cluster",
    },
    "history": {"name": "objective", "values": [1.0, 2.0], "caption": "It never falls."},
    "command": "learnable cluster rows.csv",
}  # fmt: skip


def test_everything_is_on_the_page():
    page = render_clusters(RECORD)
    for words in ("1,500 rows", "66.7 %", "GaussianMixture with 2 clusters", "2 further columns", "never falls", "BIC"):
        assert words in page
    assert page.count("<svg") == 3


def test_text_is_escaped_and_nothing_runs():
    page = render_clusters(RECORD)
    assert "<script" not in page and "<b>rows" not in page and "&lt;script&gt;" in page
    assert "default-src 'none'" in page and "http" not in page.replace("http-equiv", "").replace(
        "http://www.w3.org/2000/svg", ""
    )


def test_other_records_are_refused():
    with pytest.raises(DataError, match="learnable-clusters"):
        render_clusters({"format": "learnable-comparison"})
