r"""Recurrent models: sequences in, one answer at the end of each or one at every step.

    states h₁ … h_T by recurrent layers (`neural.layers.recurrent`),   z = h W + b at the last step, or at each

Trained by back-propagation through time, over all steps or cut at every `truncation`-th one, with gradients rescaled to
length `clip`. Objective and penalty are those of the perceptrons (`neural.mlp`), with a sum over steps too where every
step has a target. `solver="lbfgs"`, or `polish=True` after a stochastic fit, uses all sequences at once in float64; its
certificate is `stationarity`. Otherwise nothing is proven, and the certificate records the gradient's size.

Reference: I. Goodfellow, Y. Bengio and A. Courville, Deep Learning, 2016, chapter 10.
"""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from ..core.declare import Number, Options, check_parameters, fitted, optional, param
from ..core.errors import DataError, ModelFileError, ParameterError
from ..core.threads import one_thread_blas
from ..data.blocks import map_reduce
from ..data.door import Table, check_two_classes, door, encode_classes, read_features
from .heads import Head
from .layers.base import Layer
from .layers.dense import Dense
from .layers.lstm import LSTM
from .layers.recurrent import GRU, LastStep, Recurrent
from .layers.regularise import Dropout
from .model import CountedObjective, Data, NetworkModel
from .network import Network, Tape, row_blocks
from .parameters import CLIP
from .presets import effective
from .sequence_data import Sequences, check_lengths, is_plain_table, read_sequences
from .targets import ClassTargets, NumberTargets
from .training import SequenceRows, State

Array = NDArray[Any]

#: Numbers of the widest layer that one thread predicts at a time.
_PREDICT_ENTRIES = 2**22
#: Steps of sequences that the gradient of a fit is measured on.
_GRADIENT_STEPS = 2**13


