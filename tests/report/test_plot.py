import re
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.plots.svg import parse, texts
from tests.registered import fitted

import learnable as ln
from learnable.core.errors import DataError, ParameterError
from learnable.core.registry import estimator_names
from learnable.report.pictures import KINDS, _full_covariances, _Plane

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


def titles(figure):
    """Return the titles of all figures inside one."""
    root = parse(figure.svg)
    return [node.text for node in root.iter() if node.tag.endswith("title")]


@pytest.fixture(scope="module")
def diabetes():
    return load_diabetes(return_X_y=True, as_frame=True)


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True, as_frame=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.mark.parametrize("name", estimator_names())
def test_every_registered_estimator_has_a_figure(name):
    model, X, y = fitted(name)
    found = ln.plot(model, X, y)
    assert found.kind in {kind for kind, *_ in KINDS}
    root = parse(found.svg)
    assert texts(root)
    assert not re.search(r"\bnan\b", found.svg)


def test_linear_models_show_coefficients_with_intervals_and_residuals(diabetes):
    X, y = diabetes
    found = ln.plot(ln.LinearRegression().fit(X, y), X, y)
    assert found.kind == "linear model"
    assert {"Coefficients, with 95 % intervals", "Residuals"} <= set(titles(found))
    assert {"bmi", "s5"} <= {text.strip("\u2068\u2069") for text in texts(parse(found.svg))}
    alone = ln.plot(ln.Ridge().fit(X, y))
    assert "Coefficients" in titles(alone) and "Residuals" not in titles(alone)


def test_paths_and_folds_are_drawn_where_they_are_known(diabetes):
    X, y = diabetes
    assert "Coefficients along the path" in titles(ln.plot(ln.LassoLars(alpha=0.1).fit(X, y)))
    assert "Error over the folds, ± one standard error" in titles(ln.plot(ln.LassoCV(alphas=10).fit(X, y)))


def test_classifiers_show_roc_calibration_and_confusion_of_the_rows_given(iris):
    X, y = iris
    model = ln.LogisticRegression().fit(X, y)
    found = ln.plot(model, X, y)
    assert "Calibration" in titles(found) and any(title.startswith("ROC, each class") for title in titles(found))
    counts = pd.crosstab(y, model.predict(X)).to_numpy().ravel()
    shown = [int(text) for text in texts(parse(found.svg)) if text.isdigit()]
    assert set(counts) <= set(shown)


def test_scores_without_probabilities_still_have_a_roc_curve(iris):
    X, y = iris
    found = ln.plot(ln.LinearSVC().fit(X[50:], y[50:]), X[50:], y[50:])
    assert any(title.startswith("ROC of virginica: area 0.9") for title in titles(found))
    assert "Calibration" not in titles(found)


def test_a_support_vector_machine_of_two_columns_shows_its_margin(iris):
    X, y = iris
    plane, label = X.iloc[50:, 2:], y[50:]
    found = ln.plot(ln.SVC(kernel="linear").fit(plane, label), plane, label)
    assert found.kind == "support vector machine" and "Margin and support vectors" in titles(found)
    assert {"versicolor", "virginica"} <= set(texts(parse(found.svg)))


def test_a_tree_is_drawn_and_a_forest_shows_importances(iris):
    X, y = iris
    tree = ln.plot(ln.DecisionTreeClassifier().fit(X, y), X, y)
    assert any("petal length" in text and "≤ 2.45" in text for text in texts(parse(tree.svg)))
    forest = ln.plot(ln.RandomForestClassifier(n_estimators=5, random_state=0).fit(X, y))
    assert titles(forest)[1:] == ["Importance of the columns"]


def test_boosting_and_networks_show_their_loss(diabetes):
    X, y = diabetes
    boosted = ln.HistGradientBoostingRegressor(max_iter=8, early_stopping=True, random_state=0).fit(X, y)
    found = ln.plot(boosted)
    assert {"training rows", "rows held out"} <= set(texts(parse(found.svg)))
    network = ln.MLPRegressor(hidden_layer_sizes=(3,), max_iter=4, random_state=0)
    with pytest.warns(ConvergenceWarning):
        network.fit(X, y)
    assert "Loss" in titles(ln.plot(network))


