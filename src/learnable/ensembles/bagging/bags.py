"""What bagging classifiers and regressors share: reading the data, fitting members on their bags, out-of-bag rows."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Final, NamedTuple, Self

import narwhals.stable.v2 as nw
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.base import MetaEstimatorMixin, clone
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, get_routing_for_object, process_routing
from sklearn.utils.parallel import Parallel, delayed
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ...core import (
    N_JOBS,
    RANDOM_STATE,
    Boolean,
    Certificate,
    DataError,
    Declared,
    Number,
    ParameterError,
    are_counts,
    check_parameters,
    fitted,
    hook,
    is_array,
    law,
    laws,
    optional,
    param,
    registered_class,
    tags,
)
from ...core.progress import shows_progress
from ...data.arrays import as_array, as_csr, check_shape
from ...data.dask_blocks import current_client
from ...data.dask_tasks import run_on_cluster
from ...data.door import Target, is_dask, is_frame, match_columns, read_target, read_values, take_named_columns
from ...data.encoder_input import read_whole
from ...data.frames import open_frame
from ...data.rows import read_rows, take_rows
from ...meta.binary import MODEL, combined_certificate, is_routing, of_rows, refuse_without_routing
from ...trees._random import seed_of
from ...trees.models import ShapleyValues
from .._members import MemberSequence
from ..draws import MAX_SAMPLES, Draw, Rows, bag_size, chances, draw_columns, draw_rows, out_of_bag

# --------------------------------------------------------------------------------------------------------------------
# Metadata of scikit-learn (`enable_metadata_routing=True`) on their way from an ensemble to its members.
#
# A member gets what it has asked for with `set_fit_request`, `set_predict_request` and so on. Which of its methods an
# answer of the ensemble is made of depends on the methods that it has: `callee` says it once, for the router and for
# the answers.


#: What the answers of an ensemble are made of: the first that the members have.
SOURCES: Final[Mapping[str, tuple[str, ...]]] = {
    "fit": ("fit",),
    "predict": ("predict_proba", "predict"),
    "predict_proba": ("predict_proba", "predict"),
    "predict_log_proba": ("predict_log_proba", "predict_proba", "predict"),
    "decision_function": ("decision_function",),
}


def callee(template: Any, caller: str) -> str:
    """Return the method of a member that the method `caller` of the ensemble asks."""
    names = SOURCES[caller]
    return next((name for name in names if hasattr(template, name)), names[-1])


def router_of(ensemble: Any, template: Any) -> MetadataRouter:
    """Return what is routed where."""
    mapping = MethodMapping()
    for caller in SOURCES:
        mapping.add(caller=caller, callee=callee(template, caller))
    return MetadataRouter(owner=ensemble).add(estimator=template, method_mapping=mapping)


def routed(ensemble: Any, template: Any, caller: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata for the members' method, checked against what they asked for."""
    if not is_routing():
        refuse_without_routing(type(ensemble).__name__, caller, given)
        return {}
    found = process_routing(ensemble, caller, **given)
    return dict(found.estimator[callee(template, caller)])


def asks_for_weights(template: Any) -> bool:
    """Tell whether a member has asked for sample_weight in `fit`; without routing no request is needed."""
    return not is_routing() or bool(get_routing_for_object(template).consumes("fit", ("sample_weight",)))


Array = NDArray[np.float64]


class BagTable(NamedTuple):
    """Training rows in their container."""

    X: Any
    y: NDArray[Any]  #: numbers, or class codes
    weight: Array | None
    classes: NDArray[Any] | None
    container: Any = None  #: the class of a sparse X, which the members get, too
    metadata: Mapping[str, Any] = {}  #: what else the members' `fit` gets


class Member(NamedTuple):
    """What a member is fitted from, besides the table."""

    model: Any
    rows: Rows
    columns: Rows
    weighs: bool  #: whether it sees distinct rows, with the number of draws as weights
    words: str  #: what is printed before the fit


