"""Networks against torch and scikit-learn: the same layers, the same optimiser, the same number of epochs.

Each contender starts from weights of its own and makes the same number of steps of Adam on mini-batches; the quality is
the mean training loss of its final weights, computed by the contender's own predictions, whose spread over seeds the
tolerance allows for. The residual network is judged with running moments.

Where other jobs share the cores, wall times say little. By the processor's seconds of one thread each (interleaved, the
least of two to eight), as multiples of ours on an EPYC of the fourth generation: torch 27 and scikit-learn 10
(`mlp_small`), 8 and 5.4 (`mlp_medium`), 1.5 and 1.6 (`mlp_wide`), 1.07 and 1.06 (`mlp_digits`), torch 1.4
(`resnet`), 4.1, 1.8 and 1.4 (`lstm_16`, `lstm_64`, `lstm_256`), scikit-learn 8.7 (`mlp_predict`). `mlp_digits` is a
matter of matrix products, which all three leave to BLAS; ours gains where two threads share a batch and the step.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, softmax

from .harness import OURS, Row, blas_threads

SKLEARN, TORCH = "scikit-learn", "torch"
EPOCHS = 5


class Data(NamedTuple):
    X: np.ndarray
    y: np.ndarray
    hidden: tuple[int, ...]
    batch: int


def make_table(hidden: tuple[int, ...], batch: int) -> Callable[[bool], Data]:
    """Return the maker of 20,000 rows of 28 columns with two classes that overlap."""

    def make(quick: bool) -> Data:
        rng = np.random.default_rng(0)
        n = 2000 if quick else 20000
        X = rng.normal(size=(n, 28)).astype(np.float32)
        score = X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2]) + X[:, 3] + 0.5 * rng.normal(size=n)
        return Data(X, (score > 0).astype(np.int64), hidden, batch)

    return make


def make_digits(quick: bool) -> Data:
    """Return images of the size of MNIST's with ten classes; prototypes with noise, so that no file is needed."""
    rng = np.random.default_rng(0)
    n = 1000 if quick else 5000
    prototypes = np.clip(rng.normal(size=(10, 784)), 0.0, 1.0)
    y = rng.integers(0, 10, n)
    X = np.clip(prototypes[y] + 0.7 * rng.normal(size=(n, 784)), 0.0, 1.0).astype(np.float32)
    return Data(X, y, (512, 512), 256)


def fit_ours(data: Data) -> Any:
    from learnable import MLPClassifier

    return MLPClassifier(
        data.hidden, batch_size=data.batch, max_iter=EPOCHS, random_state=0, tol=0.0, n_iter_no_change=EPOCHS
    ).fit(data.X, data.y)


def fit_sklearn(data: Data) -> Any:
    from sklearn.neural_network import MLPClassifier

    return MLPClassifier(
        data.hidden, batch_size=data.batch, max_iter=EPOCHS, random_state=0, tol=0.0, n_iter_no_change=EPOCHS
    ).fit(data.X, data.y)


def torch_fitter(threads: int) -> Callable[[Data], Any]:
    """Return torch's fit with so many threads; its better number differs by size."""

    def fit(data: Data) -> SimpleNamespace:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        K = int(data.y.max()) + 1
        n_outputs = 1 if K == 2 else K
        widths = (data.X.shape[1], *data.hidden)
        parts: list[Any] = []
        for before, after in pairwise(widths):
            parts += [torch.nn.Linear(before, after), torch.nn.ReLU()]
        net = torch.nn.Sequential(*parts, torch.nn.Linear(widths[-1], n_outputs))
        X = torch.from_numpy(data.X)
        y = torch.from_numpy(data.y.astype(np.float32)[:, None] if K == 2 else data.y)
        loss = torch.nn.BCEWithLogitsLoss() if K == 2 else torch.nn.CrossEntropyLoss()
        _run_torch(torch, net, X, y, loss, data.batch)
        with torch.no_grad():
            z = net(X).numpy().astype(np.float64)
        p = expit(z[:, 0]) if K == 2 else softmax(z, axis=1)
        return SimpleNamespace(predict_proba=lambda _: np.column_stack([1 - p, p]) if K == 2 else p)

    return fit


