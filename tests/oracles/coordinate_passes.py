"""One pass of each coordinate method, as its paper writes it, in NumPy."""

import numpy as np


def lasso_epoch(G, c, l1, l2, w, positive=False):
    """Return w after one cyclic pass of soft thresholding over ½wᵀGw − cᵀw + Σ(λ₁|w| + ½λ₂w²)."""
    w = w.copy()
    for j in range(len(w)):
        if G[j, j] + l2[j] <= 0.0:
            continue
        u = c[j] - G[j] @ w + G[j, j] * w[j]
        size = max((u if positive else abs(u)) - l1[j], 0.0)
        w[j] = np.sign(u) * size / (G[j, j] + l2[j])
    return w


def dual_pass(A, order, sign, offset, upper, ridge, alpha):
    """Return α after one pass of dual coordinate descent, and u = Σ ασ(bias, x): Hsieh et al., ICML 2008.

    A (n, 1 + d) holds the rows with the bias in front; variable k belongs to row k mod n.
    """
    alpha = alpha.copy()
    n = len(A)
    rows = np.arange(len(alpha)) % n
    u = (alpha * sign) @ A[rows]
    for k in order:
        x = sign[k] * A[k % n]
        slope = x @ u - offset[k] + ridge[k] * alpha[k]
        new = min(max(alpha[k] - slope / (x @ x + ridge[k]), 0.0), upper[k])
        u = u + (new - alpha[k]) * x
        alpha[k] = new
    return alpha, u


def onto_simplex(slope, size, y, cost):
    """Return the minimiser of ½ size‖α‖² + slopeᵀα over Σα = 0, αₖ ≤ cost·[k = y], by bisection on the multiplier."""
    upper = np.where(np.arange(len(slope)) == y, cost, 0.0)
    low, high = slope.min() - size * cost * len(slope), slope.max() + size * cost * len(slope)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.minimum(upper, (middle - slope) / size).sum() > 0.0:
            high = middle
        else:
            low = middle
    return np.minimum(upper, (0.5 * (low + high) - slope) / size)


def perceptron_pass(X, order, label, step, w, intercept=True):
    """Return w = (b, w) after one pass, the mistakes, and the mean of w over all rows: Rosenblatt 1958, averaged."""
    w = w.copy()
    mistakes = 0
    total = np.zeros_like(w)
    for i in order:
        x = np.r_[float(intercept), X[i]]
        if label[i] * (w[0] + X[i] @ w[1:]) <= 0.0:
            mistakes += 1
            w = w + step[i] * label[i] * x
        total += w
    return w, mistakes, total / len(order)
