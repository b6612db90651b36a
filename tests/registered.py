"""Every registered estimator, built: those that wrap a model get one that suits them; and fitted to a small table."""

import inspect
import warnings
from functools import cache

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import get_tags

from learnable.core.registry import registered_class
from learnable.linear import LogisticRegression, Ridge

N_ROWS = 60


def build(name):
    """Return an unfitted estimator of the registry."""
    cls = registered_class(name)
    first = next(iter(inspect.signature(cls).parameters.values()), None)
    if first is None or first.default is not inspect.Parameter.empty:
        return cls()
    return cls(LogisticRegression() if "Classifier" in name else Ridge())


def is_sequence_model(model):
    """Tell whether the rows of X are steps of sequences."""
    lengths = inspect.signature(model.fit).parameters.get("lengths")
    return lengths is not None and lengths.kind is not inspect.Parameter.KEYWORD_ONLY


def brief(model):
    """Return the model with a seed and few members, rounds and penalties, but at least two of each."""
    known = model.get_params(deep=False)
    few = {"n_iter": 1000} if is_sequence_model(model) else {}
    few |= {
        "units": 3,
        "n_blocks": 1,
        "n_estimators": 5,
        "alphas": 5,
        "n_components": 2,
        "n_mix": 2,
        "n_clusters": 3,
        "n_bins": 5,
    }
    if "max_leaf_nodes" in known:
        few["max_iter"] = 5
    model.set_params(**{name: n for name, n in few.items() if type(known.get(name)) is int})
    if known.get("n_components") == "auto":  # as many parts as columns reproduce the rows in many ways
        model.set_params(n_components=2)
    if "polish" in known:  # a full-batch fit of a network proves something; a penalty makes its minimum unique enough
        model.set_params(polish=True, alpha=0.1, max_iter=2000, tol=1e-2)
    if "polish" in known and "activation" in known:
        model.set_params(activation="tanh")
    if "n_populations" in known:  # of 60 individuals and four loci a posterior needs minutes to be sure of α
        model.set_params(method="ml", ploidy=20)
    if "doc_topic_prior" in known:  # likewise of 60 short documents
        model.set_params(method="variational", n_draws=8, n_warmup=4)
    if "use_legacy_attributes" in known:
        model.set_params(Cs=3, cv=3)
    if "hidden_layer_sizes" in known:
        model.set_params(hidden_layer_sizes=(3,))
    if "n_recurrent_layers" in known:
        model.set_params(solver="lbfgs", alpha=3.0, max_iter=300)
    return model.set_params(random_state=0) if "random_state" in known else model


def small_table(name, n_rows=N_ROWS, seed=0):
    """Return X and y that suit a registered model: noisy, so that no model is at an end of its range."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 4))
    model = build(name)
    tags = get_tags(model)
    noise = 0.0 if name == "Perceptron" else 1.0  # it certifies that rows are separated, where they can be
    slope = np.array([1.0, -2.0, 0.5, 0.0])
    y = X @ slope + noise * rng.normal(size=n_rows)
    if not noise:
        X += 0.5 * np.sign(y)[:, None] * slope
    if is_classifier(model):
        several = tags.classifier_tags.multi_class and name != "Perceptron"  # the middle class is not separable
        labels = np.array(["no", "so", "yes"]) if several else np.array(["no", "yes"])
        y = labels[np.digitize(y, [-1.0, 1.0] if several else [0.0])]
    if tags.target_tags.positive_only:
        y = np.floor(np.abs(y)) + 1.0
    if not tags.target_tags.single_output:
        y = np.column_stack([y, X[:, 0] - X[:, 3] + rng.normal(size=n_rows)])
    if is_sequence_model(model):
        X, y = np.abs(X[:, :1]).round(), None
    if tags.input_tags.positive_only:
        X = np.floor(3.0 * np.abs(X))  # counts, or codes of categories
    return X, y


def other_rows(name):
    """Return rows that the small table of a model does not have, within its range."""
    X, _ = small_table(name)
    return np.clip(small_table(name, seed=1)[0], X.min(axis=0), X.max(axis=0))


@cache
def fitted(name):
    """Return a brief model fitted to its small table, with X and y; copy it before you change it or ask it anything."""
    X, y = small_table(name)
    model = brief(build(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X) if y is None else model.fit(X, y)
    return model, X, y
