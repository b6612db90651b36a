"""Fit every model to a small table, draw what it found, and note what it takes and what its certificate says.

    python -m tools.model_pages.pictures FILE      # writes everything as JSON

`pages.py` puts it into the page of each model. Data are drawn with fixed seeds, so that the pictures stay the same.
"""

from __future__ import annotations

import contextlib
import inspect
import json
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_blobs, make_moons, make_s_curve

import learnable as ln
from learnable.core.errors import LearnableError
from learnable.core.registry import REGISTRY, estimator_names, resolve
from learnable.data import Files
from learnable.plots import cluster_scatter, function_bands, labelled_lines
from learnable.plots.axes import ACCENT, MUTED, Frame, extent
from learnable.plots.markup import tag
from learnable.plots.optimization import COLOURS, contour_lines

#: Linear models that choose columns: their coefficients are the picture.
SPARSE = {
    *("Lasso", "LassoCV", "ElasticNet", "ElasticNetCV", "Lars", "LarsCV", "LassoLars", "LassoLarsCV", "LassoLarsIC"),
    *("OrthogonalMatchingPursuit", "OrthogonalMatchingPursuitCV", "BestSubset", "ForwardStepwise", "BackwardStepwise"),
    *("ForwardStagewise", "NonconvexRegression", "StepwiseGLM", "RidgeCV", "RFE", "RFECV", "SequentialFeatureSelector"),
    *("MultiTaskLasso", "MultiTaskLassoCV", "MultiTaskElasticNet", "MultiTaskElasticNetCV"),
}
#: What a model is built with where its defaults make no picture, or none that is quick.
SETTINGS: dict[str, dict[str, Any]] = {
    "Lasso": {"alpha": 0.1},
    "ElasticNet": {"alpha": 0.1},
    "MultiTaskLasso": {"alpha": 0.2},
    "MultiTaskElasticNet": {"alpha": 0.2},
    "LassoLars": {"alpha": 0.1},
    "Lars": {"n_nonzero_coefs": 4},
    "OrthogonalMatchingPursuit": {"n_nonzero_coefs": 3},
    "BestSubset": {"size": 3},
    "KernelRidge": {"kernel": "rbf", "alpha": 0.1, "gamma": 0.5},
    "KernelRidgeClassifier": {"kernel": "rbf", "alpha": 0.1, "gamma": 2.0},
    "KernelRidgeCV": {"kernel": "rbf", "gamma": 0.5},
    "KernelLogisticRegression": {"kernel": "rbf", "gamma": 2.0},
    "GaussianProcessRegressor": {"alpha": 0.05},
    "SVC": {"C": 10.0},
    "SVR": {"C": 10.0},
    "NuSVR": {"C": 10.0},
    "KMeans": {"n_clusters": 3},
    "MiniBatchKMeans": {"n_clusters": 3},
    "KMedoids": {"n_clusters": 3},
    "GaussianMixture": {"n_components": 3},
    "VariationalGaussianMixture": {"n_components": 5},
    "MixtureModel": {"n_components": 3},
    "MixtureOfExperts": {"n_experts": 2},
    "SpectralClustering": {"n_clusters": 2, "affinity": "nearest_neighbors"},
    "GaussianHMM": {"n_components": 2, "n_iter": 100},
    "GMMHMM": {"n_components": 2, "n_mix": 2, "n_iter": 100},
    "PoissonHMM": {"n_components": 2, "n_iter": 100},
    "CategoricalHMM": {"n_components": 2, "n_iter": 200},
    "KernelPCA": {"n_components": 2, "kernel": "rbf", "gamma": 0.3},
    "NMF": {"n_components": 2, "max_iter": 1000},
    "FactorAnalysis": {"n_components": 2},
    "ProbabilisticPCA": {"n_components": 2},
    "PCA": {"n_components": 2},
    "MDS": {"n_init": 1},
    "TSNE": {"perplexity": 10, "max_iter": 500},
    "DecisionTreeClassifier": {"max_depth": 4},
    "DecisionTreeRegressor": {"max_depth": 4},
    "RandomForestClassifier": {"n_estimators": 50},
    "RandomForestRegressor": {"n_estimators": 50, "min_samples_leaf": 5},
    "ExtraTreesClassifier": {"n_estimators": 50},
    "ExtraTreesRegressor": {"n_estimators": 50, "min_samples_leaf": 5},
    "MLPClassifier": {"hidden_layer_sizes": (16,), "max_iter": 300},
    "MLPRegressor": {"hidden_layer_sizes": (32,), "max_iter": 300, "learning_rate_init": 0.01},
    "ResNetClassifier": {"max_iter": 60},
    "ResNetRegressor": {"max_iter": 60},
    "OneClassSVM": {"nu": 0.1, "gamma": 1.0},
    "HistGradientBoostingRegressor": {"max_iter": 50, "min_samples_leaf": 5},
    "HistGradientBoostingClassifier": {"max_iter": 50, "min_samples_leaf": 5},
    "BasisExpansion": {"functions": ("identity", "square", "sin", "tanh")},
    "PolynomialFeatures": {"degree": 4, "include_bias": False},
    "Nystroem": {"n_components": 5, "gamma": 0.5, "random_state": 0},
    "RBFSampler": {"n_components": 5, "gamma": 0.5, "random_state": 0},
    "NearestNeighbors": {"n_neighbors": 5},
    "LSTMClassifier": {"units": 8, "max_iter": 40, "learning_rate_init": 0.02},
    "LSTMRegressor": {"units": 12, "max_iter": 60, "learning_rate_init": 0.02},
    "RNNClassifier": {"units": 8, "max_iter": 60, "learning_rate_init": 0.01},
    "RNNRegressor": {"units": 12, "max_iter": 60, "learning_rate_init": 0.01},
    "RFE": {"n_features_to_select": 3},
    "SequentialFeatureSelector": {"n_features_to_select": 3},
}
#: Models of things that are no points of a plane: the gallery has their picture.
ELSEWHERE = {
    "LatentDirichletAllocation": "bars",
    "PopulationStructure": "nancycats",
}
#: Models of sequences: each row is a series.
OF_SERIES = ("LSTMClassifier", "LSTMRegressor", "RNNClassifier", "RNNRegressor")
#: Quinlan's fourteen days: outlook, temperature, humidity, wind, and whether one plays.
DAYS = """
sunny hot high weak no, sunny hot high strong no, overcast hot high weak yes, rain mild high weak yes,
rain cool normal weak yes, rain cool normal strong no, overcast cool normal strong yes, sunny mild high weak no,
sunny cool normal weak yes, rain mild normal weak yes, sunny mild normal strong yes, overcast mild high strong yes,
overcast hot normal weak yes, rain mild high strong no
"""
#: Kinds of pictures whose models are not fitted to a file of rows.
NO_FILES = ("features", "states", "questions", "encoding", "memory", "series")
TRUTH = np.array([3.0, 0.0, 0.0, -2.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0])
COUNTS = {"PoissonRegressor", "GammaRegressor", "TweedieRegressor", "GLM"}
CURVED = {"trees", "ensembles", "kernel", "neighbors", "neural", "meta", "evaluation", "mixtures"}


