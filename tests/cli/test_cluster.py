"""`learnable cluster`: how many clusters, the rows of each, the report and the model."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

import learnable as ln
from learnable.cli.cluster import read_rows
from learnable.core.errors import DataError


@pytest.fixture
def groups(folder):
    rng = np.random.default_rng(0)
    sizes, means = (60, 40, 20), np.array([[0.0, 0.0], [8.0, 0.0], [0.0, 900.0]])
    of = np.repeat([0, 1, 2], sizes)
    X = means[of] + rng.normal(size=(120, 2)) * [1.0, 50.0]
    a = pa.array(X[:, 0], mask=np.arange(120) == 7)
    columns = {"id": np.arange(120), "a": a, "b": X[:, 1], "name": ["x"] * 120, "same": np.ones(120)}
    pyarrow.csv.write_csv(pa.table(columns), "groups.csv")
    return of


@pytest.mark.parametrize("model, named", [("gaussian", "GaussianMixture"), ("kmeans", "KMeans")])
def test_the_groups_are_found_and_counted(learnable, groups, model, named):
    files = ["-o", "rows.csv", "--report", "r.html", "--save", "m.safetensors"]
    code, out, _ = learnable("cluster", "groups.csv", "--model", model, "--most", "5", *files)
    assert code == 0 and f"{named}: 3 clusters of 120 rows, 2 columns" in out and "ascent" in out
    assert "left out (text, constant or an identifier): id, name, same" in out
    assert "cluster 0: 60 rows (50.0 %)" in out and "cluster 2: 20 rows" in out
    found = pyarrow.csv.read_csv("rows.csv")
    np.testing.assert_array_equal(found["cluster"], groups)
    with open("r.html", encoding="utf-8") as file:
        page = file.read()
    assert page.count("<svg") >= 2 and "3 clusters" in page and named in page
    fitted = ln.load("m.safetensors")
    assert type(fitted).__name__ == named
    if model == "gaussian":
        assert found.column_names == ["cluster", "p(0)", "p(1)", "p(2)"]
        np.testing.assert_allclose(sum(np.array(found[f"p({k})"]) for k in range(3)), 1.0)
        assert "BIC: 1:" in out
    else:
        assert "mean silhouette: 2:" in out and "1 empty cells were filled" in out


def test_a_given_number_and_given_columns(learnable, groups):
    for kind in ("tied", "diag", "spherical"):
        arguments = ["-k", "2", "-c", "a", "-c", "b", "--covariance", kind, "--report", "r.html"]
        code, out, _ = learnable("cluster", "groups.csv", *arguments)
        assert code == 0 and "2 clusters" in out and "BIC" not in out
    code, out, _ = learnable("cluster", "groups.csv", "-k", "2", "-c", "b", "--report", "r.html")
    assert code == 0 and "1 columns" in out
    code, out, _ = learnable(
        "cluster", "demo:houses", "-k", "2", "-m", "kmeans", "--drop", "price", "--report", "r.html"
    )
    assert code == 0 and "price" not in out


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--model", "dbscan"], 2, "gaussian or kmeans"),
        (["-k", "0"], 2, "at least 1"),
        (["--most", "1"], 2, "at least 2"),
        (["--covariance", "round"], 2, "full, tied, diag or spherical"),
        (["-c", "price"], 1, "there is no column 'price'"),
        (["-c", "name"], 1, "is not a number but string. Leave it out; k-means takes categories (--model kmeans)"),
        (["-c", "name", "-m", "kmeans"], 1, "between 2 and 20 different values"),
        (["-c", "same"], 1, "no column is a number that varies"),
        (["-k", "500"], 1, "n_components=500"),
    ],
)
def test_what_is_wrong_is_said(learnable, groups, arguments, code, words):
    found, _, err = learnable("cluster", "groups.csv", *arguments)
    assert found == code and words in err


def test_identifiers_are_used_when_they_are_named():
    table = pa.table({"id": np.arange(30), "x": np.arange(30.0) % 7})
    assert read_rows(table, None, []).columns == ["x"]
    assert read_rows(table, ["id", "x"], []).columns == ["id", "x"]
    with pytest.raises(DataError, match="no column"):
        read_rows(table, None, ["x"])


def test_k_means_takes_categories(learnable):
    """A text column counts as one column: its 0/1 columns have variance one together."""
    kind, x = ["red"] * 30 + ["blue"] * 20 + [None], np.r_[np.linspace(0, 1, 30), np.linspace(0, 1, 20), 0.5]
    table = pa.table({"kind": kind, "x": x, "yes": np.arange(51) % 2 == 0, "text": [f"t{i}" for i in range(51)]})
    rows = read_rows(table, None, [], categories=True)
    assert rows.columns == ["kind=blue", "kind=red", "x", "yes=False", "yes=True"] and "text" in rows.notes[0]
    assert np.isnan(rows.X[50, :2]).all() and rows.X[0, 1] == 1.0
    variance = np.nanvar(rows.X / rows.scale, axis=0)
    np.testing.assert_allclose([variance[:2].sum(), variance[2], variance[3:].sum()], 1.0)
    assert read_rows(table, None, []).columns == ["x"]
    pyarrow.csv.write_csv(table, "kinds.csv")
    code, out, _ = learnable("cluster", "kinds.csv", "-m", "kmeans", "-k", "2", "-c", "kind", "-c", "x", "-o", "c.csv")
    assert code == 0 and "kind=red" in out
    found = np.asarray(pyarrow.csv.read_csv("c.csv")["cluster"])[:50]
    np.testing.assert_array_equal(found, np.repeat([0, 1], [30, 20]))


def test_the_search_goes_on_while_the_criterion_falls(learnable):
    """Twelve groups on a ring: more than the eight that are tried in any case."""
    rng = np.random.default_rng(0)
    angle = 2 * np.pi * np.repeat(np.arange(12), 40) / 12
    table = {"x": 20 * np.cos(angle) + rng.normal(size=480), "y": 20 * np.sin(angle) + rng.normal(size=480)}
    pyarrow.csv.write_csv(pyarrow.table(table), "ring.csv")
    code, out, _ = learnable("cluster", "ring.csv", "--covariance", "spherical")
    assert code == 0 and "12 clusters of 480 rows" in out and "still improving" not in out
    code, out, _ = learnable("cluster", "ring.csv", "--covariance", "spherical", "--most", "6")
    assert code == 0 and "6 clusters" in out and "still improving at 6 clusters" in out
