"""`learnable embed`: coordinates, what is said of them, the page, the model, wrong usage."""

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from sklearn.datasets import load_iris

import learnable as ln


@pytest.fixture
def flowers(folder):
    iris = load_iris()
    columns = {f"x{j}": iris.data[:, j] for j in range(4)}
    columns["x0"] = pa.array(iris.data[:, 0], mask=np.arange(150) == 3)
    columns["species"] = iris.target_names[iris.target].tolist()
    pyarrow.csv.write_csv(pa.table(columns), "iris.csv")
    return iris.data


@pytest.mark.parametrize(
    ("method", "named"),
    [
        ("pca", "PCA"),
        ("mds", "ClassicalMDS"),
        ("isomap", "Isomap"),
        ("spectral", "SpectralEmbedding"),
        ("tsne", "TSNE"),
    ],
)
def test_rows_become_points_with_their_quality(learnable, flowers, method, named):
    files = ["-o", "places.csv", "--report", "map.html", "--save", "m.safetensors"]
    code, out, _ = learnable("embed", "iris.csv", "-m", method, "-k", "60", "--colour", "species", *files)
    assert code == 0 and f"{named}: 150 rows, 4 columns" in out
    assert (
        "trustworthiness 0.9" in out
        and ("stationarity: " if method == "tsne" else "closed-form: ") in out
        and "what it shows" in out
    )
    assert "1 empty cells were filled" in out
    places = pyarrow.csv.read_csv("places.csv")
    assert places.column_names == ["first", "second"] and len(places) == 150
    with open("map.html", encoding="utf-8") as file:
        page = file.read()
    assert page.count("<svg") == 1 and "virginica" in page and page.count("<path") >= 3
    assert type(ln.load("m.safetensors")).__name__ == named


def test_coordinates_are_the_principal_components_of_standardised_columns(learnable, flowers):
    code, out, _ = learnable("embed", "iris.csv", "-c", "x1", "-c", "x2", "-c", "x3", "-o", "places.csv")
    assert code == 0 and "share of the variance: 9" in out
    Z = flowers[:, 1:]
    expected = ln.PCA(2).fit_transform((Z - Z.mean(axis=0)) / Z.std(axis=0))
    found = pyarrow.csv.read_csv("places.csv")
    np.testing.assert_allclose(np.column_stack([found["first"], found["second"]]), expected, atol=1e-9)


def test_a_column_of_numbers_colours_by_ranges_and_one_column_is_a_line(learnable, flowers):
    code, _, _ = learnable("embed", "iris.csv", "-c", "x1", "--colour", "x2", "--report", "map.html")
    assert code == 0
    with open("map.html", encoding="utf-8") as file:
        assert " to " in file.read()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-m", "umap"], "--model must be pca, mds, isomap, spectral or tsne"),
        (["-k", "1"], "--neighbours must be at least 2"),
        (["--colour", "size"], "there is no column 'size'"),
    ],
)
def test_wrong_usage_is_said(learnable, flowers, arguments, said):
    code, _, err = learnable("embed", "iris.csv", *arguments)
    assert code == 2 and said in err
