"""What must hold of the scikit-learn models in a file.

Their own code trusts what `fit` has set; a file is not `fit`. Members have the kinds that `entries_sklearn` declares,
and where scikit-learn or SciPy would index by a stored number without asking, the numbers are checked here: an encoder
whose counts of columns are forged writes beyond its arrays.
"""

from __future__ import annotations

import math
import re
from functools import cache
from numbers import Integral, Real
from typing import Any, Final

import numpy as np

from .entries import SKLEARN
from .errors import ModelFileError
from .registry import registered_name, resolve

_MOST_JOBS: Final = 256  # a forged n_jobs must not start a process for every number that JSON has
_PLAIN: Final[dict[str, tuple[type, ...]]] = {"flag": (bool, np.bool_), "text": (str,), "dtype": (np.dtype,)}
_KINDS: Final = {"float": "fiub", "int": "iu"}
_METHODS: Final = ("predict_proba", "decision_function", "predict", "transform")


def check_foreign(name: str, model: Any, path: str) -> None:
    """Check the parameters and the fitted members of a scikit-learn model.

    Raises
    ------
    ModelFileError
        Naming the member and the rule.
    """
    entry = SKLEARN[name]
    params = model.get_params(deep=False)
    if hasattr(model, "_parameter_constraints"):
        try:
            model._validate_params()  # scikit-learn's own rules, which `fit` would apply
        except ValueError as error:
            raise ModelFileError(f"{path}: {error}") from error
    jobs = params.get("n_jobs")
    if jobs is not None and abs(jobs) > _MOST_JOBS:
        raise ModelFileError(f"{path}.n_jobs must be between -{_MOST_JOBS} and {_MOST_JOBS}; got {jobs!r}")
    members = members_of(name)
    present = [key for key in vars(model) if key in members]
    if present:
        missing = [key for key, (_, optional) in members.items() if not optional and key not in present]
        if missing:
            raise ModelFileError(f"{path} has no {missing[0]}, which every fitted {name} of this version has")
        sizes: dict[str, int] = {}
        for key in sorted(present, key=lambda key: key != "n_features_in_"):
            _check_kind(getattr(model, key), members[key][0], sizes, f"{path}.{key}")
            if key == "n_features_in_":
                sizes["p"] = int(model.n_features_in_)
        _check_names(model, path)
    if entry.check is not None:
        try:
            resolve(entry.check)(model, path)
        except (TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise ModelFileError(f"{path} has members that do not fit together ({error})") from error


@cache
def members_of(name: str) -> dict[str, tuple[str, bool]]:
    """Return the kind of every fitted member of a class, and whether a fit may leave it out."""
    members = {}
    for item in SKLEARN[name].state.split(";"):
        key, _, kind = item.partition(":")
        if kind:
            members[key.strip().removesuffix("?")] = (kind.strip(), key.strip().endswith("?"))
    return members


def _check_kind(value: Any, kind: str, sizes: dict[str, int], path: str) -> None:
    kind, _, alternative = kind.partition(" or ")
    if kind == "object" or (alternative and value is None):
        return
    word, bracket, letters = kind.partition("[")
    if bracket:
        agrees = _is_array(value, word, letters.rstrip("]").split(","), sizes)
    elif kind == "count":
        agrees = isinstance(value, Integral) and not isinstance(value, bool) and 0 <= int(value) < 2**53
    elif kind == "number":
        agrees = _is_array(value, "float", None, sizes) if isinstance(value, np.ndarray) else isinstance(value, Real)
    else:
        agrees = isinstance(value, _PLAIN[kind])
    if not agrees:
        raise ModelFileError(f"{path} is not what scikit-learn's fit sets: it must be {kind}")


def _is_array(value: Any, word: str, letters: list[str] | None, sizes: dict[str, int]) -> bool:
    if type(value) is not np.ndarray or value.dtype.kind not in _KINDS.get(word, value.dtype.kind):
        return False
    if letters is None:
        return True
    if value.ndim != len(letters):
        return False
    return all(sizes.setdefault(letter, size) == size for letter, size in zip(letters, value.shape, strict=True))


def _check_names(model: Any, path: str) -> None:
    """Check the names of the columns, as they are for our own models."""
    names = vars(model).get("feature_names_in_")
    if names is None:
        return
    if not (isinstance(names, np.ndarray) and names.dtype == object and names.ndim == 1):
        raise ModelFileError(f"{path}.feature_names_in_ is not an array with one name for each column")
    if not all(type(name) is str for name in names):
        raise ModelFileError(f"{path}.feature_names_in_ has names that are not strings")
    if len(names) != vars(model).get("n_features_in_", len(names)):
        raise ModelFileError(f"{path}.feature_names_in_ has {len(names)} names for {model.n_features_in_} columns")


def _demand(holds: bool, path: str, rule: str) -> None:
    if not holds:
        raise ModelFileError(f"{path} {rule}")


def _is_fitted(model: Any, member: str) -> bool:
    return member in vars(model)


# Encoders of categories


def _check_categories(model: Any, path: str) -> None:
    """Check the categories of every column, and the groups of rare ones."""
    n_columns = model.n_features_in_
    categories = model.categories_
    _demand(
        isinstance(categories, list) and len(categories) == n_columns,
        f"{path}.categories_",
        f"must be a list of {n_columns} arrays",
    )
    for i, known in enumerate(categories):
        where = f"{path}.categories_[{i}]"
        _demand(type(known) is np.ndarray and known.ndim == 1 and known.dtype.kind in "biufOU", where, "is no array")
        if known.dtype.kind in "biuf" and len(known) > 1:
            # Codes are found by bisection: in an array out of order they can point behind its end.
            rising = (known[1:] > known[:-1]) | (np.isnan(known[1:]) & ~np.isnan(known[:-1]))
            _demand(bool(rising.all()), where, "must rise")
    if not model._infrequent_enabled:
        return
    for member in ("_infrequent_indices", "_default_to_infrequent_mappings"):
        held = getattr(model, member)
        _demand(isinstance(held, list) and len(held) == n_columns, f"{path}.{member}", f"needs {n_columns} items")
    for i, (rare, groups) in enumerate(
        zip(model._infrequent_indices, model._default_to_infrequent_mappings, strict=True)
    ):
        where = f"{path}._infrequent_indices[{i}]"
        _demand((rare is None) == (groups is None), where, "and its mapping must both be there")
        if rare is None:
            continue
        known = len(categories[i])
        _demand(_indexes(rare, known) and 0 < len(rare) <= known, where, f"must be positions below {known}")
        fits = _indexes(groups, known - len(rare) + 1) and len(groups) == known
        _demand(fits, f"{path}._default_to_infrequent_mappings[{i}]", "does not group these categories")


def _indexes(array: Any, end: int) -> bool:
    """Tell whether an array holds positions in something of length `end`."""
    if type(array) is not np.ndarray or array.ndim != 1 or array.dtype.kind not in "iu":
        return False
    return len(array) == 0 or bool(array.min() >= 0 and array.max() < end)


def _groups(model: Any) -> list[int]:
    """Return how many groups of categories each column has."""
    counts = [len(known) for known in model.categories_]
    if model._infrequent_enabled:
        for i, rare in enumerate(model._infrequent_indices):
            counts[i] -= 0 if rare is None else len(rare) - 1
    return counts


def check_one_hot(model: Any, path: str) -> None:
    """Check a OneHotEncoder: its counts of columns become the shape of a sparse array."""
    if not _is_fitted(model, "categories_"):
        return
    _check_categories(model, path)
    counts = _groups(model)
    for member, ends in (
        ("_drop_idx_after_grouping", counts),
        ("drop_idx_", [len(known) for known in model.categories_]),
    ):
        dropped = getattr(model, member)
        where = f"{path}.{member}"
        _demand((dropped is None) == (model.drop is None), where, "does not agree with the parameter drop")
        if dropped is None:
            continue
        fits = isinstance(dropped, np.ndarray) and dropped.dtype == object and dropped.shape == (len(counts),)
        _demand(fits, where, "must have an item for each column")
        for position, end in zip(dropped, ends, strict=True):
            sound = position is None or (isinstance(position, Integral) and 0 <= int(position) < end)
            _demand(sound, where, "must be None or the position of a category")
    if model._drop_idx_after_grouping is not None:
        counts = [n - (gone is not None) for n, gone in zip(counts, model._drop_idx_after_grouping, strict=True)]
    _demand(model._n_features_outs == counts, f"{path}._n_features_outs", f"must be {str(counts)[:60]}")


def check_ordinal(model: Any, path: str) -> None:
    """Check an OrdinalEncoder."""
    if not _is_fitted(model, "categories_"):
        return
    _check_categories(model, path)
    missing = model._missing_indices
    where = f"{path}._missing_indices"
    _demand(isinstance(missing, dict), where, "must be a dict")
    for column, position in missing.items():
        _demand(isinstance(column, Integral) and 0 <= int(column) < model.n_features_in_, where, "names no column")
        sound = isinstance(position, Integral) and 0 <= int(position) < len(model.categories_[column])
        _demand(sound, where, "must be positions of categories")


def check_target_encoder(model: Any, path: str) -> None:
    """Check a TargetEncoder: one array of means for each column and class."""
    if not _is_fitted(model, "categories_"):
        return
    _check_categories(model, path)
    kinds = ("continuous", "binary", "multiclass")
    _demand(model.target_type_ in kinds, f"{path}.target_type_", f"must be one of {', '.join(kinds)}")
    several = model.target_type_ == "multiclass"
    _demand((model.classes_ is None) == (model.target_type_ == "continuous"), f"{path}.classes_", "must be the classes")
    n_outputs = len(model.classes_) if several else 1
    _demand(np.shape(model.target_mean_) == ((n_outputs,) if several else ()), f"{path}.target_mean_", "misses a class")
    encodings = model.encodings_
    needed = model.n_features_in_ * n_outputs
    _demand(isinstance(encodings, list) and len(encodings) == needed, f"{path}.encodings_", f"needs {needed} arrays")
    for i, means in enumerate(encodings):
        known = len(model.categories_[i // n_outputs])
        fits = type(means) is np.ndarray and means.shape == (known,) and means.dtype.kind == "f"
        _demand(fits, f"{path}.encodings_[{i}]", f"must be {known} numbers")


# Other transformers


def check_imputer(model: Any, path: str) -> None:
    """Check a SimpleImputer: its indicator is of the same columns."""
    if not _is_fitted(model, "statistics_"):
        return
    indicator = model.indicator_
    _demand((indicator is not None) == model.add_indicator, f"{path}.indicator_", "does not agree with add_indicator")
    if indicator is not None:
        fits = sklearn_name(type(indicator)) == "MissingIndicator"
        _demand(fits, f"{path}.indicator_", "must be a MissingIndicator")
        _demand(indicator._n_features == model.n_features_in_, f"{path}.indicator_", "is of other columns")


def check_indicator(model: Any, path: str) -> None:
    """Check a MissingIndicator."""
    if _is_fitted(model, "features_"):
        _demand(_indexes(model.features_, model._n_features), f"{path}.features_", "must be positions of columns")


def check_polynomial(model: Any, path: str) -> None:
    """Check a PolynomialFeatures: compiled code fills as many columns as the degrees give."""
    if not _is_fitted(model, "_n_out_full"):
        return
    degrees = (0, model.degree) if isinstance(model.degree, Integral) else tuple(model.degree)
    found = (model._min_degree, model._max_degree)
    _demand(found == degrees and max(degrees) <= 1000, f"{path}._max_degree", f"must follow from the degree {degrees}")
    counts = []
    for first in (model._min_degree, 0):
        if model.interaction_only:
            last = min(model._max_degree, model.n_features_in_)
            count = sum(math.comb(model.n_features_in_, d) for d in range(max(1, first), last + 1))
        else:
            count = math.comb(model.n_features_in_ + model._max_degree, model._max_degree) - 1
            count -= math.comb(model.n_features_in_ + first - 1, first - 1) - 1 if first > 0 else 0
        counts.append(count + bool(model.include_bias))
    found = (model.n_output_features_, model._n_out_full)
    _demand(found == tuple(counts), f"{path}.n_output_features_", f"must be {counts[0]}; got {found[0]}")


def check_splines(model: Any, path: str) -> None:
    """Check a SplineTransformer: a basis for each column, of the declared degree and all of one size."""
    if not _is_fitted(model, "bsplines_"):
        return
    from scipy.interpolate import BSpline

    splines = model.bsplines_
    where = f"{path}.bsplines_"
    fits = isinstance(splines, list) and len(splines) == model.n_features_in_ and len(splines) > 0
    _demand(fits and all(type(spline) is BSpline for spline in splines), where, "needs a spline for each column")
    size = splines[0].c.shape
    for i, spline in enumerate(splines):
        square = spline.c.ndim == 2 and spline.c.shape == size and size[1] <= size[0]
        _demand(
            square and spline.k == model.degree, f"{where}[{i}]", f"must be of degree {model.degree}, as the others"
        )
    expected = len(splines) * (size[1] - (not model.include_bias))
    _demand(model.n_features_out_ == expected, f"{path}.n_features_out_", f"must be {expected}")


def check_bins(model: Any, path: str) -> None:
    """Check a KBinsDiscretizer: edges that do not fall, one more than bins."""
    if not _is_fitted(model, "bin_edges_"):
        return
    for i, (edges, n_bins) in enumerate(zip(model.bin_edges_, model.n_bins_, strict=True)):
        where = f"{path}.bin_edges_[{i}]"
        fits = type(edges) is np.ndarray and edges.shape == (int(n_bins) + 1,) and edges.dtype.kind == "f"
        _demand(fits and bool((edges[1:] >= edges[:-1]).all()), where, f"must be {n_bins} + 1 numbers that do not fall")
    _demand((model.encode != "ordinal") == hasattr(model, "_encoder"), f"{path}._encoder", "does not agree with encode")
    if hasattr(model, "_encoder"):
        fits = sklearn_name(type(model._encoder)) == "OneHotEncoder"
        _demand(
            fits and model._encoder.n_features_in_ == model.n_features_in_, f"{path}._encoder", "is of other columns"
        )


def check_power(model: Any, path: str) -> None:
    """Check a PowerTransformer: its scaler is of the same columns."""
    if not _is_fitted(model, "lambdas_"):
        return
    _demand(model.standardize == hasattr(model, "_scaler"), f"{path}._scaler", "does not agree with standardize")
    if hasattr(model, "_scaler"):
        fits = sklearn_name(type(model._scaler)) == "StandardScaler"
        _demand(fits and model._scaler.n_features_in_ == model.n_features_in_, f"{path}._scaler", "is of other columns")


# Models made of models


def _check_named(items: Any, length: int, words: tuple[str | None, ...], path: str) -> None:
    """Check a list of (name, model, …), where a model may also be one of a few words."""
    _demand(isinstance(items, (list, tuple)) and len(items) > 0, path, "must be a list of named models")
    for i, item in enumerate(items):
        fits = isinstance(item, (tuple, list)) and len(item) == length and type(item[0]) is str
        _demand(fits, f"{path}[{i}]", "must begin with a name and a model")
        known = item[1] is None or isinstance(item[1], str)
        fits = item[1] in words if known else is_model(item[1])
        _demand(fits, f"{path}[{i}]", "must begin with a name and a model")
    names = [item[0] for item in items]
    _demand(len(set(names)) == len(names), path, "has a name twice")
    _demand(not any("__" in name for name in names), path, "has a name with two underscores")


def check_pipeline(model: Any, path: str) -> None:
    """Check a Pipeline."""
    _check_named(model.steps, 2, ("passthrough", None), f"{path}.steps")
    # joblib would read pickles from this folder at the next fit.
    _demand(model.memory is None, f"{path}.memory", "is a cache, which cannot be saved; set memory=None")


def check_union(model: Any, path: str) -> None:
    """Check a FeatureUnion."""
    _check_named(model.transformer_list, 2, ("passthrough", "drop"), f"{path}.transformer_list")


def check_column_transformer(model: Any, path: str) -> None:
    """Check a ColumnTransformer."""
    words = ("passthrough", "drop")
    if len(model.transformers):
        _check_named(model.transformers, 3, words, f"{path}.transformers")
    _demand(
        model.remainder in words if isinstance(model.remainder, str) else is_model(model.remainder),
        path,
        "has no remainder",
    )
    if not _is_fitted(model, "transformers_"):
        return
    _check_named(model.transformers_, 3, words, f"{path}.transformers_")
    for member in ("_transformer_to_input_indices", "output_indices_"):
        _demand(isinstance(getattr(model, member), dict), f"{path}.{member}", "must be a dict")
    for name, held in model.output_indices_.items():
        _demand(isinstance(name, str) and type(held) is slice, f"{path}.output_indices_", "must be slices")
    for columns in model._transformer_to_input_indices.values():
        fits = _indexes(np.asarray(columns, dtype=np.int64) if len(columns) else np.zeros(0, int), model.n_features_in_)
        _demand(fits, f"{path}._transformer_to_input_indices", "must be positions of columns")
    fits = isinstance(model._columns, list) and len(model._columns) == len(model.transformers)
    _demand(fits, f"{path}._columns", "needs an item for each transformer")
    rest = model._remainder
    fits = isinstance(rest, tuple) and len(rest) == 3 and rest[0] == "remainder"
    _demand(fits, f"{path}._remainder", "must be the name, the model and the columns of the rest")


def check_search(model: Any, path: str) -> None:
    """Check a GridSearchCV or RandomizedSearchCV."""
    _demand(is_model(model.estimator), f"{path}.estimator", "must be a model")
    plan = model.pre_dispatch
    sound = plan is None or isinstance(plan, Integral) or re.fullmatch(r"all|\d{0,4} ?\*? ?n_jobs", str(plan))
    _demand(bool(sound), f"{path}.pre_dispatch", "must be a number, 'all' or a multiple of n_jobs")
    scores = model.scoring.values() if isinstance(model.scoring, dict) else model.scoring
    for score in (scores,) if isinstance(scores, (str, type(None))) else scores:
        _demand(score is None or isinstance(score, str), f"{path}.scoring", "must be names of scores")
    if not _is_fitted(model, "cv_results_"):
        return
    _demand(isinstance(model.cv_results_, dict), f"{path}.cv_results_", "must be a dict")
    if model.refit:
        _demand(is_model(getattr(model, "best_estimator_", None)), f"{path}.best_estimator_", "must be a model")


def _check_members(model: Any, path: str) -> None:
    _check_named(model.estimators, 2, ("drop",), f"{path}.estimators")
    if not _is_fitted(model, "estimators_"):
        return
    members = model.estimators_
    needed = sum(member != "drop" for _, member in model.estimators if isinstance(member, str) or is_model(member))
    fits = isinstance(members, list) and len(members) == needed and all(map(is_model, members))
    _demand(fits, f"{path}.estimators_", f"must be {needed} models")


def _check_label_encoder(encoder: Any, model: Any, path: str) -> None:
    fits = sklearn_name(type(encoder)) == "LabelEncoder" and np.array_equal(encoder.classes_, model.classes_)
    _demand(fits, path, "must be the LabelEncoder of the classes")


def check_voting(model: Any, path: str) -> None:
    """Check a VotingClassifier or VotingRegressor."""
    _check_members(model, path)
    if not _is_fitted(model, "estimators_"):
        return
    weights = model.weights
    _demand(
        weights is None or len(weights) == len(model.estimators), f"{path}.weights", "needs a weight for each model"
    )
    if hasattr(model, "classes_"):
        _check_label_encoder(model.le_, model, f"{path}.le_")
        for i, member in enumerate(model.estimators_):
            # Votes are counted in an array as long as the largest code.
            codes = np.arange(len(model.classes_))
            fits = np.array_equal(getattr(member, "classes_", ()), codes)
            _demand(fits, f"{path}.estimators_[{i}].classes_", f"must be the codes 0 to {len(codes) - 1}")


def check_stacking(model: Any, path: str) -> None:
    """Check a StackingClassifier or StackingRegressor."""
    _check_members(model, path)
    if not _is_fitted(model, "estimators_"):
        return
    _demand(is_model(model.final_estimator_), f"{path}.final_estimator_", "must be a model")
    methods = model.stack_method_
    fits = isinstance(methods, list) and len(methods) == len(model.estimators_)
    _demand(fits and all(m in _METHODS for m in methods), f"{path}.stack_method_", "must name a method for each model")
    widths = model._n_feature_outs
    fits = isinstance(widths, list) and all(isinstance(n, Integral) and 0 <= int(n) < 2**31 for n in widths)
    _demand(fits, f"{path}._n_feature_outs", "must be numbers of columns")
    if hasattr(model, "_label_encoder"):
        _check_label_encoder(model._label_encoder, model, f"{path}._label_encoder")


def is_model(value: Any) -> bool:
    """Tell whether a value is a model that a file may hold, of this library or of scikit-learn."""
    return registered_name(type(value)) is not None or sklearn_name(type(value)) is not None


def sklearn_name(cls: type) -> str | None:
    """Return the name of a scikit-learn class that a file may hold (not of its subclasses), or None."""
    entry = SKLEARN.get(cls.__name__)
    if entry is None or not cls.__module__.startswith(entry.module):
        return None
    return cls.__name__ if resolve(f"{entry.module}:{cls.__name__}") is cls else None


# What is left out of a file


def restore_named_estimators(model: Any) -> None:
    """Set `named_estimators_`, as the fit does."""
    if not _is_fitted(model, "estimators_"):
        return
    from sklearn.utils import Bunch

    fitted = iter(model.estimators_)
    held = {name: "drop" if isinstance(member, str) else next(fitted) for name, member in model.estimators}
    model.named_estimators_ = Bunch()
    model.named_estimators_.update(held)


def restore_scorer(model: Any) -> None:
    """Set `scorer_`: the scores are looked up by their names."""
    if not _is_fitted(model, "cv_results_"):
        return
    from sklearn.metrics import check_scoring, get_scorer

    if model.scoring is None or isinstance(model.scoring, str):
        model.scorer_ = check_scoring(model.estimator, scoring=model.scoring)
    elif isinstance(model.scoring, dict):
        model.scorer_ = {name: get_scorer(score) for name, score in model.scoring.items()}
    else:
        model.scorer_ = {name: get_scorer(name) for name in model.scoring}