def test_one_column_is_a_curve_with_its_band():
    rng = np.random.default_rng(0)
    x = np.linspace(0, 6, 25)[:, None]
    y = np.sin(x[:, 0]) + 0.1 * rng.normal(size=25)
    found = ln.plot(ln.GaussianProcessRegressor(alpha=0.01).fit(x, y), x, y)
    assert found.kind == "regression on one column"
    assert found.svg.count("<circle") == 25 and "opacity" in found.svg
    frame = pd.DataFrame({"hours": x[:, 0]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        named = ln.plot(ln.LinearRegression().fit(frame, y), frame, y)
    assert "hours" in texts(parse(named.svg))


def test_clusters_are_drawn_in_their_plane(iris):
    X, _ = iris
    found = ln.plot(ln.GaussianMixture(n_components=3, random_state=0).fit(X), X)
    assert any("first principal component (92 %)" in text for text in texts(parse(found.svg)))
    with pytest.raises(DataError, match=r"needs rows of numbers to show its clusters; call plot\(model, X\)"):
        ln.plot(ln.KMeans(n_clusters=2, random_state=0).fit(X))


def test_two_columns_are_their_own_plane_and_more_are_projected():
    rows = np.random.default_rng(0).normal(size=(50, 3)) * [5.0, 1.0, 0.1]
    plane = _Plane(rows, ["a", "b", "c"])
    centred = rows - rows.mean(axis=0)
    lost = ((centred - plane(rows) @ plane.axes.T) ** 2).sum() / (centred**2).sum()
    assert lost < 0.01
    np.testing.assert_array_equal(_Plane(rows[:, :2], ["a", "b"])(rows[:, :2]), rows[:, :2])
    given = np.cov(rows.T)[None]
    np.testing.assert_allclose(plane.covariances(given)[0], np.cov(plane(rows).T), atol=1e-12)


@pytest.mark.parametrize("kind", ["full", "tied", "diag", "spherical"])
def test_covariances_of_every_kind_are_read(kind, iris):
    X, _ = iris
    model = ln.GaussianMixture(n_components=2, covariance_type=kind, random_state=0).fit(X)
    full = _full_covariances(model, 2, 4)
    assert full.shape == (2, 4, 4)
    rng = np.random.default_rng(0)
    x = X.to_numpy() + 0.0 * rng.normal()
    density = [
        -0.5 * np.linalg.slogdet(2 * np.pi * C)[1] - 0.5 * np.einsum("ij,jk,ik->i", x - mu, np.linalg.inv(C), x - mu)
        for mu, C in zip(model.means_, full, strict=True)
    ]
    np.testing.assert_allclose(
        np.logaddexp(*(np.array(density) + np.log(model.weights_)[:, None])), model.score_samples(X), rtol=1e-6
    )


def test_states_over_time_and_transitions_without_rows():
    rng = np.random.default_rng(0)
    seen = np.concatenate([rng.normal(0, 1, 40), rng.normal(6, 1, 40)])[:, None]
    model = ln.GaussianHMM(n_components=2, random_state=0).fit(seen)
    assert "Most likely states" in titles(ln.plot(model, seen))
    assert "Transitions (per thousand)" in titles(ln.plot(model))


def test_results_that_are_no_estimators():
    from learnable.decisions.bandits import UCB, simulate, stochastic
    from learnable.sampling import Chains

    rng = np.random.default_rng(0)
    chains = Chains.from_arrays({"mu": rng.normal(size=(2, 100))})
    assert "Trace of mu" in titles(ln.plot(chains))
    P = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]])
    solved = ln.decisions.policy_iteration(ln.MDP(P, np.array([[0.0, 1.0], [1.0, 0.0]]), gamma=0.9))
    assert "Values, within proven bounds" in titles(ln.plot(solved))
    policy = UCB(3)
    for reward in (0.0, 1.0, 0.5, 1.0):
        policy.update(policy.act(), reward)
    assert "How often each arm was played" in titles(ln.plot(policy))
    draws_itself = simulate(UCB(2), stochastic([0.2, 0.8]), 50, 4)
    assert "Pseudo-regret" in titles(ln.plot(draws_itself))
    with pytest.raises(DataError, match="no figures of object"):
        ln.plot(object())


