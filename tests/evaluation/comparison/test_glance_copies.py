"""Tables with a known number of copies; a split never has twins on both sides."""

import numpy as np
import pyarrow as pa
import pytest

from learnable.evaluation.comparison.glance import find_copies, merge_groups
from learnable.evaluation.comparison.problem import read_problem
from learnable.evaluation.comparison.splitting import cut, cut_again, cut_as_given


def frame(X, **more):
    return pa.table({f"x{j}": X[:, j] for j in range(X.shape[1])} | more)


def test_exact_and_near_copies_are_counted_and_grouped():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) * [1, 10, 1e-3, 1e4, 1, 1]
    spread = X.std(axis=0)
    X = np.vstack([X, X[:60], X[100:140] + 1e-5 * spread * rng.normal(size=(40, 6))])
    found = find_copies(frame(X))
    assert (found.exact, found.near, found.rows) == (60, 40, 100)
    assert np.array_equal(found.groups[500:560], found.groups[:60])
    assert np.array_equal(found.groups[560:], found.groups[100:140])
    assert len(np.unique(found.groups)) == 500


def test_text_is_compared_without_capitals_and_spaces_and_gaps_are_alike():
    rng = np.random.default_rng(1)
    x, z = rng.normal(size=(2, 80))
    names = [f"street {k}" for k in range(80)]
    x[41], z[41], names[41] = x[40], z[40], " Street  40 "
    x[50] = x[51] = np.nan
    z[51], names[51] = z[50], names[50]
    found = find_copies(pa.table({"x": x, "z": z, "name": names}))
    assert found.exact == 2 and found.groups[40] == found.groups[41] and found.groups[50] == found.groups[51]


@pytest.mark.parametrize("case", ["independent", "coarse", "one number", "smooth curve"])
def test_rows_that_agree_by_chance_are_no_copies(case):
    rng = np.random.default_rng(2)
    x = rng.random(3000)
    table = {
        "independent": frame(rng.normal(size=(3000, 5))),
        "coarse": frame(rng.integers(0, 3, size=(3000, 4)).astype(float)),
        "one number": pa.table({"x": np.round(x, 2)}),
        "smooth curve": pa.table({"a": x, "b": x**2, "c": np.sin(x)}),
    }[case]
    assert find_copies(table).exact == 0
    assert find_copies(table).near <= 0.02 * 3000


def test_groups_that_share_a_row_are_merged():
    merged = merge_groups(np.array([0, 0, 1, 2, 3]), np.array([0, 1, 1, 2, 3]))
    assert merged.tolist() == [0, 0, 0, 1, 2]


def doubled(n=300, classes=False):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    y = X[:, 0] + rng.normal(size=n)
    X, y = np.vstack([X, X[: n // 2]]), np.concatenate([y, y[: n // 2]])
    return frame(X, y=np.where(y > 1, "yes", "no") if classes else y)


@pytest.mark.parametrize("classes", [False, True])
def test_no_split_has_twins_on_both_sides(classes):
    problem = read_problem("compare", doubled(classes=classes), "y")
    assert problem.grouping == "copies" and problem.data["copies"]["rows"] == 150
    _, final, splits = cut(problem, 5, 0)
    everything = [final, *splits, *cut_again(problem, final, 5, 0, 1)]
    for train, test in everything:
        assert not set(problem.groups[train]) & set(problem.groups[test])
    assert sorted(np.concatenate(final)) == list(range(450))
    assert sorted(np.concatenate([test for _, test in splits])) == sorted(final[0])
    if classes:
        shares = [problem.y[test].mean() for _, test in splits]
        assert max(shares) - min(shares) < 0.08
    train, test = cut_as_given(problem, 0)
    assert set(problem.groups[train]) & set(problem.groups[test])


def test_copies_may_be_left_apart_and_the_warning_says_which():
    together, apart = (read_problem("compare", doubled(), "y", copies=c) for c in ("together", "apart"))
    assert together.groups is not None and apart.groups is None
    told = [w["text"] for w in together.data["warnings"] if w["kind"] == "duplicates"]
    assert "150 rows are copies of others" in told[0] and "one side of every split" in told[0]
    assert "as asked" in next(w["text"] for w in apart.data["warnings"] if w["kind"] == "duplicates")
    alone = read_problem("compare", frame(np.random.default_rng(4).normal(size=(60, 4))), "x3")
    assert alone.groups is None and not [w for w in alone.data["warnings"] if w["kind"] == "duplicates"]


def test_copies_join_the_groups_that_are_given():
    table = doubled()
    table = table.append_column("site", pa.array([f"s{k % 40}" for k in range(450)]))
    problem = read_problem("compare", table, "y", groups="site")
    assert problem.grouping == "groups"
    assert np.array_equal(problem.groups[300:450], problem.groups[:150])