def build(name: str) -> Any:
    """Return a model with the settings of its picture, and with another inside where it needs one."""
    cls = resolve(REGISTRY[name].path)
    settings = dict(SETTINGS.get(name, {}))
    takes = inspect.signature(cls).parameters
    if "random_state" in takes:
        settings.setdefault("random_state", 0)
    inside = ln.Ridge() if name != "BlendClassifier" else ln.LogisticRegression()
    if name in ("OneVsRestClassifier", "OneVsOneClassifier"):
        inside = ln.SVC(gamma=2.0)
    if name.startswith("Blend"):
        second = ln.DecisionTreeClassifier(max_depth=4) if name == "BlendClassifier" else ln.KNeighborsRegressor()
        settings["estimators"] = [inside, second]
    elif name in ("TableModel", "ScaledTargetRegressor"):
        settings["model"] = ln.HistGradientBoostingRegressor(max_iter=50, min_samples_leaf=5)
    elif takes.get("estimator") is not None and takes["estimator"].default is inspect.Parameter.empty:
        settings["estimator"] = inside
    elif name == "ConformalRegressor":
        settings["estimator"] = ln.KNeighborsRegressor(15)
    return cls(**settings)


def kind_of(name: str, model: Any) -> str:
    """Return what kind of picture shows a model."""
    role = model.__sklearn_tags__().estimator_type
    if name in SPARSE:
        return "coefficients"
    if name.endswith("HMM"):
        return "states"
    if name in ("PolynomialFeatures", "BasisExpansion", "Nystroem", "RBFSampler"):
        return "features"
    if name == "NearestNeighbors":
        return "neighbours"
    if name in ("ID3Classifier", "TableEncoder"):
        return "questions" if name == "ID3Classifier" else "encoding"
    if name in OF_SERIES:
        return "memory" if name.endswith("Classifier") else "series"
    if name == "SpectralClustering":
        return "moons"
    if role == "regressor":
        return "line"
    if role == "classifier":
        return "boundary"
    if name == "OneClassSVM":
        return "outliers"
    if role == "clusterer" or hasattr(model, "predict_proba") or name in ("KMeans", "KMedoids", "MiniBatchKMeans"):
        return "clusters"
    return "embedding"


