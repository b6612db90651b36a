"""Proximal operators of penalties by their dual problems."""

import numpy as np
from scipy.optimize import lsq_linear


def chain_prox(y, strength):
    """Return the minimiser of ½‖x − y‖² + strength Σ|xᵢ₊₁ − xᵢ|: y − Dᵀu, where |u| <= strength minimises ‖y − Dᵀu‖."""
    if len(y) == 1:
        return y.copy()
    D = np.diff(np.eye(len(y)), axis=0)
    u = lsq_linear(D.T, y, (-strength, strength), method="bvls", tol=1e-14).x
    return y - D.T @ u
