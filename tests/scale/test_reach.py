"""The table of models in `docs/scale.md` says what the fits do: where from, how many passes, how many bytes."""

from collections import Counter

import pytest
from sklearn.utils import get_tags
from tests.registered import build
from tests.scale.reach import (
    BEGIN,
    GROUPS,
    OVERHEAD,
    PAGE,
    UNPROBED,
    fit_from_files,
    group_of,
    names_of,
    page_with,
    probe,
    table,
)

from learnable.core.registry import estimator_names

SUMS = [group for group in GROUPS if group.dask == "sums" and group not in UNPROBED]
OTHERS = [group for group in GROUPS if group.dask != "sums" and group not in UNPROBED]
SLOW = {"MixtureOfExperts", "LatentDirichletAllocation"}
QUICK = [names_of(group)[0] for group in SUMS if not SLOW & set(names_of(group))]
REST = [name for group in SUMS for name in names_of(group) if name not in QUICK]
#: Passes of a fit that may send more than every pass does: the sample of rows, the labels, the classes.
FEW = 3


def classes_of(name, found):
    """Return K: classes, components or clusters."""
    if get_tags(build(name)).estimator_type == "classifier":
        K = len(found.model.classes_)
        return 1 if K == 2 and "Logistic" in name else K
    return max(getattr(found.model, "n_clusters", 1), getattr(found.model, "n_components", 1) or 1, 2)


def check_bytes(name, n, d):
    group = group_of(name)
    found = probe(name, n, d)
    assert found.error is None
    d = found.model.n_features_in_
    K = classes_of(name, found)
    each = group.each_bytes(n / 3, d, K)
    once = group.once_bytes(n / 3, d, K)
    sizes = [travel.most for travel in found.travels]
    assert max(sizes) <= 1.3 * (each + once) + OVERHEAD
    assert sum(size > 1.3 * each + OVERHEAD for size in sizes) <= FEW
    return found, sizes, each + once


def check_passes(name, found):
    declared = group_of(name).passes
    swept = int(found.passes)  # the first rows, for a provisional mean, are a load of one partition; labels load no X
    if declared.isdigit():
        assert swept == int(declared)
    elif declared == "1 or 2":
        assert swept in (1, 2)
    else:
        assert swept >= 3


def test_every_registered_model_is_declared_once():
    declared = Counter(name for group in GROUPS for name in names_of(group))
    assert set(declared) == set(estimator_names())
    assert max(declared.values()) == 1


def test_the_page_has_the_table():
    page = PAGE.read_text(encoding="utf-8")
    assert BEGIN in page
    assert page == page_with(table(), BEGIN, BEGIN.replace("begin", "end"), page), "run python -m tests.scale.reach"


@pytest.mark.parametrize("name", QUICK)
def test_what_travels_is_what_the_table_says(name, tmp_path):
    found, sizes, declared = check_bytes(name, 240, 16)
    check_passes(name, found)
    assert max(sizes) >= 0.3 * declared  # the table does not promise far too much
    _, error = fit_from_files(name, tmp_path)
    assert (error is None) == bool(group_of(name).files), error


@pytest.mark.long
@pytest.mark.parametrize("name", REST)
def test_what_travels_is_what_the_table_says_of_all_models(name, tmp_path):
    found, _, _ = check_bytes(name, 240, 16)
    check_passes(name, found)
    _, error = fit_from_files(name, tmp_path)
    assert (error is None) == bool(group_of(name).files), error


@pytest.mark.parametrize("name", ["LinearRegression", "GaussianNB", "PCA", "QuadraticDiscriminantAnalysis"])
def test_sums_do_not_grow_with_the_rows(name):
    small = [travel.most for travel in probe(name, 240).travels]
    large = [travel.most for travel in probe(name, 960).travels]
    assert max(large) <= max(small) + 64


@pytest.mark.parametrize("name", ["KNeighborsRegressor", "GaussianHMM", "GLM", "SVC"])
def test_the_others_read_the_rows_or_refuse(name, tmp_path):
    check_the_others(name, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("name", [name for group in OTHERS for name in names_of(group)])
def test_all_others_read_the_rows_or_refuse(name, tmp_path):
    check_the_others(name, tmp_path)


def check_the_others(name, tmp_path):
    group = group_of(name)
    found = probe(name)
    _, refused = fit_from_files(name, tmp_path)
    assert (found.error is None) == bool(group.dask), found.error
    assert (refused is None) == bool(group.files), refused
    if group.dask == "rows":
        assert found.passes >= 1
        assert not found.travels or max(travel.most for travel in found.travels) > 8 * 80 * 4