def draw(name: str) -> tuple[str, str, Any]:
    """Return the figure of a model, what it shows, and the fitted model."""
    model = build(name)
    return DRAWN[kind_of(name, model)](name, model)


def draw_coefficients(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the coefficients that a model of columns finds, beside the true ones."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, len(TRUTH)))
    truth = TRUTH
    y = X @ truth + rng.standard_normal(60)
    if name == "StepwiseGLM":  # of counts
        truth = 0.3 * TRUTH
        y = rng.poisson(np.exp(X @ truth)).astype(float)
    if name.startswith("MultiTask"):
        model.fit(X, np.c_[y, X @ (0.5 * TRUTH) + rng.standard_normal(60)])
    else:
        model.fit(X, y)
    if hasattr(model, "support_") and hasattr(model, "estimator"):  # selectors: the coefficients of the columns kept
        found = np.zeros(len(TRUTH))
        found[model.support_] = ln.Ridge().fit(X[:, model.support_], y).coef_
    else:
        found = np.atleast_2d(model.coef_)[0]
    at = np.arange(len(TRUTH))
    frame = Frame.around((-0.7, len(TRUTH) - 0.3), extent(found, truth, [0.0], pad=0.1), width=430.0, height=250.0)
    marks = [frame.line([-0.7, len(TRUTH) - 0.3], [0.0, 0.0], stroke="currentColor", stroke_width=1, opacity=0.6)]
    for j in at:
        x = float(frame.x(j))
        zero, height, true = (float(frame.y(value)) for value in (0.0, found[j], truth[j]))
        marks.append(tag("line", x1=x, x2=x, y1=zero, y2=height, stroke=ACCENT, stroke_width=2))
        marks.append(tag("circle", cx=x, cy=true, r=6.0, fill="none", stroke="currentColor", stroke_width=1.2))
        if found[j]:
            marks.append(tag("circle", cx=x, cy=height, r=3.2, fill=ACCENT))
    figure = frame.draw(f"Coefficients of {name}", *marks, x_label="column", y_label="coefficient")
    kept = int(np.count_nonzero(found))
    words = "Rings are the true coefficients, dots those found from 60 noisy rows."
    return figure, f"{words} {kept} of {len(TRUTH)} columns have a coefficient.", model


def draw_line(name: str, model: Any) -> tuple[str, str, Any]:
    """Show a regression of one column, with its interval where the model has one."""
    rng = np.random.default_rng(1)
    x = np.sort(rng.uniform(0.0, 6.0, 120))
    package = REGISTRY[name].path.split(".")[1]
    if name in COUNTS:
        mean = np.exp(0.3 + 0.35 * x)
        y = rng.gamma(4.0, mean / 4.0) if name == "GammaRegressor" else rng.poisson(mean).astype(float)
        if name == "GLM":
            model.set_params(family="poisson")
    elif package in CURVED:
        y = np.sin(1.3 * x) + 0.3 * x + 0.3 * rng.standard_normal(len(x))
    else:
        y = 1.0 + 0.6 * x + 0.7 * rng.standard_normal(len(x))
    model.fit(x[:, None], y)
    grid = np.linspace(0.0, 6.0, 161)
    bands = {}
    with contextlib.suppress(LearnableError, AttributeError, ValueError):
        low, high = model.predict_interval(grid[:, None], level=0.9)
        bands["90 % of new rows"] = (low, high)
    prediction = np.ravel(model.predict(grid[:, None]))
    figure = function_bands(grid, prediction, bands, points=(x, y), title=f"Predictions of {name}")
    band = " The band is its interval for nine of ten new rows." if bands else ""
    return figure, f"The line is the prediction from 120 rows of one column, which are the dots.{band}", model


def draw_boundary(name: str, model: Any) -> tuple[str, str, Any]:
    """Show where a classifier of two columns changes its mind."""
    X, y = make_moons(200, noise=0.25, random_state=0)
    whole = name in ("MultinomialNB", "CategoricalNB")
    if whole:  # counts and categories
        X = np.clip(np.rint(2.0 * X + 4.0), 0, 9)
    low, high = X.min(axis=0) - 0.5, X.max(axis=0) + 0.5
    xs, ys = (np.linspace(a, b, 121) for a, b in zip(low, high, strict=True))
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    model.fit(X, np.where(y == 1, "b", "a"))
    asked = np.clip(np.rint(grid), 0, X.max(axis=0)) if whole else grid
    score = _score(model, asked).reshape(len(ys), len(xs))
    frame = Frame.around((xs[0], xs[-1]), (ys[0], ys[-1]), width=420.0, height=320.0)
    marks = _dots(frame, X, [COLOURS[int(label)] for label in y])
    path = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, score, 0.0))
    marks.append(tag("path", d=path, fill="none", stroke="currentColor", stroke_width=1.8))
    figure = frame.draw(f"Boundary of {name}", *marks, x_label="x₀", y_label="x₁")
    share = float((model.predict(X) == np.where(y == 1, "b", "a")).mean())
    return figure, f"The line is where its choice changes; {share:.0%} of these 200 rows are on the right side.", model