def test_learning_curves_of_reinforcement_learning():
    from learnable.decisions.rl.deep.results import Training
    from learnable.decisions.rl.results import Learned

    earned = np.linspace(0.0, 1.0, 500) + np.zeros((3, 1))
    nothing = np.zeros((3, 2, 2))
    learned = Learned("Q", nothing, nothing[:, :, 0].astype(int), earned, earned.astype(int), None, 1.0, 1.0, 1.0, 0.95)
    assert titles(ln.plot(learned))[1] == "Return by episode, mean and quartiles over seeds"
    episodes = np.column_stack([np.arange(9.0), np.arange(9.0), np.ones(9)])
    run = Training("DQN", 9, 1.0, 9.0, "steps", episodes, np.empty((0, 4)), 8.0, 9)
    assert titles(ln.plot(run))[1] == "DQN: return while it learns"
    with pytest.raises(DataError, match="too few episodes"):
        ln.plot(Training("DQN", 9, 1.0, 9.0, "steps", episodes[:1], np.empty((0, 4)), 8.0, 9))


def test_a_pipeline_shows_its_last_step(iris):
    X, y = iris
    found = ln.plot(make_pipeline(StandardScaler(), ln.LogisticRegression()).fit(X, y), X, y)
    assert found.kind == "linear model" and "Confusion matrix" in titles(found)


def test_the_model_behind_an_encoder_is_shown_with_the_names_it_sees():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"size": rng.normal(size=80), "town": rng.choice(["Rome", "Oslo"], 80)})
    price = table["size"] + (table["town"] == "Rome")
    model = ln.TableModel(ln.Ridge()).fit(table, price)
    found = ln.plot(model, table, price)
    assert {"town=Rome", "size"} <= {text.strip("\u2068\u2069") for text in texts(parse(found.svg))}
    summary = str(ln.summary(model, table, price))
    assert summary.startswith("TableModel: Ridge on an encoded table, fitted to 80 rows and 2 columns")
    assert "town=Rome" in summary and "Score" in summary


def test_frames_take_names_of_columns_and_long_tables_are_thinned(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=25_000), "b": rng.normal(size=25_000)})
    table["y"] = table["a"] - table["b"]
    model = ln.Ridge().fit(table, "y")
    found = ln.plot(model, table, "y")
    assert found.svg.count("h0") <= 6000 + 10
    table[:50].to_csv(tmp_path / "rows.csv", index=False)
    assert "Residuals" in titles(ln.plot(model, tmp_path / "rows.csv", "y"))


def test_saving(tmp_path, diabetes):
    X, y = diabetes
    found = ln.plot(ln.Ridge().fit(X, y), X, y)
    assert found.save(tmp_path / "ridge.svg").read_text().startswith("<svg xmlns=")
    with pytest.raises(ParameterError, match=r"must end in \.svg or \.png; got 'ridge\.pdf'"):
        found.save(tmp_path / "ridge.pdf")
    assert "<svg" in found._repr_html_() and found._repr_svg_().startswith("<svg")
    assert repr(found) == "Plot(kind='linear model')"
    pytest.importorskip("matplotlib", reason="PNG files are drawn by matplotlib, which is not installed")
    assert found.save(tmp_path / "ridge.png").read_bytes().startswith(b"\x89PNG")


def test_on_matplotlib_axes(diabetes):
    pytest.importorskip("matplotlib", reason="axes belong to matplotlib, which is not installed")
    from matplotlib.figure import Figure

    X, y = diabetes
    ax = Figure().add_subplot()
    assert ln.plot(ln.Ridge().fit(X, y), X, y, ax=ax) is ax
    assert "bmi" in {text.get_text() for text in ax.texts}


def test_what_cannot_be_drawn_is_refused_with_the_reason(diabetes):
    X, y = diabetes
    with pytest.raises(NotFittedError):
        ln.plot(ln.Ridge())
    with pytest.raises(DataError, match=r"nothing to draw of KNeighborsRegressor alone; pass rows"):
        ln.plot(ln.KNeighborsRegressor().fit(X, y))
    with pytest.raises(DataError, match="X has 442 rows, y has 3"):
        ln.plot(ln.Ridge().fit(X, y), X, y[:3])


def test_names_from_the_table_are_never_markup():
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(30, 2)), columns=["<script>alert(1)</script>", 'a"b'])
    y = np.where(rng.normal(size=30) > 0, "<b>", "&c")
    for model in (ln.LogisticRegression(), ln.DecisionTreeClassifier(), ln.RandomForestClassifier(n_estimators=3)):
        figure = ln.plot(model.fit(X, y), X, y)
        assert "<script" not in figure._repr_html_() and "<b>" not in figure._repr_html_()
        parse(figure.svg)
