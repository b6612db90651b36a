"""What `verbose` prints in forests and bagging."""

import pytest

from learnable import BaggingRegressor, ExtraTreesClassifier, RandomForestClassifier, RandomForestRegressor, Ridge

X, Y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]


@pytest.mark.parametrize("Forest", [RandomForestClassifier, RandomForestRegressor, ExtraTreesClassifier])
def test_forests_print_a_line_or_one_for_each_tree(Forest, capsys):
    model = Forest(n_estimators=3, random_state=0).fit(X, Y)
    assert capsys.readouterr().out == ""
    model.set_params(verbose=1).fit(X, Y)
    assert capsys.readouterr().out.startswith(f"{Forest.__name__}: 3 trees grown, 3 in all, ")
    model.set_params(verbose=2, warm_start=True, n_estimators=5).fit(X, Y)
    lines = capsys.readouterr().out.splitlines()
    assert sorted(lines[:-1]) == ["building tree 4 of 5", "building tree 5 of 5"]
    assert lines[-1].startswith(f"{Forest.__name__}: 2 trees grown, 5 in all, ")


@pytest.mark.threaded
def test_bagging_prints_joblibs_lines_and_one_for_each_member(capsys):
    model = BaggingRegressor(Ridge(), n_estimators=2, random_state=0).fit(X, Y)
    model.predict(X)
    assert capsys.readouterr() == ("", "")
    model.set_params(verbose=1).fit(X, Y)
    shown = "".join(capsys.readouterr())
    assert "Parallel" in shown and "Building" not in shown
    model.set_params(verbose=2).fit(X, Y)
    text = "".join(capsys.readouterr())
    assert [line for line in text.splitlines() if line.startswith("Building")] == [
        "Building estimator 1 of 2",
        "Building estimator 2 of 2",
    ]