class _Recurrences(NetworkModel):
    """What the models of sequences share."""

    units: int = param(Number(low=1, integer=True), "Units of each recurrent layer.", default=32, kw_only=False)
    n_recurrent_layers: int = param(Number(low=1, integer=True), "Recurrent layers.", default=1)
    predicts: str = param(
        Options("end", "every_step"), "Whether y has one target for each sequence, or one for each step.", default="end"
    )
    truncation: int | None = param(
        optional(Number(low=1, integer=True)), "No gradient passes back at every k-th step.", default=None
    )
    dropout: float = param(
        Number(low=0.0, high=1.0, high_open=True), "Share of states that training drops after a layer.", default=0.0
    )
    clip: Any = param(
        optional(Number(low=0.0, low_open=True) | CLIP),
        "Clipping of gradients: `Rescale(c)` or `Truncate(c)` of `solvers`; a number is `Rescale`.",
        default=1.0,
    )
    init: str = param(NetworkModel._parameters["init"], "How weights start; see `neural.initial`.", default="uniform")
    batch_size: Any = param(
        Options("auto") | Number(low=1, integer=True),
        "Sequences of a batch; auto: 64, or all if fewer.",
        default="auto",
    )
    n_inputs_: int = fitted("int", "Numbers of one step.")

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        lengths: Any = None,
        X_val: Any = None,
        y_val: Any = None,
    ) -> Self:
        """Fit the network.

        Parameters
        ----------
        X : array (n, T, d), list of arrays (Tᵢ, d), or table (n, T)
            Sequences; rows of a table are series of one number.
        y : array of shape (n,) or (n, k); with `predicts="every_step"` (n, T), (n, T, k), or a list of arrays
            Targets.
        sample_weight : array of shape (n,), optional
            Non-negative weights of the sequences.
        lengths : array of n integers, optional
            Steps of each sequence of an array.
        X_val, y_val : optional
            Sequences for early stopping, instead of a share of X.
        """
        self._lengths = lengths
        try:
            return super().fit(X, y, sample_weight, X_val=X_val, y_val=y_val)
        finally:
            self.__dict__.pop("_lengths", None)
            self.__dict__.pop("_ends", None)
            self.__dict__.pop("_step_classes", None)

    def _cell(self, settings: SimpleNamespace) -> Layer:
        raise TypeError(f"{type(self).__name__} does not define _cell")

    def _layers(self, settings: SimpleNamespace, n_inputs: int, n_outputs: int) -> list[Layer]:
        layers: list[Layer] = []
        for _ in range(settings.n_recurrent_layers):
            layers.append(self._cell(settings))
            if settings.dropout > 0.0:
                layers.append(Dropout(settings.dropout))
        end = [LastStep()] if settings.predicts == "end" else []
        return [*layers, *end, Dense(n_outputs)]

    def _described(self) -> list[tuple[Any, ...]]:
        """Return the layers as plain words and sizes, for the independent check."""
        widths = [self.n_inputs_, *[self.units] * self.n_recurrent_layers]
        kind = getattr(self, "cell", "lstm")
        return [*((kind, d, self.units) for d in widths[:-1]), ("dense", self.units, self.n_outputs_)]

    def _built(self) -> Network:
        layers = self._layers(effective(self), self.n_inputs_, self.n_outputs_)
        return Network(layers, self.n_inputs_, dtype=self.theta_.dtype)

    def _as_sequences(self, data: Data) -> Data:
        """Return the data of a table's door with X as (n, T, d)."""
        rows = np.asarray(data.X, dtype=np.float64)
        X = rows.reshape(len(rows), -1, self.n_inputs_)
        return Data(X, data.y, data.weight, self._ends)

    def _source(self, train: Data, dtype: Any) -> SequenceRows:
        X = np.asarray(train.X, dtype=dtype)
        if not np.isfinite(X).all():
            raise DataError(
                f"{type(self).__name__}: X has numbers beyond the range of {np.dtype(dtype).name}; scale it."
            )
        y = train.y if train.y.dtype.kind in "iu" else np.ascontiguousarray(train.y, dtype=dtype)
        weight = None if train.weight is None else train.weight.astype(dtype)
        ends = np.full(len(train.X), train.X.shape[1]) if train.lengths is None else train.lengths
        return SequenceRows(X, y, weight, ends, dtype, self.predicts == "every_step")

    def _train(self, data: Data, settings: SimpleNamespace, previous: Any, run: Any) -> Any:
        if settings.batch_size == "auto":
            settings.batch_size = min(64, len(data.X))
        exact = settings.solver == "lbfgs" or settings.polish
        if exact and settings.truncation is not None:
            raise ParameterError(
                f"{type(self).__name__}: solver='lbfgs' and polish=True need the whole gradient, and truncation="
                f"{settings.truncation} leaves a part of it out. Set truncation=None."
            )
        if settings.solver == "lbfgs" and settings.dropout > 0.0:
            raise ParameterError(
                f"{type(self).__name__}: solver='lbfgs' needs a function that does not change from call to call; "
                "dropout does. Use solver='adam', or dropout=0."
            )
        return super()._train(data, settings, previous, run)

    def _member_scores(self, network: Network, theta: Array, buffers: Array, rows: Data) -> Array:
        """Return the scores (n, k), or (n, T, k), of padded sequences."""
        n, T, _ = rows.X.shape
        size = max(1, _PREDICT_ENTRIES // (T * 4 * max(network.widths)))
        every = self.predicts == "every_step"
        out = np.empty((n, T, self.n_outputs_) if every else (n, self.n_outputs_), dtype=network.dtype)

        def fill(block: slice) -> None:
            x = np.ascontiguousarray(rows.X[block].transpose(1, 0, 2), dtype=network.dtype)
            lengths = None if rows.lengths is None else rows.lengths[block]
            z = network.predict(theta, x, buffers=buffers, lengths=lengths)
            out[block] = z.transpose(1, 0, 2) if every else z

        map_reduce(list(row_blocks(n, size)), fill, lambda a, b: None, n_jobs=self.n_jobs)
        return out

    def _watch(self, network: Network, head: Head, state: State, held: Data, by_loss: bool) -> float:
        z = self._member_scores(network, state.theta, state.buffers, held)
        y = held.y
        weight = held.weight
        if z.ndim == 3:
            inside = np.arange(z.shape[1]) < held.lengths[:, None]  # type: ignore[index]
            weight = None if weight is None else np.repeat(weight, inside.sum(axis=1))
            z = z[inside]
            y = y[inside]
        if not by_loss:
            return self._score_of(z, y, weight)
        w = np.ones(len(z)) if weight is None else weight
        y = y if y.dtype.kind in "iu" else np.ascontiguousarray(y, dtype=network.dtype)
        scratch = np.empty_like(z)
        return head.evaluate(np.ascontiguousarray(z), y, w.astype(network.dtype), 1.0 / float(w.sum()), scratch)

    def _gradient_size(
        self, network: Network, head: Head, state: State, train: Data, settings: SimpleNamespace
    ) -> float:
        steps = max(1, train.X.shape[1])
        part = train.part(slice(0, max(1, _GRADIENT_STEPS // steps)))
        with one_thread_blas():
            return float(self._objective(network, part, head, settings, state.buffers).evaluate(state.theta).measure)

    def _objective(
        self, network: Network, train: Data, head: Head, settings: SimpleNamespace, buffers: Array
    ) -> SequenceObjective:
        source = self._source(train, network.dtype)
        size = max(1, _PREDICT_ENTRIES // (train.X.shape[1] * 4 * max(network.widths)))
        return SequenceObjective(network, source, head, settings.alpha, size)

    def _read(self, X: Any, lengths: Any) -> Data:
        """Return sequences to predict for."""
        check_is_fitted(self, "theta_")
        owner = type(self).__name__
        if is_plain_table(X):
            if self.n_inputs_ != 1 or (self.n_features_in_ == 1 and np.ndim(X) == 3):
                raise DataError(
                    f"{owner}: X is a table; the model was fitted to sequences of {self.n_inputs_} numbers per step. "
                    "Pass an array (n, T, d) or a list of arrays (T, d)."
                )
            rows = np.asarray(read_features(self, X, sparse=False), dtype=np.float64)[:, :, None]
            return Data(rows, np.empty(0), None, check_lengths(owner, lengths, len(rows), rows.shape[1]))
        found = read_sequences(owner, X, lengths)
        if found.X.shape[2] != self.n_inputs_:
            raise DataError(
                f"{owner}: X has {found.X.shape[2]} features, but {owner} is expecting {self.n_inputs_} features as "
                "input. Pass the columns of the fit."
            )
        return Data(found.X, np.empty(0), None, found.lengths)

    def _sequence_scores(self, X: Any, lengths: Any) -> tuple[Array, Data]:
        rows = self._read(X, lengths)
        built = self._built()
        # In double precision: with single, the last digits of a row would depend on the rows that stand beside it.
        network = Network(built.layers, built.n_inputs, dtype=np.float64)
        members = zip(self.theta_.astype(np.float64), self.buffers_.astype(np.float64), strict=True)
        return np.stack([self._member_scores(network, t, b, rows) for t, b in members]), rows

    def _scores(self, X: Any) -> Array:
        return self._sequence_scores(X, None)[0]

    def _as_given(self, answers: Array, X: Any, rows: Data) -> Any:
        """Return answers for every step as a list, each as long as its sequence, if X was a list of arrays."""
        if self.predicts == "end" or not isinstance(X, (list, tuple)) or is_plain_table(X):
            return answers
        return [answer[:end] for answer, end in zip(answers, rows.lengths, strict=True)]  # type: ignore[arg-type]

    def _check_loaded(self) -> None:
        if self.n_inputs_ not in (1, self.n_features_in_):
            raise ModelFileError(f"load: n_inputs_ is {self.n_inputs_}, with {self.n_features_in_} features.")
        super()._check_loaded()


class SequenceObjective(CountedObjective):
    """f(θ) over all sequences, Σ wV/Σ w + ½α‖W‖²/Σ w; with a target for every step, w counts each step."""

    def __init__(self, network: Network, source: SequenceRows, head: Head, alpha: float, block: int) -> None:
        self.network = network
        self.head = head
        self.alpha = alpha
        rows = source.take(np.arange(source.n_rows))
        self._blocks = [source.cut(rows, part.start, part.stop) for part in row_blocks(source.n_rows, block)]
        self._theta = np.empty(network.n_parameters, dtype=network.dtype)
        self._by_size: dict[tuple[int, ...], Tape] = {}

    def _sums(self, theta: Array, rows: Any, *, wants_gradient: bool) -> tuple[float, Array]:
        np.copyto(self._theta, theta, casting="same_kind")
        weights = [np.ones(len(y), dtype=self.network.dtype) if w is None else w for _, y, w, _ in self._blocks]
        total = float(sum(w.sum(dtype=np.float64) for w in weights))
        value = 0.0
        gradient = np.zeros(self.network.n_parameters)
        for (x, y, _, lengths), weight in zip(self._blocks, weights, strict=True):
            lead = x.shape[:2]
            if lead not in self._by_size:
                self._by_size[lead] = self.network.open(self._theta, lead)
            tape = self._by_size[lead]
            tape.set_lengths(lengths)
            z = tape.forward(x)
            slope = np.empty_like(z)
            flat = z.reshape(-1, z.shape[-1])
            value += self.head.evaluate(flat, y, weight, 1.0 / total, slope.reshape(flat.shape))
            if wants_gradient:
                gradient += tape.backward(slope)
        W = np.asarray(theta[: self.network.n_decayed], dtype=np.float64)
        value += 0.5 * self.alpha * float(W @ W) / total
        gradient[: self.network.n_decayed] += self.alpha * W / total
        return value, gradient


def sequence_door(target: str) -> Callable[..., Table]:
    """Return the door of models of sequences: tables as they are, other sequences padded and laid flat."""
    plain = door(target=target, sparse=False, multi_output=True, one_class=True)  # type: ignore[arg-type]
    steps = door(target="numeric", sparse=False, multi_output=True)

    def read(model: Any, X: Any, y: Any = None, sample_weight: Any = None, run: Any = None) -> Table:
        owner = type(model).__name__
        lengths = getattr(model, "_lengths", None)
        found: Sequences | None = None
        flat = X
        if not is_plain_table(X):
            found = read_sequences(owner, X, lengths)
            flat = found.X.reshape(len(found.X), -1)
        if model.predicts == "every_step":
            y = model._read_steps(y, found, flat)
        table = (steps if model.predicts == "every_step" else plain)(model, flat, y, sample_weight, run)
        T = table.n_columns if found is None else found.X.shape[1]
        n_given = table.n_rows if table.kept is None else len(table.kept)
        ends = check_lengths(owner, lengths, n_given, T) if found is None else found.lengths
        model.n_inputs_ = 1 if found is None else found.X.shape[2]
        if found is not None:
            model.n_features_in_ = model.n_inputs_
        model._ends = ends if table.kept is None else ends[table.kept]
        return table

    return read


def _stack_steps(owner: str, y: Any, n: int, T: int) -> list[Array]:
    """Return the targets of every step as one array for each sequence."""
    if y is None:
        raise DataError(f"{owner}: requires y to be passed, but the target y is None. Pass one target for each step.")
    items = [np.asarray(item) for item in y]
    if len(items) != n or any(item.ndim == 0 or len(item) > T for item in items):
        raise DataError(f"{owner}: y must have the steps of X: {n} sequences of at most {T} steps; got {len(items)}.")
    return items


class _SequenceClassifier(ClassifierMixin, _Recurrences, ClassTargets):
    """Labels of sequences."""

    class_weight: Any = param(
        ClassTargets.CLASS_WEIGHT, "Weights of the classes; `balanced`: all classes weigh the same.", default=None
    )

    _door = staticmethod(sequence_door("classes"))

    def _read_steps(self, y: Any, found: Sequences | None, X: Any) -> Array:
        n, T = (len(X), np.shape(X)[1]) if found is None else found.X.shape[:2]
        items = _stack_steps(type(self).__name__, y, n, T)
        codes, self._step_classes = encode_classes(type(self).__name__, np.concatenate(items))
        check_two_classes(type(self).__name__, self._step_classes)
        padded = np.zeros((n, T))
        at = 0
        for k, item in enumerate(items):
            padded[k, : len(item)] = codes[at : at + len(item)]
            at += len(item)
        return padded

    def _prepare(self, table: Table, settings: SimpleNamespace) -> Data:
        if settings.predicts == "end":
            return self._as_sequences(super()._prepare(table, settings))
        if self.class_weight is not None:
            raise ParameterError(f"{type(self).__name__}: class_weight needs predicts='end'; use sample_weight.")
        self.multilabel_ = False
        self.classes_ = self._step_classes
        self.center_ = None
        self.scale_ = None
        self.edges_ = None
        K = len(self.classes_)
        self.n_outputs_ = 1 if K == 2 else K
        self.out_activation_ = "logistic" if K == 2 else "softmax"
        y = table.y[:, :, None] if K == 2 else table.y.astype(np.int64)
        return self._as_sequences(Data(table.X, y, table.weight))

    def _given_validation(self, X_val: Any, y_val: Any, settings: SimpleNamespace) -> Data:
        if settings.predicts != "end":
            raise ParameterError(f"{type(self).__name__}: X_val needs predicts='end'; use validation_fraction.")
        rows = self._read_validation(X_val)
        codes, classes = encode_classes(type(self).__name__, np.asarray(y_val))
        codes = self._codes_among(self.classes_, classes, codes)
        return rows._replace(y=codes[:, None].astype(float) if self.n_outputs_ == 1 else codes)

    def _read_validation(self, X: Any) -> Data:
        found = read_sequences(type(self).__name__, np.asarray(X)[:, :, None] if is_plain_table(X) else X)
        return Data(found.X, np.empty(0), None, found.lengths)

    def predict_proba(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the probability of each class, of every sequence or of every step.

        Parameters
        ----------
        X : array (n, T, d), list of arrays (Tᵢ, d), or table (n, T)
            Sequences.
        lengths : array of n integers, optional
            Steps of each sequence of an array.
        """
        z, rows = self._sequence_scores(X, lengths)
        return self._as_given(self._probabilities(z), X, rows)

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the most probable class of every sequence, or of every step; arguments as for `predict_proba`."""
        z, rows = self._sequence_scores(X, lengths)
        p = self._probabilities(z)
        if self.multilabel_:
            return np.asarray(p > 0.5, dtype=np.int64)
        return self._as_given(self.classes_[p.argmax(axis=-1)], X, rows)

    def predict_log_proba(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the logarithm of `predict_proba`."""
        found = self.predict_proba(X, lengths=lengths)
        with np.errstate(divide="ignore"):
            return [np.log(p) for p in found] if isinstance(found, list) else np.log(found)


class _SequenceRegressor(RegressorMixin, _Recurrences, NumberTargets):
    """Numbers of sequences."""

    loss: Any = param(
        Options("squared_error", "poisson", "absolute_error", "huber", "gamma") | NumberTargets.LOSS,
        "V: a name, or a loss of `learnable.risk`.",
        default="squared_error",
    )

    _door = staticmethod(sequence_door("numeric"))

    def _read_steps(self, y: Any, found: Sequences | None, X: Any) -> Array:
        n, T = (len(X), np.shape(X)[1]) if found is None else found.X.shape[:2]
        items = _stack_steps(type(self).__name__, y, n, T)
        width = 1 if items[0].ndim == 1 else items[0].shape[1]
        self._step_single = items[0].ndim == 1
        padded = np.zeros((n, T, width))
        for k, item in enumerate(items):
            padded[k, : len(item)] = item.reshape(len(item), width)
        return padded.reshape(n, T * width)

    def _prepare(self, table: Table, settings: SimpleNamespace) -> Data:
        data = super()._prepare(table, settings)
        if settings.predicts == "every_step":
            n = len(self._ends)
            T = table.n_columns // self.n_inputs_
            y = np.asarray(table.y, dtype=np.float64).reshape(n, T, -1)
            self.n_outputs_ = y.shape[2]
            self.single_ = self._step_single
            self.__dict__.pop("_step_single", None)
            data = Data(data.X, y, table.weight)
        return self._as_sequences(data)

    def _measure_residuals(self, rows: Data) -> None:
        """Measure nothing: models of sequences have neither intervals nor distributions."""

    def _given_validation(self, X_val: Any, y_val: Any, settings: SimpleNamespace) -> Data:
        found = read_sequences(type(self).__name__, np.asarray(X_val)[:, :, None] if is_plain_table(X_val) else X_val)
        y = np.asarray(y_val, dtype=np.float64)
        shape = (*found.X.shape[:2], -1) if settings.predicts == "every_step" else (len(found.X), -1)
        return Data(found.X, y.reshape(shape), None, found.lengths)

    def predict(self, X: Any, *, lengths: Any = None) -> Any:
        """Return the predicted numbers, of every sequence or of every step.

        Parameters
        ----------
        X : array (n, T, d), list of arrays (Tᵢ, d), or table (n, T)
            Sequences.
        lengths : array of n integers, optional
            Steps of each sequence of an array.
        """
        z, rows = self._sequence_scores(X, lengths)
        found = self._from_scores(z)
        return self._as_given(found[..., 0] if self.single_ else found, X, rows)

    def forecast(self, history: Any, steps: int) -> Array:
        """Continue a series: each predicted value is the last step of the next prediction's input.

        Parameters
        ----------
        history : (T,) or (T, d) array
            The series so far.
        steps : int
            How many values to add.

        Returns
        -------
        (steps,) or (steps, d) array
            The values that follow; their errors add up.
        """
        owner = type(self).__name__
        check_is_fitted(self, "theta_")
        if self.predicts != "end" or self.n_outputs_ != self.n_inputs_:
            raise ParameterError(
                f"{owner}: forecast needs a model of the next value: predicts='end' and as many targets as numbers "
                "of a step. Fit it to neural.windows(series, length)."
            )
        check_parameters(owner, {"steps": steps}, {"steps": Number(low=1, integer=True)})
        values = np.asarray(history, dtype=np.float64)
        flat = values.ndim == 1
        values = values[:, None] if flat else values
        length = len(values)
        for _ in range(steps):
            new = np.reshape(self.predict(values[None, -length:]), (1, -1))
            values = np.concatenate([values, new])
        found = values[length:]
        return np.asarray(found[:, 0] if flat else found)

    predict_dist = None
    predict_interval = None


class LSTMClassifier(_SequenceClassifier):
    """Long short-term memory for sequences of classes, or with one class at the end.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over batches of sequences, V = −log P(y | x). Memory: O(p) for p parameters, four
    times, plus O(batch · T · units) for the states.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LSTMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = [rng.normal(size=(rng.integers(5, 10), 1)) for _ in range(200)]  # sequences of different lengths
    >>> y = [x[0, 0] > 0 for x in X]  # the class is the sign of the first step
    >>> model = LSTMClassifier(8, max_iter=40, learning_rate_init=0.02, random_state=0, n_iter_no_change=40)
    >>> bool(np.mean(model.fit(X, y).predict(X) == y) > 0.95)
    True
    """

    _theory = "network"

    def _cell(self, settings: SimpleNamespace) -> Layer:
        return LSTM(settings.units, settings.truncation)


class LSTMRegressor(_SequenceRegressor):
    """Long short-term memory for numbers: one at the end of a sequence, or one at every step.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over batches of sequences, V = ½‖z − y‖² or another loss. Memory: O(p) for p
    parameters, four times, plus O(batch · T · units) for the states.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import LSTMRegressor
    >>> from learnable.neural import windows
    >>> wave = np.sin(0.3 * np.arange(200.0))
    >>> X, y = windows(wave[:150], length=20)
    >>> model = LSTMRegressor(8, max_iter=100, learning_rate_init=0.02, random_state=0, tol=0.0).fit(X, y)
    >>> bool(np.abs(model.forecast(wave[100:150], 10) - wave[150:160]).max() < 0.1)
    True
    """

    _theory = "network"

    def _cell(self, settings: SimpleNamespace) -> Layer:
        return LSTM(settings.units, settings.truncation)


class _PlainCells(NetworkModel):
    cell: str = param(
        Options("tanh", "relu", "gru"), "Plain units with tanh or ReLU, or gated recurrent units.", default="tanh"
    )

    def _cell(self, settings: SimpleNamespace) -> Layer:
        if settings.cell == "gru":
            return GRU(settings.units, settings.truncation)
        return Recurrent(settings.units, settings.truncation, settings.cell)


class RNNClassifier(_PlainCells, _SequenceClassifier):
    """Plain or gated recurrent units for sequences of classes, or with one class at the end.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over batches of sequences, V = −log P(y | x). Gradients of plain units shrink or
    grow by at most ‖Wh‖·max σ′ a step: for long memories use `LSTMClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RNNClassifier
    >>> X = np.random.default_rng(0).normal(size=(200, 5))  # rows of a table are series
    >>> y = X[:, -1] > X[:, -2]
    >>> model = RNNClassifier(8, max_iter=60, learning_rate_init=0.02, random_state=0, n_iter_no_change=60).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    _theory = "network"


class RNNRegressor(_PlainCells, _SequenceRegressor):
    """Plain or gated recurrent units for numbers: one at the end of a sequence, or one at every step.

    Minimises Σ w V/Σ w + ½α‖W‖²/Σ w over batches of sequences, V = ½‖z − y‖² or another loss.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable import RNNRegressor
    >>> X = np.random.default_rng(0).normal(size=(200, 6, 1))
    >>> y = X[:, :, 0].cumsum(axis=1)  # a target for every step: the sum so far
    >>> model = RNNRegressor(16, predicts="every_step", max_iter=150, learning_rate_init=0.01, random_state=0)
    >>> bool(np.abs(model.fit(X, y).predict(X) - y).mean() < 0.2)
    True
    """

    _theory = "network"