def draw_clusters(name: str, model: Any, moons: bool = False) -> tuple[str, str, Any]:
    """Show the clusters that a model finds."""
    if moons:
        X = make_moons(240, noise=0.06, random_state=0)[0]
    else:
        X = make_blobs(240, centers=[[0, 0], [4, 1], [1.5, 4]], cluster_std=[0.6, 1.0, 0.8], random_state=0)[0]
    labels = np.asarray(model.fit(X).predict(X) if hasattr(model, "predict") else model.labels_)
    centres = getattr(model, "cluster_centers_", getattr(model, "means_", None))
    covariances = getattr(model, "covariances_", None)
    if covariances is not None and np.shape(covariances) != (len(centres), 2, 2):
        covariances = None
    used = np.unique(labels, return_inverse=True)[1]
    figure = cluster_scatter(
        X[:, 0], X[:, 1], used, centres=centres, covariances=covariances, title=f"Clusters of {name}"
    )
    return figure, "The colours are the clusters found; the model was given the points alone.", model


def draw_moons(name: str, model: Any) -> tuple[str, str, Any]:
    """Show clusters that no straight line separates."""
    return draw_clusters(name, model, moons=True)


def draw_outliers(name: str, model: Any) -> tuple[str, str, Any]:
    """Show which rows a model calls unusual."""
    X = make_blobs(200, centers=[[0, 0], [4, 2]], cluster_std=0.7, random_state=0)[0]
    xs, ys = (np.linspace(a - 1, b + 1, 121) for a, b in zip(X.min(axis=0), X.max(axis=0), strict=True))
    model.fit(X)
    grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
    score = np.ravel(model.decision_function(grid)).reshape(len(ys), len(xs))
    outside = model.predict(X) < 0
    frame = Frame.around((xs[0], xs[-1]), (ys[0], ys[-1]), width=420.0, height=320.0)
    marks = _dots(frame, X, [COLOURS[1] if out else COLOURS[0] for out in outside])
    path = "".join(frame.path(line[:, 0], line[:, 1]) for line in contour_lines(xs, ys, score, 0.0))
    marks.append(tag("path", d=path, fill="none", stroke="currentColor", stroke_width=1.8))
    figure = frame.draw(f"What {name} calls usual", *marks, x_label="x₀", y_label="x₁")
    return figure, f"Inside the line is what it calls usual; {outside.mean():.0%} of the rows are outside.", model


