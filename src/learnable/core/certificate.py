"""What a fit proves about itself.

A certificate is a claim that a stranger can re-check from the model and the data alone (`learnable.verify`).
`value` and `tolerance` are in the units of the estimator's `tol`, and `holds` is `value <= tolerance`.

| kind           | what `value` is                                                         |
|----------------|-------------------------------------------------------------------------|
| `closed-form`  | relative residual of the equations that define the solution             |
| `gap`          | (P − D) / max(D, 1e-8·P₀): the optimum is at most this far below        |
| `stationarity` | relative norm of the gradient, or of the KKT residual                   |
| `ascent`       | relative rise of one more EM step                                       |
| `greedy`       | by how much a split or step falls short of the best of its candidates   |
| `chain`        | the worst of (R-hat − 1)/0.01 and 400/ESS; above 1 if a draw diverged   |
| `bellman`      | what the policy loses at most in any state; without a bound, the residual of one backup |
| `none`         | nothing is proven                                                       |
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal, get_args

from .errors import ParameterError

Kind = Literal["closed-form", "gap", "stationarity", "ascent", "greedy", "chain", "bellman", "none"]
KINDS: Final[tuple[str, ...]] = get_args(Kind)

_SENTENCES: Final[dict[str, str]] = {
    "closed-form": "the defining equations hold to a relative residual of {value:.2g}",
    "gap": "at most {value:.2g} (relative) above the optimum",
    "stationarity": "the optimality conditions hold up to {value:.2g}",
    "ascent": "one more step would raise the objective by {value:.2g} (relative); a local optimum",
    "greedy": "no split or step falls short of the best of its candidates by more than {value:.2g}",
    "chain": "the worst of (R-hat − 1)/0.01 and 400/ESS over all parameters is {value:.2g}",
    "bellman": "one more backup changes values by {value:.2g}",
    "none": "nothing is proven",
}


@dataclass(frozen=True)
class Certificate:
    """An immutable record of what is proven about one fit.

    Attributes
    ----------
    kind : str
        Which claim is made; see the module's table.
    value : float
        The claim's number, in the units of `tolerance`.
    tolerance : float
        What `value` had to reach.
    bound : float or None
        Upper bound on (P − optimum)/max(optimum, 1e-8·P₀); of kind `bellman` on the loss itself, in units of the
        reward. None where nothing is proven.
    n_iter : int
        Iterations, or passes over the data, that were spent.
    seconds : float
        Wall-clock time of the fit.
    fingerprint : str
        64-bit checksum of the training data, the same whatever the order of the rows and the container.
    by_construction : bool
        Whether the method cannot give another value, so that the fit measured nothing; `verify` measures it.

    Examples
    --------
    >>> from learnable.core import Certificate
    >>> Certificate("gap", 3.1e-7, 1e-6, bound=3.1e-7, n_iter=7)
    gap: at most 3.1e-07 (relative) above the optimum; tolerance 1e-06; 7 iterations
    """

    kind: Kind
    value: float
    tolerance: float
    bound: float | None = None
    n_iter: int = 1
    seconds: float = 0.0
    fingerprint: str = ""
    by_construction: bool = field(default=False, metadata={"left_out": False})

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ParameterError(f"Certificate: kind must be one of {', '.join(KINDS)}; got {self.kind!r}.")

    @property
    def holds(self) -> bool:
        """Whether the claim reaches its tolerance (never for `none`, never for NaN)."""
        return self.kind != "none" and self.value <= self.tolerance

    @property
    def sentence(self) -> str:
        """The claim in words."""
        claim = _SENTENCES[self.kind].format(value=self.value)
        if self.by_construction:
            claim += ", by construction"
        if self.kind == "stationarity" and self.bound is not None and math.isfinite(self.bound):
            claim += f", at most {self.bound:.2g} (relative) above the optimum"
        if self.kind == "bellman" and self.bound is not None:
            claim = f"values are proven to within {self.bound:.2g} in every state"
        return claim

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain JSON types (an infinite or undefined value becomes None)."""
        record = asdict(self)
        for key in ("value", "tolerance", "bound"):
            if record[key] is not None and not math.isfinite(record[key]):
                record[key] = None
        return record | {"holds": self.holds, "sentence": self.sentence}

    def __repr__(self) -> str:
        if self.kind == "none":
            return "none: nothing is proven"
        verdict = "" if self.holds else "DOES NOT HOLD; "
        steps = "1 iteration" if self.n_iter == 1 else f"{self.n_iter} iterations"
        return f"{self.kind}: {verdict}{self.sentence}; tolerance {self.tolerance:.2g}; {steps}"
