r"""Empirical risk from its parts: a loss of the data and a penalty of the weights.

The models of the library minimise

$$ \frac1n \sum_{i=1}^n V(y_i, z_i) + \Omega(w) $$

where $z_i$ is the score that weights $w$ give to sample $i$. `losses` holds the $V$, `penalties` the
$\Omega$.
"""

from ..core.lazy import attach as _attach

__getattr__, __dir__, __all__ = _attach(__name__, __file__)
