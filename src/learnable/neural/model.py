r"""What all network models share: parameters, training, prediction, files.

A model states its layers (`_layers`) and its head; the rest is here. Fitted parameters are one array `theta_` (members,
p) and, for batch normalisation, `buffers_`; networks are built from the constructor's arguments when they are needed,
so that a file holds numbers and no code.

Two ways to train:

- a stochastic optimiser of `solvers` on mini-batches, in float32: nothing is proven, the certificate records the
  gradient's size;
- `solver="lbfgs"`, or `polish=True` after the first, on all rows in float64: the certificate is `stationarity`, the
  largest entry of the gradient of the objective, with dropout off and running moments fixed.
"""

from __future__ import annotations

import math
import warnings
from types import SimpleNamespace
from typing import Any, NamedTuple, Self, cast

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.estimator import Certificate, Run
from ..core.threads import one_thread_blas
from ..data.blocks import map_reduce
from ..data.door import Table, read_features
from ..meta.splits import as_generator
from ..solvers.lab.first_order import Adam, Momentum, Nesterov, Rescale
from ..solvers.lab.steps import Constant, CosineDecay, OneCycle
from ..solvers.smooth.quasi_newton import lbfgs
from .heads import Head
from .layers.base import Layer
from .network import Network, row_blocks
from .objective import NetworkObjective
from .parameters import NetworkParameters
from .presets import effective, suit_rows
from .training import State, Stopping, TableRows, Trainer, warn_of_failure

Array = NDArray[Any]

#: Rows that the gradient of an unpolished fit is measured on: a fiftieth of those that training saw, within bounds.
_GRADIENT_ROWS = 256, 2048
_GRADIENT_SHARE = 50
#: A loss that has grown by this factor since the first batch has not grown by chance.
_GROWTH = 3.0
#: Entries of X that one thread predicts at a time.
_PREDICT_ENTRIES = 2**20


class Data(NamedTuple):
    """Training rows in the form of the network."""

    X: Any  #: (n, d) float, or CSR; (n, T, d) for sequences
    y: Array  #: (n, k) floats or (n,) codes
    weight: Array | None
    lengths: Array | None = None  #: (n,), of sequences

    def part(self, rows: Any) -> Data:
        """Return some rows."""
        weight = None if self.weight is None else self.weight[rows]
        return Data(self.X[rows], self.y[rows], weight, None if self.lengths is None else self.lengths[rows])


