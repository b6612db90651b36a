r"""The loss around a fitted network, and what more parameters than rows do.

- `loss_along_line`: L(θ + t d) for a random direction d with the norm of θ, or towards another network.
- `loss_on_plane`: the same in two directions.
- `double_descent`: test error of random-feature networks as they grow through the point where they fit the data
  exactly. Beyond it the smoothest of many exact fits is taken, and the error falls again.

References: H. Li et al., Visualizing the loss landscape of neural nets, NeurIPS 2018; M. Belkin et al., PNAS 116, 2019.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError
from ..core.threads import one_thread_blas
from .model import NetworkModel
from .report import objective_of, rows_of

Array = NDArray[Any]


class Line(NamedTuple):
    """The loss along a line."""

    t: Array  #: (m,), 0 is the fitted network
    loss: Array  #: (m,)


class Plane(NamedTuple):
    """The loss on a plane."""

    s: Array  #: (m,)
    t: Array  #: (m,)
    loss: Array  #: (m, m), rows follow s


class Descent(NamedTuple):
    """Errors by width."""

    widths: Array  #: (m,)
    train: Array  #: (m,), mean squared errors
    test: Array  #: (m,)
    norm: Array  #: (m,), ‖w‖ of the last layer


def loss_along_line(
    model: NetworkModel,
    X: Any,
    y: Any,
    *,
    towards: NetworkModel | None = None,
    reach: float = 1.0,
    n_points: int = 41,
    random_state: int = 0,
) -> Line:
    """Return the training objective along a line through a fitted network.

    Parameters
    ----------
    model : fitted model of `learnable.neural`
        The point t = 0.
    X, y
        Data; at most the first 2000 rows.
    towards : model, optional
        Another fit of the same layers, at t = 1; by default a random direction, of the network's own norm.
    reach : float, default=1.0
        t runs from −reach to reach, or from −reach/2 to 1 + reach/2 towards another network.
    n_points : int, default=41
        How many values.
    random_state : int, default=0
        Draws the direction.
    """
    network, theta, buffers, data = rows_of(model, X, y, None)
    f = objective_of(model, network, buffers, data)
    if towards is None:
        d = _direction(theta, random_state)
        t = np.linspace(-reach, reach, n_points)
    else:
        d = towards.theta_[0].astype(np.float64) - theta
        t = np.linspace(-0.5 * reach, 1.0 + 0.5 * reach, n_points)
    with one_thread_blas():
        return Line(t, np.array([f.value(theta + step * d) for step in t]))


def loss_on_plane(
    model: NetworkModel, X: Any, y: Any, *, reach: float = 1.0, n_points: int = 21, random_state: int = 0
) -> Plane:
    """Return the training objective on a plane through a fitted network, in two random directions of its norm."""
    network, theta, buffers, data = rows_of(model, X, y, None)
    f = objective_of(model, network, buffers, data)
    first = _direction(theta, random_state)
    second = _direction(theta, random_state + 1)
    second -= first * float(first @ second) / float(first @ first)
    t = np.linspace(-reach, reach, n_points)
    with one_thread_blas():
        loss = np.array([[f.value(theta + a * first + b * second) for b in t] for a in t])
    return Plane(t, t, loss)


def _direction(theta: Array, random_state: int) -> Array:
    d = np.random.default_rng(random_state).normal(size=len(theta))
    return np.asarray(d * (np.linalg.norm(theta) / np.linalg.norm(d)))


def double_descent(
    X: Any, y: Any, X_test: Any, y_test: Any, widths: Any, *, n_draws: int = 5, random_state: int = 0
) -> Descent:
    """Return errors of one-hidden-layer ReLU networks whose last layer is fitted exactly, by width.

    The first layer is random; the last is the least-squares solution of least norm. The training error reaches zero
    where there are as many units as rows, the test error peaks there, and falls again with more units.

    Parameters
    ----------
    X, y, X_test, y_test : arrays
        Training and test rows, and their numbers.
    widths : sequence of int
        Hidden units.
    n_draws : int, default=5
        Random first layers that errors are averaged over.
    random_state : int, default=0
        Draws them.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.neural import double_descent
    >>> rng = np.random.default_rng(0)
    >>> X, X_new = rng.normal(size=(40, 5)), rng.normal(size=(500, 5))
    >>> f = lambda x: np.sin(x[:, 0]) + x[:, 1]
    >>> d = double_descent(X, f(X) + 0.3 * rng.normal(size=40), X_new, f(X_new), [10, 40, 2000])
    >>> bool(d.test[1] > d.test[0] and d.test[1] > d.test[2]), bool(d.train[2] < 1e-12)
    (True, True)
    """
    X = np.asarray(X, dtype=np.float64)
    X_test = np.asarray(X_test, dtype=np.float64)
    y = np.asarray(y, dtype=np.float64)
    y_test = np.asarray(y_test, dtype=np.float64)
    if X.ndim != 2 or X_test.shape[1:] != X.shape[1:] or y.shape != (len(X),) or y_test.shape != (len(X_test),):
        raise DataError(
            f"double_descent: X {X.shape}, y {y.shape}, X_test {X_test.shape} and y_test {y_test.shape} do not fit "
            "together; pass rows of the same columns with one number each."
        )
    sums = np.zeros((3, len(widths)))
    rng = np.random.default_rng(random_state)
    for _ in range(n_draws):
        W = rng.normal(size=(X.shape[1], max(widths))) / np.sqrt(X.shape[1])
        b = rng.normal(size=max(widths))
        for k, width in enumerate(widths):
            H, H_test = (np.maximum(rows @ W[:, :width] + b[:width], 0.0) for rows in (X, X_test))
            w = np.linalg.lstsq(H, y, rcond=1e-10)[0]
            sums[:, k] += np.mean((H @ w - y) ** 2), np.mean((H_test @ w - y_test) ** 2), np.linalg.norm(w)
    train, test, norm = sums / n_draws
    return Descent(np.asarray(widths), train, test, norm)