def draw_embedding(name: str, model: Any) -> tuple[str, str, Any]:
    """Show points of a curved band in space, laid out in a plane."""
    X, along = make_s_curve(300, noise=0.02, random_state=0)
    if name == "NMF":
        X = X - X.min(axis=0)
    placed = model.fit_transform(X)
    quarter = np.searchsorted(np.quantile(along, [0.25, 0.5, 0.75]), along)
    names = ["first", "second", "third", "last"]
    figure = cluster_scatter(
        placed[:, 0],
        placed[:, 1],
        quarter,
        names=names,
        title=f"{name} of a bent band",
        x_label="first",
        y_label="second",
    )
    return (
        figure,
        "300 points of an S-shaped band in space, in the plane that the model finds; colours are quarters.",
        model,
    )


def draw_states(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the hidden states of a series."""
    rng = np.random.default_rng(2)
    state = np.repeat([0, 1, 0, 1], [60, 40, 50, 50])
    if name == "PoissonHMM":
        x = rng.poisson(np.array([2.0, 9.0])[state])
    elif name == "CategoricalHMM":
        x = np.where(rng.random(len(state)) < 0.85, state * 2, 1)
    else:
        x = rng.normal(np.array([0.0, 3.0])[state], 0.8)
    found = model.fit(x[:, None]).predict(x[:, None])
    right = max((found == state).mean(), (found != state).mean())
    figure = cluster_scatter(
        np.arange(len(x)),
        x,
        found,
        names=["state 0", "state 1"],
        title=f"States of {name}",
        x_label="time",
        y_label="x",
    )
    return (
        figure,
        f"The colour is the most likely hidden state; {right:.0%} of the 200 steps are as they were drawn.",
        model,
    )


def draw_features(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the features that a model makes of one column."""
    x = np.linspace(-2.0, 2.0, 121)
    made = model.fit(x[:, None]).transform(x[:, None])
    made = np.asarray(made)[:, :6]
    names = [str(word) for word in model.get_feature_names_out()[:6]]
    figure = labelled_lines(
        {name: (x, line) for name, line in zip(names, made.T, strict=True)},
        title=f"Features of {name}",
        x_label="x",
        y_label="value",
    )
    return figure, "Each line is one feature as a function of the column it is made of.", model


def draw_neighbours(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the nearest rows of one point."""
    X = np.random.default_rng(0).standard_normal((150, 2))
    query = np.array([[0.4, 0.3]])
    near = model.fit(X).kneighbors(query, return_distance=False)[0]
    frame = Frame.around(extent(X[:, 0]), extent(X[:, 1]), width=420.0, height=320.0)
    marks = _dots(frame, X, [ACCENT if row in near else MUTED for row in range(len(X))])
    at = [float(frame.x(query[0, 0])), float(frame.y(query[0, 1]))]
    marks += [
        tag("line", x1=at[0], y1=at[1], x2=float(frame.x(a)), y2=float(frame.y(b)), stroke=ACCENT) for a, b in X[near]
    ]
    marks.append(tag("circle", cx=at[0], cy=at[1], r=4.0, fill="currentColor"))
    return (
        frame.draw("Five nearest rows", *marks, x_label="x₀", y_label="x₁"),
        "A point and its five nearest rows.",
        model,
    )


def draw_questions(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the tree of questions about categories."""
    from learnable.trees import plot_tree

    rows = np.array([day.split() for day in DAYS.replace("\n", " ").split(",")])
    model.fit(rows[:, :-1], rows[:, -1])
    columns = ["outlook", "temperature", "humidity", "wind"]
    figure = plot_tree(model, feature_names=columns, title="Whether one plays")
    words = "The tree of Quinlan's fourteen days: it asks for the outlook first, and never for the temperature."
    return str(figure), words, model


def draw_encoding(name: str, model: Any) -> tuple[str, str, Any]:
    """Show a small table as the numbers that models get."""
    import pandas as pd

    table = pd.DataFrame(
        {
            "age": [20, 35, None, 50, 41, 28],
            "colour": ["red", "blue", "blue", None, "green", "red"],
            "member": [True, False, True, True, False, False],
            "since": pd.to_datetime(
                ["2024-01-10", "2024-03-05", "2024-05-20", "2024-07-14", "2024-10-02", "2024-12-24"]
            ),
        }
    )
    made = model.fit(table).transform(table)
    made = np.asarray(made.toarray() if hasattr(made, "toarray") else made, dtype=np.float64)
    names = [str(word) for word in model.get_feature_names_out()]
    largest = np.abs(made).max()
    left, side, high = 24.0, 26.0, 24.0
    width = left + side * len(names) + 90.0
    top = 130.0
    marks = []
    for j, word in enumerate(names):
        x = left + side * j
        turned = f"rotate(-50 {x + side / 2:.0f} {top - 8:.0f})"
        marks.append(tag("text", word, x=x + side / 2, y=top - 8, transform=turned, font_size=11, fill="currentColor"))
        for i, value in enumerate(made[:, j]):
            colour = ACCENT if value >= 0 else COLOURS[1]
            marks.append(
                tag(
                    "rect", x=x + 1, y=top + high * i, width=side - 2, height=high - 2,
                    fill=colour, fill_opacity=round(float(abs(value) / largest), 3), stroke=MUTED, stroke_width=0.4,
                )
            )  # fmt: skip
    for i in range(len(made)):
        marks.append(tag("text", str(i + 1), x=8, y=top + high * i + 16, font_size=11, fill="currentColor"))
    box = f"0 0 {width:.0f} {top + high * len(made) + 4:.0f}"
    title = "Six rows as TableEncoder hands them on"
    figure = tag("svg", tag("title", title), *marks, viewBox=box, role="img", aria_label=title)
    words = (
        f"Six rows of four columns (a number with a gap, categories with a gap, a truth value, a date) become "
        f"{len(names)} columns of numbers: the darker, the larger; the second colour is negative."
    )
    return str(figure), words, model


def draw_memory(name: str, model: Any) -> tuple[str, str, Any]:
    """Show the probability of a class that only the first step tells, after each step of a sequence."""
    rng = np.random.default_rng(0)
    lengths = [*rng.integers(2, 13, 200), *([12] * 40)]
    X = [rng.standard_normal((length, 1)) for length in lengths]
    y = np.array(["positive" if x[0, 0] > 0 else "negative" for x in X])
    model.fit(X[:200], y[:200])
    steps = np.arange(1, 13)
    lines = {}
    for which in ("positive", "negative"):
        new = next(x for x, label in zip(X[200:], y[200:], strict=True) if label == which and abs(x[0, 0]) > 0.5)
        at = list(model.classes_).index("positive")
        lines["first > 0" if which == "positive" else "first < 0"] = (
            steps,
            np.array([model.predict_proba([new[:k]])[0][at] for k in steps]),
        )
    figure = labelled_lines(lines, title=f"Memory of {name}", x_label="steps seen", y_label="probability of positive")
    share = float(np.mean(model.predict(X[200:]) == y[200:]))
    words = (
        "The class is the sign of the first step; the lines are what the network says after each step of two new "
        f"sequences. After twelve steps it is right about {share:.0%} of 40 new ones."
    )
    return figure, words, model


def draw_series(name: str, model: Any) -> tuple[str, str, Any]:
    """Show a series and what a network of sequences says of its next step."""
    rng = np.random.default_rng(0)
    t = np.arange(41)

    def waves(n: int) -> Any:
        phase = rng.uniform(0.0, 2 * np.pi, n)
        speed = rng.uniform(0.3, 0.6, n)
        return np.sin(speed[:, None] * t + phase[:, None]) + 0.05 * rng.standard_normal((n, len(t)))

    train = waves(150)
    new = waves(1)[0]
    model.fit(train[:, :-1, None], train[:, 1:])
    said = np.ravel(model.predict(new[None, :-1, None]))
    figure = labelled_lines(
        {"series": (t[1:], new[1:]), "said": (t[1:], said)},
        title=f"{name} of a new wave", x_label="step", y_label="value",
    )  # fmt: skip
    error = float(np.sqrt(np.mean((said[10:] - new[11:]) ** 2)))
    words = (
        "A wave of a speed that the network was not told, and what it says of each step from the steps before. After "
        f"ten steps its error is {error:.2f}; the noise is 0.05."
    )
    return figure, words, model


DRAWN = {name.removeprefix("draw_"): value for name, value in list(globals().items()) if name.startswith("draw_")}


def files_taken(name: str, folder: Path) -> str | bool | None:
    """Fit a model to a file that is streamed: True, or what it says instead; None where that cannot be tried."""
    model = build(name)
    if name in ELSEWHERE or name.startswith("MultiTask") or kind_of(name, model) in NO_FILES:
        return None
    role = model.__sklearn_tags__().estimator_type
    if "max_seconds" in model.get_params():
        model.set_params(max_seconds=5.0)
    which = {"regressor": "y", "classifier": "label"}.get(role)
    rows = Files(str(folder / f"{which}.parquet"), in_memory_bytes=0)
    try:
        model.fit(rows, which) if which else model.fit(rows)
    except (LearnableError, TypeError, ValueError, AttributeError) as error:
        return str(error).partition("\n")[0]
    return True


def write_rows(folder: Path) -> None:
    """Write the tables that `files_taken` reads: with numbers, with labels, without targets."""
    import pandas as pd

    rng = np.random.default_rng(0)
    table = pd.DataFrame(rng.integers(0, 5, (240, 3)).astype(float), columns=["a", "b", "c"])
    total = table.sum(axis=1) + rng.poisson(1.0, 240) + 1.0
    table.to_parquet(folder / "None.parquet")
    table.assign(y=total).to_parquet(folder / "y.parquet")
    table.assign(label=(total > total.median()).astype(int)).to_parquet(folder / "label.parquet")


def _dots(frame: Frame, points: Any, colours: list[str]) -> list[Any]:
    return [
        tag("circle", cx=float(frame.x(a)), cy=float(frame.y(b)), r=2.6, fill=colour, opacity=0.7)
        for (a, b), colour in zip(points, colours, strict=True)
    ]


def _score(model: Any, rows: Any) -> Any:
    """Return a number per row that is positive where the model chooses the second class."""
    for method in ("decision_function", "predict_proba"):
        with contextlib.suppress(AttributeError):
            scores = np.asarray(getattr(model, method)(rows))
            return scores if scores.ndim == 1 else scores[:, 1] - scores[:, 0]
    return np.where(model.predict(rows) == "b", 1.0, -1.0)


def main(target: str) -> None:
    """Draw everything."""
    warnings.simplefilter("ignore")
    found: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        write_rows(Path(folder))
        for name in estimator_names():
            taken = files_taken(name, Path(folder))
            found[name] = {"files": taken}
            if name in ELSEWHERE:
                found[name]["gallery"] = ELSEWHERE[name]
                continue
            figure, words, model = draw(name)
            found[name] |= {"svg": str(figure), "words": words}
            certificate = getattr(model, "certificate_", None)
            if certificate is not None:
                found[name] |= {"certificate": str(certificate), "kind": certificate.kind}
    Path(target).write_text(json.dumps(found, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