class Bagging(ShapleyValues, MemberSequence, MetaEstimatorMixin, Declared):
    """Base of `BaggingClassifier` and `BaggingRegressor`; not to be used directly."""

    estimator: Any = param(
        optional(MODEL),
        "A classifier or a regressor, of this library or of scikit-learn; None is a decision tree. It is "
        "cloned, not changed. Only models of this library can be saved and verified.",
        default=None,
        kw_only=False,
    )
    n_estimators: int = param(Number(low=1, integer=True), "Number of members B.", default=10, kw_only=False)
    max_samples: float | None = param(
        MAX_SAMPLES,
        "Rows in a bag: a number, a share (of the total weight if there are weights), or as many as there are rows.",
        default=None,
    )
    max_features: float = param(
        Number(low=1, integer=True) | Number(low=0.0, high=1.0, low_open=True),
        "Columns that a member sees: a number or a share.",
        default=1.0,
    )
    bootstrap: bool = param(Boolean(), "Whether rows are drawn with replacement.", default=True)
    bootstrap_features: bool = param(Boolean(), "Whether columns are drawn with replacement.", default=False)
    oob_score: bool = param(
        Boolean(),
        "Whether to compute `oob_score_` from the rows that are out of the bags; also for bags without replacement.",
        default=False,
    )
    warm_start: bool = param(
        Boolean(),
        "Whether to keep the members of the last fit, on the same table, and add to them. Since a bag depends "
        "on the seed and its number alone, the result is that of one fit.",
        default=False,
    )
    n_jobs: int | None = param(
        N_JOBS,
        "Members fitted at the same time, each in a process of its own; None fits one after the other.",
        default=None,
    )
    random_state: Any = param(
        RANDOM_STATE, "Seed of the bags and of the members; the same ensemble whatever `n_jobs`.", default=None
    )
    verbose: int = param(
        Boolean() | Number(low=0, integer=True),
        "1 prints how many members are fitted from time to time (joblib's lines), more also a line for each.",
        default=0,
    )

    _target: ClassVar[Target]
    _default: ClassVar[str]  #: name of the class that `estimator=None` stands for

    n_features_in_: int = fitted("int", "Number of columns.")
    estimators_: list[Any] = fitted("list of estimators", "The members.")
    estimators_features_: list[Rows] = fitted("list of arrays", "The columns of each member.")
    oob_score_: float = fitted(
        "float", "With `oob_score`: accuracy or R² of the out-of-bag vote, on the rows out of some bag.", optional=True
    )
    _tags = tags(inner=lambda model: model._template())

    @shows_progress
    def fit(self, X: Any, y: Any, sample_weight: Any = None, **fit_params: Any) -> Self:
        """Fit every member on a bag of its own.

        Parameters
        ----------
        X : array, sparse array, dataframe, list of rows, path or Dask collection of shape (n_samples, n_features)
            Training data, in any form that the estimator takes; files and Dask are read into memory. With a
            `distributed.Client` the members are fitted on its workers, which each get a copy of the rows.
        y : array of shape (n_samples,) or (n_samples, n_targets), or str
            Labels or targets; with a dataframe or a path, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights: rows are drawn in proportion to them, so that a row of weight zero is never drawn.
        **fit_params : dict
            Metadata that the estimator asked for (`set_fit_request`); only with scikit-learn's
            `enable_metadata_routing=True`. Of what has an entry for each row, a member gets those of its bag.

        Returns
        -------
        self
            The fitted ensemble; as it was if a fit fails.
        """
        owner = type(self).__name__
        check_parameters(owner, self.get_params(deep=False), self._parameters)
        twin = clone(self)
        template = self._template()
        metadata = routed(self, template, "fit", fit_params)
        table = twin._read(X, y, sample_weight)._replace(metadata=metadata)
        old = self if self.warm_start and hasattr(self, "estimators_") else None
        if old is not None:
            self._check_warm_start(twin, table)
        n_rows = len(table.y)
        twin.seed_ = seed_of(self.random_state) if old is None else old.seed_
        twin.n_samples_ = n_rows
        if table.weight is not None and not self.bootstrap:
            warnings.warn(
                f"When fitting {owner} with sample_weight it is recommended to use bootstrap=True: weights are the "
                "chances of being drawn, and without replacement they count for less.",
                UserWarning,
                stacklevel=2,
            )
        twin.max_samples_ = bag_size(owner, self.max_samples, n_rows, self.bootstrap, table.weight)
        twin.sample_weight_ = table.weight
        if self.oob_score and not self.bootstrap and twin.max_samples_ == n_rows:
            raise ParameterError(
                f"{owner}: oob_score=True needs rows out of the bags, but bootstrap=False with max_samples="
                f"{self.max_samples!r} takes all {n_rows} rows. Set bootstrap=True or lower max_samples."
            )
        done = 0 if old is None else len(old.estimators_)
        drawn = [twin._draw_bag(member, table) for member in range(done, self.n_estimators)]
        bags = [rows for rows, _ in drawn]
        twin.attempts_ = np.array([*([] if old is None else old.attempts_), *(n for _, n in drawn)], dtype=np.int64)
        columns = [twin._columns(member) for member in range(done, self.n_estimators)]
        twin.counted_ = takes_counts(template)
        members = [
            Member(
                _seeded(template, twin.seed_, done + i),
                bags[i],
                columns[i],
                twin.counted_,
                f"Building estimator {done + i + 1} of {self.n_estimators}" if self.verbose > 1 else "",
            )
            for i in range(len(bags))
        ]
        if is_dask(X) and current_client() is not None:
            fitted = run_on_cluster(owner, current_client(), _fit_member, table, members)
        else:
            crew = Parallel(n_jobs=self.n_jobs, verbose=int(self.verbose))
            fitted = crew(delayed(_fit_member)(table, member) for member in members)
        twin.estimators_ = ([] if old is None else old.estimators_) + list(fitted)
        twin.estimators_features_ = ([] if old is None else old.estimators_features_) + columns
        if self.oob_score:
            twin._judge_out_of_bag(table)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        self.__dict__.update({name: value for name, value in vars(twin).items() if name.endswith("_")})
        return self

    def _read(self, X: Any, y: Any, sample_weight: Any) -> BagTable:
        owner = type(self).__name__
        X, y, sample_weight = take_named_columns(owner, *read_whole(owner, X, y, sample_weight))
        y = y if y is None else as_array(owner, read_values(owner, y), "y")
        several = self._target == "numeric" and y is not None and y.ndim == 2 and y.shape[1] > 1
        found, classes = read_target(owner, y, self._target, several)
        container = container_of(X)
        check_sparse(owner, X)
        rows = read_rows(owner, X, None, sample_weight)
        check_shape(owner, rows.X.shape, X)
        match_columns(self, rows.X, reset=True)
        if len(found) != rows.n_rows:
            raise DataError(
                f"{owner}: X and y have inconsistent numbers of samples: X has {rows.n_rows} rows, y has {len(found)}. "
                "Pass one target per row."
            )
        return BagTable(rows.X, found, rows.weight, classes, container)

    def _check_warm_start(self, twin: Any, table: BagTable) -> None:
        owner = type(self).__name__
        if twin.n_features_in_ != self.n_features_in_ or len(table.y) != self.n_samples_:
            raise DataError(
                f"{owner}: warm_start goes on with {self.n_samples_} rows and {self.n_features_in_} columns; "
                f"got {len(table.y)} and {twin.n_features_in_}. Set warm_start=False for another table."
            )
        more = self.n_estimators - len(self.estimators_)
        if more < 0:
            raise ParameterError(
                f"{owner}: n_estimators must be >= {len(self.estimators_)}, the number of members there are; got "
                f"{self.n_estimators}. Set warm_start=False to begin anew."
            )
        if more == 0:
            warnings.warn(
                "Warm-start fitting without increasing n_estimators does not fit new trees.", UserWarning, stacklevel=3
            )

    def _draw(self) -> Draw:
        return Draw(self.seed_, self.n_samples_, self.max_samples_, self.bootstrap, chances(self.sample_weight_))

    def _draw_bag(self, member: int, table: BagTable) -> tuple[Rows, int]:
        """Return the rows of a new member's bag, and how many bags were drawn before it and refused."""
        return draw_rows(self._draw(), member), 0

    def _bag(self, member: int) -> Rows:
        return draw_rows(self._draw(), member, int(self.attempts_[member]))

    def _columns(self, member: int) -> Rows:
        owner, d = type(self).__name__, self.n_features_in_
        most = self.max_features
        n_drawn = int(most) if isinstance(most, (int, np.integer)) else max(1, int(most * d))
        if n_drawn > d:
            raise ParameterError(f"{owner}: max_features must be <= {d}, the number of columns; got {most!r}.")
        return draw_columns(self.seed_, member, d, n_drawn, self.bootstrap_features)

    def _template(self) -> Any:
        return registered_class(self._default)() if self.estimator is None else self.estimator

    _judge_out_of_bag = hook("(table) → None")

    def _out_of_bag(self, table: BagTable) -> Iterator[tuple[Any, Rows, Any]]:
        """Yield each member, the rows that it has not seen, and these rows as it wants them."""
        for member, model in enumerate(self.estimators_):
            rows = out_of_bag(self._bag(member), self.n_samples_)
            if len(rows):
                part = take_columns(take_rows(table.X, rows), self.estimators_features_[member])
                yield model, rows, in_container(part, table.container)

    def _mean(self, ask: Callable[[Any, Any], Array], X: Any) -> Array:
        """Return the mean of what the members say, summed in their order."""
        check_is_fitted(self, "estimators_")
        answers = self._each(ask, X)
        total = next(answers).copy()
        for answer in answers:
            total += answer
        return total / len(self.estimators_)

    def _each(self, ask: Callable[[Any, Any], Array], X: Any) -> Iterator[Array]:
        """Yield what each member says of its columns of X, in the members' order whatever the number of threads."""
        container = container_of(X)
        check_sparse(type(self).__name__, X)
        X = read_rows(type(self).__name__, X).X
        check_shape(type(self).__name__, X.shape, X)
        match_columns(self, X, reset=False)
        jobs = (
            delayed(ask)(model, in_container(take_columns(X, columns), container))
            for model, columns in zip(self.estimators_, self.estimators_features_, strict=True)
        )
        yield from Parallel(n_jobs=self.n_jobs, prefer="threads", return_as="generator")(jobs)

    def get_metadata_routing(self) -> Any:
        """Return scikit-learn's router: which metadata go to which method of the members."""
        return router_of(self, self._template())

    def _routed(self, caller: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return routed(self, self._template(), caller, params)

    @property
    def estimators_samples_(self) -> list[NDArray[np.int64]]:
        """The rows of each member's bag, drawn again from the seed."""
        return [self._bag(member) for member in range(len(self.estimators_))]

    @property
    def estimator_(self) -> Any:
        """The estimator that the members are copies of."""
        check_is_fitted(self, "estimators_")
        return self._template()

    @property
    def certificate_(self) -> Certificate:
        """That of the member which is furthest from its tolerance, for the data of all; `none` if a member has none."""
        check_is_fitted(self, "estimators_")
        return combined_certificate(self.estimators_, getattr(self, "classes_", np.array([], dtype=np.int64)))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimators_")

    _laws = laws(
        law(
            "{owner}: estimators_ and estimators_features_ must have the same length",
            lambda bag: (
                isinstance(bag.estimators_, list)
                and isinstance(bag.estimators_features_, list)
                and len(bag.estimators_) == len(bag.estimators_features_) > 0
            ),
        ),
        law(
            "{owner}: estimators_ must be of the class of estimator",
            lambda bag: all(type(model) is type(bag._template()) for model in bag.estimators_),
        ),
        law(
            "{owner}: estimators_features_ must hold arrays of column numbers",
            lambda bag: all(is_array(own, (None,), np.int64) and own.size for own in bag.estimators_features_),
        ),
        law(
            "{owner}: the columns of a member do not fit the table or the member",
            lambda bag: all(
                own.min() >= 0 and own.max() < bag.n_features_in_ and model.n_features_in_ == own.size
                for model, own in zip(bag.estimators_, bag.estimators_features_, strict=True)
            ),
        ),
        law(
            "{owner}: seed_, n_samples_ and max_samples_ must be whole numbers",
            lambda bag: are_counts(bag, "seed_", "n_samples_", "max_samples_"),
        ),
        law(
            "{owner}: attempts_ must hold one whole number per member",
            lambda bag: is_array(bag.attempts_, (len(bag.estimators_),), np.int64),
        ),
        law(
            "{owner}: sample_weight_ must hold one weight per row",
            lambda bag: bag.sample_weight_ is None or bag.sample_weight_.shape == (bag.n_samples_,),
        ),
    )


def takes_counts(template: Any) -> bool:
    """Tell whether a row drawn twice may enter as one row of weight two: not if a transformer would see it as one."""
    parts = (value for value in template.get_params(deep=False).values() if not isinstance(value, type))
    takes = has_fit_parameter(template, "sample_weight") and asks_for_weights(template)
    return takes and not any(hasattr(part, "fit") for part in parts)


def bag_table(table: BagTable, rows: Rows, columns: Rows, weighs: bool) -> tuple[Any, NDArray[Any], Array | None]:
    """Return X, y and weights of a bag: its distinct rows and their counts, or the rows as they were drawn."""
    weight = None
    if weighs:
        rows, counts = np.unique(rows, return_counts=True)
        weight = None if (counts == 1).all() else counts.astype(np.float64)
    X = take_columns(take_rows(table.X, rows), columns)
    return in_container(X, table.container), table.y[rows], weight


def container_of(X: Any) -> Any:
    """Return the class of a sparse X in CSR or CSC form; of other forms, that of its CSR form; else None."""
    if not sp.issparse(X):
        return None
    if X.format in ("csr", "csc"):
        return type(X)
    return sp.csr_matrix if isinstance(X, sp.spmatrix) else sp.csr_array


def in_container(X: Any, container: Any) -> Any:
    """Return sparse rows as an object of this class; anything else as it is."""
    return X if container is None or isinstance(X, container) else container(X)


def check_sparse(owner: str, X: Any) -> None:
    """Raise DataError if a sparse X is damaged: taking rows of it follows its indices unchecked."""
    if sp.issparse(X):
        as_csr(owner, X)


def take_columns(X: Any, columns: Rows) -> Any:
    """Return some columns of X, in the container that X is; a column taken twice gets two names."""
    if np.array_equal(columns, np.arange(X.shape[1])):
        return X
    if not is_frame(X):
        return X[:, columns]
    frame = open_frame("take_columns", X)
    names = [frame.columns[column] for column in columns]
    shown = [name if names.index(name) == i else f"{name} ({i})" for i, name in enumerate(names)]
    return frame.select(*(nw.col(name).alias(new) for name, new in zip(names, shown, strict=True))).to_native()


def _fit_member(table: BagTable, member: Member) -> Any:
    model, rows, columns, weighs, words = member
    if words:
        print(words)
    X, y, weight = bag_table(table, rows, columns, weighs)
    given = of_rows(table.metadata, len(table.y), np.unique(rows) if weighs else rows)
    try:
        if weight is None:
            model.fit(X, y, **given)
        else:
            model.fit(X, y, sample_weight=weight, **given)
    except ValueError as error:
        if table.classes is None or len(table.classes) < 2 or np.ptp(y):
            raise
        raise DataError(
            f"BaggingClassifier: all bags of {len(rows)} rows that were drawn for a member had one class each, which "
            f"{type(model).__name__} refuses. Raise max_samples, or add rows of the rare class."
        ) from error
    return model  # what `fit` returns is not asked: it may be nothing


def _seeded(template: Any, seed: int, member: int) -> Any:
    """Return a copy of the template whose random states, its parts' too, are functions of the seed and the member."""
    model = clone(template)
    names = sorted(n for n in model.get_params(deep=True) if n == "random_state" or n.endswith("__random_state"))
    seeds = np.random.default_rng([seed, member, 2**33]).integers(2**31 - 1, size=len(names))
    return model.set_params(**{name: int(value) for name, value in zip(names, seeds, strict=True)})