class NetworkModel(NetworkParameters):
    """Base of the models; not to be used directly."""

    _remedy = "raise max_iter, or scale the columns of X"

    # What a model states -------------------------------------------------------------------------------------------

    def _layers(self, settings: SimpleNamespace, n_inputs: int, n_outputs: int) -> list[Layer]:
        raise TypeError(f"{type(self).__name__} does not define _layers")

    def _head(self) -> Head:
        raise TypeError(f"{type(self).__name__} does not define _head")

    def _score_of(self, z: Array, y: Array, weight: Array | None) -> float:
        """Return the validation score of scores z: accuracy, or R²."""
        raise TypeError(f"{type(self).__name__} does not define _score_of")

    # Fitting -------------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array, sparse array, dataframe or list of shape (n_samples, n_features)
            Training data.
        y : array of shape (n_samples,) or (n_samples, n_outputs), or str
            Targets; with a dataframe, the name of a column.
        sample_weight : array of shape (n_samples,) or str, optional
            Non-negative weights of the rows.
        X_val, y_val : arrays, optional
            Rows for early stopping, instead of a share of X.
        """
        self._validation = (X_val, y_val)
        try:
            return cast(Self, super().fit(X, y, sample_weight))
        finally:
            del self._validation

    def _fit(self, table: Table, run: Run) -> Certificate:
        owner = type(self).__name__
        if not table.in_memory:
            raise DataError(f"{owner}: mini-batches are drawn from rows in memory; read the table into an array.")
        settings = effective(self)
        data = self._prepare(table, settings)
        previous = run.previous if self.warm_start and hasattr(run.previous, "theta_") else None
        if previous is not None:
            self._check_same_shape(previous, data, settings)
        self.seed_ = self._new_seed() if previous is None else previous.seed_
        with np.errstate(over="ignore", invalid="ignore"):  # losses that are not finite are looked for and reported
            return self._train(data, settings, previous, run)

    def _new_seed(self) -> int:
        return int(as_generator(self.random_state).integers(2**31))

    def _train(self, data: Data, settings: SimpleNamespace, previous: Any, run: Run) -> Certificate:
        suit_rows(settings, data.X.shape[0])
        stochastic = settings.solver != "lbfgs"
        single = stochastic if settings.dtype == "auto" else settings.dtype == "float32"
        network = self._network(settings, data, np.float32 if single else np.float64)
        self.n_layers_ = 1 + sum(1 for span in network.spans if span.item.role == "weight")
        head = self._head()
        train, held = self._set_aside(data, settings)
        members = [self._start_member(network, k, settings, previous, train) for k in range(settings.ensemble_size)]
        curves: list[Any] = []
        if stochastic:
            for k, state in enumerate(members):
                curves.append(self._train_member(network, head, k, state, train, held, settings, run))
        certificate = None
        self.gradient_ = None
        if not stochastic or settings.polish:
            network, members, certificate = self._finish(network, head, members, train, settings, run, curves)
        self._store(members, curves, settings)
        if certificate is None:
            value = self._gradient_size(network, head, members[0], train, settings)
            certificate = Certificate("none", value, self.tol, None, self.n_iter_)
        return certificate

    def _network(self, settings: SimpleNamespace, data: Any, dtype: Any) -> Network:
        n_outputs = self.n_outputs_
        return Network(self._layers(settings, data.X.shape[-1], n_outputs), data.X.shape[-1], dtype=dtype)

    def _start_member(self, network: Network, k: int, settings: SimpleNamespace, previous: Any, train: Data) -> State:
        dtype = network.dtype
        if previous is not None:
            arrays = (previous.theta_, previous.buffers_, previous.optimiser_v_, previous.optimiser_r_)
            theta, buffers, v, r = (np.array(a[k], dtype=dtype) for a in arrays)
            state = State(theta, buffers, v, r)
            state.t = previous.n_updates_
            state.epoch = previous.n_epochs_
            state.losses = list(previous.loss_curve_)
            return state
        init = settings.init
        if init == "glorot" and settings.activation == "logistic":
            init = "glorot_logistic"  # scikit-learn's smaller start of logistic units
        rows = None
        if init == "lsuv":
            rows = _dense_rows(train.X[: min(train.X.shape[0], 1024)], dtype)
            rows = np.ascontiguousarray(rows.transpose(1, 0, 2)) if rows.ndim == 3 else rows  # time comes first
        theta = network.start(np.random.default_rng([self.seed_, k]), init, rows)
        zeros = np.zeros_like(theta)
        return State(theta, network.start_buffers(), zeros, zeros.copy())

    def _train_member(
        self,
        network: Network,
        head: Head,
        k: int,
        state: State,
        train: Data,
        held: Data | None,
        settings: SimpleNamespace,
        run: Run,
    ) -> SimpleNamespace:
        """Train one network; return its curves."""
        source = self._source(train, network.dtype)
        n = source.n_rows
        batch = min(200, n) if settings.batch_size == "auto" else min(settings.batch_size, n)
        if self.batch_size != "auto" and self.batch_size > n:
            warnings.warn(
                f"{type(self).__name__}: batch_size={self.batch_size} is larger than the {n} rows; it is clipped.",
                UserWarning,
                stacklevel=5,
            )
        steps = settings.max_iter * -(-n // batch)
        trainer = Trainer(
            network,
            head,
            state,
            self._update(settings),
            self._rule(settings, steps),
            batch_size=batch,
            seed=(self.seed_, k),
            alpha=settings.alpha,
            decoupled=settings.weight_decay,
            clip=Rescale(float(settings.clip)) if isinstance(settings.clip, (int, float)) else settings.clip,
            shuffle=settings.shuffle,
            n_steps=math.prod(np.atleast_1d(source.lead(1))),
            n_jobs=self.n_jobs,
        )
        by_loss = settings.early_stopping == "loss"
        stopping = Stopping(settings.tol, settings.n_iter_no_change, maximise=held is not None and not by_loss)
        scores: list[float] = []
        losses: list[float] = []
        best = state.theta.copy(), state.buffers.copy()
        best_loss = math.inf
        plain = settings.solver == "sgd"
        seen = 0
        ended = False
        for epoch in range(settings.max_iter):
            loss = trainer.run_epoch(source, run.should_stop)
            if trainer.failed is not None:
                warn_of_failure(type(self).__name__, trainer.failed)
                ended = True
                break
            losses.append(loss)
            best_loss = min(best_loss, loss)
            seen += n
            watched = loss
            if held is not None:
                watched = self._watch(network, head, state, held, by_loss)
                scores.append(watched)
            if stopping.sees(watched) and held is not None:
                np.copyto(best[0], state.theta)
                np.copyto(best[1], state.buffers)
            if self.verbose:
                print(f"Iteration {epoch + 1}, loss = {loss:.8f}")
            if plain and settings.learning_rate == "invscaling":
                trainer.rate_scale = 1.0 / (seen + 1) ** settings.power_t
            if run.progress(epoch + 1, loss):
                ended = True
                break
            if stopping.is_over:
                if (
                    plain
                    and settings.learning_rate == "adaptive"
                    and trainer.rate_scale > 1e-6 / settings.learning_rate_init
                ):
                    trainer.rate_scale /= 5.0
                    stopping.waited = 0
                    continue
                if self.verbose:
                    what = "Training loss" if held is None else "Validation score"
                    print(
                        f"{what} did not improve more than tol={settings.tol:f} for "
                        f"{settings.n_iter_no_change} consecutive epochs. Stopping."
                    )
                ended = True
                break
        if held is not None and scores:
            np.copyto(state.theta, best[0])
            np.copyto(state.buffers, best[1])
        first = trainer.first_loss
        if first is not None and trainer.last_loss > _GROWTH * abs(first):
            ended = True
            warnings.warn(
                f"{type(self).__name__}: the loss is {trainer.last_loss:.3g}, and was {first:.3g} before the first "
                f"step: steps are too long. Lower learning_rate_init={settings.learning_rate_init:g}, clip gradients "
                "(clip=1.0), or scale the columns of X.",
                ConvergenceWarning,
                stacklevel=5,
            )
        scheduled = settings.preset is not None or settings.learning_rate in ("cosine", "one_cycle")
        if not ended and not run.told_to_stop and not scheduled and not settings.polish:
            warnings.warn(
                f"{type(self).__name__}: Stochastic Optimizer: Maximum iterations ({settings.max_iter}) reached and "
                "the optimization hasn't converged yet; raise max_iter.",
                ConvergenceWarning,
                stacklevel=5,
            )
        return SimpleNamespace(losses=losses, scores=scores, best_loss=best_loss, seen=seen, by_loss=by_loss)

    def _source(self, train: Any, dtype: Any) -> Any:
        with np.errstate(over="ignore"):
            X = train.X if sp.issparse(train.X) else np.ascontiguousarray(train.X, dtype=dtype)
        if not sp.issparse(X) and X is not train.X and not np.isfinite(X).all():
            raise DataError(_NOT_FINITE.format(owner=type(self).__name__))  # beyond the range of float32
        y = train.y if train.y.dtype.kind in "iu" else np.ascontiguousarray(train.y, dtype=dtype)
        weight = None if train.weight is None else train.weight.astype(dtype)
        return TableRows(X, y, weight, dtype)

    def _watch(self, network: Network, head: Head, state: State, held: Data, by_loss: bool) -> float:
        z = network.predict(state.theta, _dense_rows(held.X, network.dtype), buffers=state.buffers)
        if by_loss:
            weight = np.ones(len(z)) if held.weight is None else held.weight
            y = held.y if held.y.dtype.kind in "iu" else held.y.astype(network.dtype)
            scratch = np.empty_like(z)
            return head.evaluate(z, y, weight.astype(network.dtype), 1.0 / float(weight.sum()), scratch)
        return self._score_of(z, held.y, held.weight)

    def _update(self, settings: SimpleNamespace) -> Any:
        if settings.solver == "adam":
            return Adam(settings.beta_1, settings.beta_2, settings.epsilon)
        if settings.solver == "sgd":
            alpha = min(settings.momentum, 1.0 - 1e-12)
            return Nesterov(alpha) if settings.nesterovs_momentum else Momentum(alpha)
        return settings.solver

    def _rule(self, settings: SimpleNamespace, steps: int) -> Any:
        rate = settings.learning_rate_init
        if hasattr(settings.learning_rate, "begin"):
            return settings.learning_rate
        if settings.learning_rate == "cosine":
            return CosineDecay(rate, steps)
        if settings.learning_rate == "one_cycle":
            return OneCycle(rate, steps)
        return Constant(rate)

    def _finish(
        self,
        network: Network,
        head: Head,
        members: list[State],
        train: Data,
        settings: SimpleNamespace,
        run: Run,
        curves: list[Any],
    ) -> tuple[Network, list[State], Certificate]:
        """Minimise the objective over all rows by L-BFGS, from where each member stands; certify the worst."""
        exact = Network(network.layers, network.n_inputs, dtype=np.float64)
        worst = 0.0
        n_iter = 0
        finished = []
        gradients = []
        for k, state in enumerate(members):
            buffers = state.buffers.astype(np.float64)
            f = self._objective(exact, train, head, settings, buffers)
            curve: list[float] = []

            def look(iteration: int, value: float, f: Any = f, curve: list[float] = curve) -> bool:
                curve.append(f.last_value)
                over = f.evaluations >= getattr(settings, "max_fun", math.inf)
                return bool(run.progress(iteration, value) or over)

            with one_thread_blas():
                found = lbfgs(f, state.theta.astype(np.float64), tol=self.tol, max_iter=self.max_iter, progress=look)
            worst = max(worst, found.measure)
            n_iter = max(n_iter, found.n_iter)
            if not (np.isfinite(found.x).all() and np.isfinite(found.value)):
                raise DataError(_NOT_FINITE.format(owner=type(self).__name__))
            gradients.append(found.gradient)
            finished.append(State(found.x, buffers, state.v.astype(float), state.r.astype(float), state.t, state.epoch))
            if len(curves) <= k:
                seen = found.n_iter * train.X.shape[0]
                curves.append(
                    SimpleNamespace(losses=curve or [found.value], scores=[], best_loss=found.value, seen=seen)
                )
            curves[k].losses[-1] = found.value
            curves[k].best_loss = min(curves[k].best_loss, found.value)
            curves[k].n_iter = found.n_iter if settings.solver == "lbfgs" else len(curves[k].losses)
        self.gradient_ = np.stack(gradients)
        return exact, finished, Certificate("stationarity", worst, self.tol, None, max(n_iter, 1))

    def _objective(
        self, network: Network, train: Data, head: Head, settings: SimpleNamespace, buffers: Array
    ) -> CountedObjective:
        y = train.y if train.y.dtype.kind in "iu" else train.y.astype(network.dtype)
        return CountedObjective(network, train.X, y, head, weight=train.weight, alpha=settings.alpha, buffers=buffers)

    def _gradient_size(
        self, network: Network, head: Head, state: State, train: Data, settings: SimpleNamespace
    ) -> float:
        fewest, most = _GRADIENT_ROWS
        part = train.part(slice(0, min(max(self.t_ // _GRADIENT_SHARE, fewest), most)))
        with one_thread_blas():
            f = self._objective(network, part, head, settings, state.buffers)
            return float(f.evaluate(state.theta).measure)

    def _store(self, members: list[State], curves: list[Any], settings: SimpleNamespace) -> None:
        self.theta_ = np.stack([state.theta for state in members])
        self.buffers_ = np.stack([state.buffers for state in members])
        self.optimiser_v_ = np.stack([state.v for state in members])
        self.optimiser_r_ = np.stack([state.r for state in members])
        self.n_updates_ = int(members[0].t)
        self.n_epochs_ = int(members[0].epoch)
        if not np.isfinite(self.theta_).all():
            raise DataError(_NOT_FINITE.format(owner=type(self).__name__))
        first = curves[0]
        self.n_iter_ = max(1, int(getattr(first, "n_iter", len(first.losses))))
        self.t_ = int(getattr(self, "t_", 0) + first.seen)
        self.loss_curve_ = [*getattr(self, "_earlier_losses", []), *(float(v) for v in first.losses)]
        self.loss_ = float(first.losses[-1]) if first.losses else math.nan
        stops = bool(settings.early_stopping) and settings.solver != "lbfgs"
        self.best_loss_ = None if stops else float(first.best_loss)
        self.validation_scores_ = [float(v) for v in first.scores] if stops else None
        better = min if getattr(first, "by_loss", False) else max
        self.best_validation_score_ = float(better(first.scores)) if stops and first.scores else None

    def _set_aside(self, data: Data, settings: SimpleNamespace) -> tuple[Data, Data | None]:
        """Return the rows to train on and those that decide when to stop."""
        if not settings.early_stopping or settings.solver == "lbfgs":
            return data, None
        X_val, y_val = getattr(self, "_validation", (None, None))
        if X_val is not None:
            return data, self._given_validation(X_val, y_val, settings)
        n = data.X.shape[0]
        wanted = math.ceil(settings.validation_fraction * n)
        if wanted < 2 or n - wanted < 1:
            raise DataError(
                f"{type(self).__name__}: The validation set is too small: {wanted} of {n} rows. Increase "
                "'validation_fraction' or the size of your dataset."
            )
        rng = np.random.default_rng([self.seed_, 2**20])
        held = np.zeros(n, dtype=bool)
        held[_spread_over_classes(data.y, wanted, rng)] = True
        return data.part(~held), data.part(held)

    def _given_validation(self, X_val: Any, y_val: Any, settings: SimpleNamespace) -> Data:
        raise TypeError(f"{type(self).__name__} does not define _given_validation")

    def _prepare(self, table: Table, settings: SimpleNamespace) -> Data:
        raise TypeError(f"{type(self).__name__} does not define _prepare")

    def _check_same_shape(self, previous: Any, data: Data, settings: SimpleNamespace) -> None:
        owner = type(self).__name__
        classes = getattr(previous, "classes_", None)
        if classes is not None and not np.array_equal(classes, self.classes_):
            raise DataError(
                f"{owner}: warm_start can only be used where `y` has the same classes as in the previous call to fit. "
                f"Previously got {classes}, `y` has {self.classes_}."
            )
        if previous.n_outputs_ != self.n_outputs_ or previous.n_features_in_ != data.X.shape[-1]:
            raise DataError(
                f"{owner}: warm_start goes on from a network with {previous.n_features_in_} inputs and "
                f"{previous.n_outputs_} outputs, and the data ask for {data.X.shape[-1]} and {self.n_outputs_}. Pass "
                "data of the same shape, or set warm_start=False."
            )
        network = self._network(settings, data, np.float32)
        if len(previous.theta_) != settings.ensemble_size or previous.theta_.shape[1] != network.n_parameters:
            raise ParameterError(
                f"{owner}: warm_start needs the layers of the last fit; they have changed. Set warm_start=False."
            )
        self._earlier_losses = list(previous.loss_curve_)
        self.t_ = previous.t_

    # Learning on ---------------------------------------------------------------------------------------------------

    def _partial_fit(self, table: Any, draft: Any, known: bool) -> None:
        """Make one epoch over the rows of a table; the optimiser's memory is kept."""
        settings = effective(draft)
        if settings.early_stopping:
            raise DataError(
                f"{type(self).__name__}: partial_fit does not support early_stopping=True; stop when your own "
                "validation score does."
            )
        settings.max_iter = 1
        settings.ensemble_size = 1
        settings.polish = False
        settings.n_iter_no_change = math.inf
        data = draft._prepare(table, settings)
        run = Run(None)
        if known:
            draft._check_same_shape(self, data, settings)
            draft.seed_ = self.seed_
        else:
            draft.seed_ = draft._new_seed()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            warnings.simplefilter("ignore", UserWarning)
            certificate = draft._train(data, settings, self if known else None, run)
        draft.certificate_ = certificate
        draft.__dict__.pop("_earlier_losses", None)
        self.__dict__.update(draft.__dict__)

    # Prediction ----------------------------------------------------------------------------------------------------

    def _built(self) -> Network:
        """Return the fitted network."""
        settings = effective(self)
        n_inputs = self.n_features_in_
        return Network(self._layers(settings, n_inputs, self.n_outputs_), n_inputs, dtype=self.theta_.dtype)

    def _scores(self, X: Any) -> Array:
        """Return the scores of every member (members, n, k)."""
        check_is_fitted(self, "theta_")
        rows = read_features(self, X)
        network = self._built()
        n = rows.shape[0]
        out = np.empty((len(self.theta_), n, self.n_outputs_), dtype=self.theta_.dtype)
        block = max(1, _PREDICT_ENTRIES // max(1, max(network.widths)))

        def fill(part: slice) -> None:
            some = self._inputs(_dense_rows(rows[part], self.theta_.dtype))
            for k, theta in enumerate(self.theta_):
                out[k, part] = network.predict(theta, some, buffers=self.buffers_[k])

        map_reduce(list(row_blocks(n, block)), fill, lambda a, b: None, n_jobs=self.n_jobs)
        return out

    def _inputs(self, X: Array) -> Array:
        """Return rows as the network sees them; presets scale them."""
        return X

    @property
    def coefs_(self) -> list[Array]:
        """Weight matrices of the (first) network, layer by layer."""
        return self._arrays("W")

    @property
    def intercepts_(self) -> list[Array]:
        """Biases of the (first) network, layer by layer."""
        return self._arrays("b")

    def _arrays(self, name: str) -> list[Array]:
        if "theta_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no {name} before fit")
        network = self._built()
        spans = sorted((s for s in network.spans if s.item.name.split(".")[-1] == name), key=lambda s: s.layer)
        return [self.theta_[0, s.place].reshape(s.item.shape) for s in spans]

    def _check_loaded(self) -> None:
        super()._check_loaded()
        network = self._built()
        shape = (effective(self).ensemble_size, network.n_parameters)
        if self.theta_.shape != shape or self.buffers_.shape != (shape[0], network.n_buffers):
            raise ModelFileError(
                f"load: theta_ has shape {self.theta_.shape}, and the layers of {type(self).__name__} need {shape}."
            )
        if self.theta_.dtype != self.buffers_.dtype:
            raise ModelFileError("load: theta_ and buffers_ have different dtypes.")


