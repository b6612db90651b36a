"""An ensemble as a sequence of fitted estimators, and the trees of a packed forest as such estimators.

All trees of an ensemble lie in one set of arrays. A member is an ordinary `DecisionTreeClassifier` or
`DecisionTreeRegressor` whose arrays are a view of its tree: it predicts, is drawn, pruned, cloned and pickled like any
other. Its certificate is `none`: what is proven, is proven of the ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..core import Array, Certificate
from ..trees import DecisionTreeClassifier, DecisionTreeRegressor, Trees
from ..trees._random import seed_of
from ..trees.file_layout import require
from .adaboost.stumps import Stumps, stump_tree

Tree = DecisionTreeClassifier | DecisionTreeRegressor


class MemberSequence:
    """What makes an ensemble a sequence of its `estimators_`: length, indices, slices and iteration.

    Examples
    --------
    >>> from learnable import RandomForestRegressor
    >>> forest = RandomForestRegressor(n_estimators=3, random_state=0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> len(forest), forest[0].get_n_leaves() > 0, [type(tree).__name__ for tree in forest][:1]
    (3, True, ['DecisionTreeRegressor'])
    """

    estimators_: Any

    def __len__(self) -> int:
        return len(self.estimators_)

    def __getitem__(self, index: Any) -> Any:
        return self.estimators_[index]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.estimators_)

    def __bool__(self) -> bool:
        return True  # an estimator, fitted or not; its length must not decide

    def _kept(self, source: Any, build: Callable[[], list[Any]]) -> list[Any]:
        """Return the members made of `source`, the same objects at every call; pickles leave them out."""
        kept = self.__dict__.get("_members")
        if kept is None or kept[0] is not source:
            kept = self.__dict__["_members"] = (source, build())
        return kept[1]

    def __getstate__(self) -> Any:
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_members"}


def member_tree(template: Tree, tree: Trees, state: int, n_features: int, n_outputs: int, classes: Any = None) -> Tree:
    """Return a fitted copy of a decision tree that predicts by `tree`.

    Parameters
    ----------
    template : DecisionTreeClassifier or DecisionTreeRegressor
        Its parameters are shared.
    tree : Trees
        One tree.
    state : int
        Becomes the `random_state`.
    n_features, n_outputs : int
        Columns and targets.
    classes : array, list of arrays or None
        Labels of a classifier.
    """
    member = type(template)(**template.get_params(deep=False))
    member.random_state = int(state)
    member.trees_ = tree
    member.seed_ = seed_of(int(state))
    member.n_features_in_ = n_features
    member.n_outputs_ = n_outputs
    member.ccp_alpha_ = float(template.ccp_alpha)
    member.certificate_ = Certificate("none", np.nan, 0.0)
    if isinstance(member, DecisionTreeClassifier):
        member.classes_ = classes
        member.n_classes_ = [len(own) for own in classes] if isinstance(classes, list) else len(classes)
    return member


def stump_members(model: Any) -> list[Tree]:
    """Return the stumps of a fitted `AdaBoostClassifier` as trees of depth one."""
    template = model.estimator_
    members = []
    for number, (stump, sides) in enumerate(zip(model.stumps_, model.stump_sides_, strict=True)):
        tree = stump_tree(stump, sides[:, :-1], sides[:, -1].astype(np.int64))
        member = member_tree(template, tree, number, model.n_features_in_, 1, model.classes_)
        member.max_features_ = model.n_features_in_
        members.append(member)
    return members


def sides_are_sound(sides: Any, shape: tuple[int, ...]) -> bool:
    """Tell whether an array from a file holds weights >= 0 of classes, and rows of which some are on the left."""
    if not (isinstance(sides, np.ndarray) and sides.dtype == np.float64 and sides.shape == shape):
        return False
    return bool(np.isfinite(sides).all() and (sides >= 0).all() and (sides[:, 0, -1] >= 1).all())


def check_stumps(owner: str, stumps: Any, n_scores: int, n_features: int) -> None:
    """Raise ModelFileError unless loaded stumps have so many scores and test columns that exist."""
    fits = isinstance(stumps, Stumps) and stumps.value.shape[2] == n_scores and (stumps.feature < n_features).all()
    scores = "one score" if n_scores == 1 else "a score for each class"
    require(fits, f"{owner}: stumps_ must have {scores} and test columns that exist")


def check_models(owner: str, models: list[Any], estimator: Any, n_features: int, classes: Any = None) -> None:
    """Raise ModelFileError unless loaded models are copies of the estimator and know the features and the classes."""
    kind = type(estimator)
    require(all(type(model) is kind for model in models), f"{owner}: models_ must be of the class of estimator")
    require(
        all(getattr(model, "n_features_in_", None) == n_features for model in models),
        f"{owner}: models_ must have the features of the ensemble",
    )
    if classes is not None:
        require(
            all(np.isin(getattr(model, "classes_", []), classes).all() for model in models),
            f"{owner}: models_ must know the classes of the ensemble",
        )


def weighted_importances(model: Any) -> Array:
    """Return the importances of the members of a fitted ensemble, weighted by their weights."""
    check_is_fitted(model)
    weights = model.estimator_weights_
    own = [getattr(member, "feature_importances_", None) for member in model.estimators_]
    if any(importance is None for importance in own):
        raise AttributeError(f"{type(model).__name__}: {type(model.estimator).__name__} has no feature_importances_.")
    return np.asarray(weights @ np.stack([np.asarray(importance) for importance in own]) / weights.sum())
