"""The memory of a fit, as its docstring states it: in matrices of n × n."""

import tracemalloc


def once(function, theta, bounds):
    """Evaluate value and gradient, and be content: an optimizer as scikit-learn takes them."""
    function(theta)
    return theta, 0.0


def matrices(model, X, y):
    """Return the peak of a fit, in matrices of n × n."""
    model.fit(X[:60], y[:60])  # kernels compile, caches fill
    tracemalloc.start()
    try:
        model.fit(X, y)
        return tracemalloc.get_traced_memory()[1] / (8.0 * len(X) ** 2)
    finally:
        tracemalloc.stop()