def _run_torch(torch: Any, net: Any, X: Any, y: Any, loss: Any, batch: int) -> None:
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-3)
    n = len(y)
    for _ in range(EPOCHS):
        order = torch.randperm(n)
        for start in range(0, n, batch):
            rows = order[start : start + batch]
            optimiser.zero_grad(set_to_none=True)
            loss(net(X[rows]), y[rows]).backward()
            optimiser.step()


def log_loss(model: Any, data: Data) -> dict[str, float]:
    """Return the mean logarithmic loss on the training rows."""
    p = model.predict_proba(data.X)[np.arange(len(data.y)), data.y]
    return {"loss": float(-np.log(np.maximum(p, 1e-12)).mean())}


class Regression(NamedTuple):
    X: np.ndarray
    y: np.ndarray


def make_regression(quick: bool) -> Regression:
    """Return rows for the residual network."""
    rng = np.random.default_rng(0)
    n = 2000 if quick else 20000
    X = rng.normal(size=(n, 28)).astype(np.float32)
    return Regression(X, (X[:, 0] * X[:, 1] + np.sin(2 * X[:, 2])).astype(np.float32))


def fit_our_blocks(data: Regression) -> Any:
    from learnable import ResNetRegressor

    return ResNetRegressor(2, 192, batch_size=256, max_iter=EPOCHS, random_state=0, n_iter_no_change=EPOCHS).fit(
        data.X, data.y
    )