class CountedObjective(NetworkObjective):
    """An objective that counts its evaluations and remembers the last value; its measure is max|∂f/∂θ|."""

    evaluations = 0
    last_value = math.nan

    def evaluate(self, theta: Array) -> Any:
        """Return value, gradient and measure."""
        self.evaluations += 1
        found = super().evaluate(theta)
        self.last_value = found.value
        finite = math.isfinite(found.value) and bool(np.isfinite(found.gradient).all())
        steepest = float(np.abs(found.gradient).max(initial=0.0)) if finite else math.inf
        return found._replace(measure=steepest)


_NOT_FINITE = (
    "{owner}: Solver produced non-finite parameter weights. The input data may contain large values and need to be "
    "preprocessed: scale the columns of X, or lower learning_rate_init."
)


def _dense_rows(X: Any, dtype: Any) -> Array:
    rows = X.toarray() if sp.issparse(X) else X
    return np.ascontiguousarray(rows, dtype=dtype)


def _spread_over_classes(y: Array, wanted: int, rng: np.random.Generator) -> Array:
    """Return row numbers to set aside: of codes, about the same share of every class."""
    order = rng.permutation(len(y))
    if y.ndim == 2 and (y.shape[1] > 1 or len(np.unique(y[:, 0])) > 2):
        return order[:wanted]
    codes = y if y.ndim == 1 else y[:, 0].astype(np.int64)
    shuffled = codes[order]
    by_class = np.argsort(shuffled, kind="stable")
    counts = np.bincount(shuffled.astype(np.int64))
    place = np.concatenate([(np.arange(c) + 0.5) / c for c in counts if c])
    return order[by_class[np.argsort(place, kind="stable")[:wanted]]]