def torch_blocks(threads: int) -> Callable[[Regression], Any]:
    """Return torch's fit of the same blocks."""

    def fit(data: Regression) -> SimpleNamespace:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)
        nn = torch.nn

        class Block(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.inner = nn.Sequential(nn.BatchNorm1d(192), nn.Linear(192, 192), nn.ReLU(), nn.Linear(192, 192))

            def forward(self, x: Any) -> Any:
                return x + self.inner(x)

        end = (nn.BatchNorm1d(192), nn.ReLU(), nn.Linear(192, 1))
        net = nn.Sequential(nn.Linear(28, 192), Block(), Block(), *end)
        X, y = torch.from_numpy(data.X), torch.from_numpy(data.y[:, None])
        _run_torch(torch, net, X, y, nn.MSELoss(), 256)
        net.eval()
        with torch.no_grad():
            prediction = net(X).numpy()[:, 0]
        return SimpleNamespace(predict=lambda _: prediction)

    return fit


def squared_error(model: Any, data: Any) -> dict[str, float]:
    """Return the mean squared error on the training rows."""
    return {"loss": float(np.mean((np.asarray(model.predict(data.X)) - data.y) ** 2))}


def make_sequences(units: int) -> Callable[[bool], Any]:
    """Return the maker of the adding problem: T = 100, the sum of two marked numbers."""

    def make(quick: bool) -> SimpleNamespace:
        rng = np.random.default_rng(0)
        n = 128 if quick else 640
        X = np.zeros((n, 100, 2), dtype=np.float32)
        X[:, :, 0] = rng.uniform(-1, 1, (n, 100))
        for row in X:
            row[rng.choice(100, 2, replace=False), 1] = 1.0
        y = (X[:, :, 0] * X[:, :, 1]).sum(axis=1)
        return SimpleNamespace(X=X, y=y, units=units)

    return make


def fit_our_lstm(data: Any) -> Any:
    from learnable import LSTMRegressor

    return LSTMRegressor(
        data.units, batch_size=64, max_iter=EPOCHS, random_state=0, n_iter_no_change=EPOCHS, clip=None
    ).fit(data.X, data.y)


def torch_lstm(threads: int) -> Callable[[Any], Any]:
    """Return torch's fit of the same network."""

    def fit(data: Any) -> SimpleNamespace:
        import torch

        torch.set_num_threads(threads)
        torch.manual_seed(0)

        class Net(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lstm = torch.nn.LSTM(2, data.units, batch_first=True)
                self.end = torch.nn.Linear(data.units, 1)

            def forward(self, x: Any) -> Any:
                return self.end(self.lstm(x)[0][:, -1])

        net = Net()
        X, y = torch.from_numpy(data.X), torch.from_numpy(data.y[:, None])
        _run_torch(torch, net, X, y, torch.nn.MSELoss(), 64)
        with torch.no_grad():
            prediction = net(X).numpy()[:, 0]
        return SimpleNamespace(predict=lambda _: prediction)

    return fit


def make_predictions(quick: bool) -> Any:
    """Return a million rows and both fitted networks of 28-100-1."""
    from sklearn.neural_network import MLPClassifier as Theirs

    from learnable import MLPClassifier

    data = make_table((100,), 200)(True)
    X = np.random.default_rng(1).normal(size=(20_000 if quick else 1_000_000, 28))
    models = {OURS: MLPClassifier(max_iter=2, random_state=0), SKLEARN: Theirs(max_iter=2, random_state=0)}
    return SimpleNamespace(X=X, models={name: model.fit(data.X, data.y) for name, model in models.items()})


def predictor(library: str) -> Callable[[Any], Any]:
    """Return the function that predicts all rows."""
    return lambda data: SimpleNamespace(p=data.models[library].predict_proba(data.X))


def are_probabilities(found: Any, data: Any) -> dict[str, float]:
    """Return how far rows are from adding up to one."""
    return {"excess": float(np.abs(found.p.sum(axis=1) - 1.0).max())}


def _torches(make: Callable[[int], Callable[[Any], Any]]) -> dict[str, Callable[[Any], Any]]:
    """Return torch with one thread and with all: the faster one counts."""
    return {f"{TORCH} ({threads} threads)": make(threads) for threads in sorted({1, blas_threads()})}


def _table_row(name: str, size: str, make: Any, targets: dict[str, float]) -> Row:
    contenders = {OURS: fit_ours, SKLEARN: fit_sklearn, **_torches(torch_fitter)}
    job = "a perceptron with ReLU, Adam, five epochs"
    # Losses after few epochs differ from seed to seed by several per cent.
    return Row(
        name, job, size, make, contenders, log_loss, targets, "loss", tolerance=0.15, floor=0.05, same_steps=True
    )


ROWS = [
    _table_row("mlp_small", "20,000×28, 28-16-1, batch 32", make_table((16,), 32), {TORCH: 15.0, SKLEARN: 8.0}),
    _table_row("mlp_medium", "20,000×28, 28-100-1, batch 200", make_table((100,), 200), {TORCH: 4.0, SKLEARN: 4.0}),
    _table_row(
        "mlp_wide",
        "20,000×28, 28-256-256-256-1, batch 256",
        make_table((256, 256, 256), 256),
        {TORCH: 1.0, SKLEARN: 1.5},
    ),
    _table_row("mlp_digits", "5,000×784, 784-512-512-10, batch 256", make_digits, {TORCH: 1.0, SKLEARN: 1.5}),
    Row(
        "resnet",
        "a residual network, Adam, five epochs",
        "20,000×28, 2 blocks of 192, batch 256",
        make_regression,
        {OURS: fit_our_blocks, **_torches(torch_blocks)},
        squared_error,
        {TORCH: 1.0},
        "loss",
        tolerance=1.0,  # at a constant rate, the loss after five epochs is between .03 and .07, by seed, of both
        floor=0.05,
        same_steps=True,
    ),
    *(
        Row(
            f"lstm_{units}",
            "long short-term memory, the adding problem, Adam, five epochs",
            f"640 sequences, T = 100, batch 64, h = {units}",
            make_sequences(units),
            {OURS: fit_our_lstm, **_torches(torch_lstm)},
            squared_error,
            {TORCH: target},
            "loss",
            tolerance=0.15,
            floor=0.1,
            same_steps=True,
        )
        for units, target in ((16, 4.0), (64, 1.5), (256, 1.0))
    ),
    Row(
        "mlp_predict",
        "probabilities of many rows",
        "1,000,000×28, 28-100-1",
        make_predictions,
        {OURS: predictor(OURS), SKLEARN: predictor(SKLEARN)},
        are_probabilities,
        {SKLEARN: 2.0},
        "excess",
        tolerance=1e-6,
        floor=1.0,
    ),
]
