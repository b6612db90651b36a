"""PAC learning of Boolean concepts by consistent learners, with sample sizes and a check of consistency.

A learner that outputs a member of a finite class H consistent with m examples errs on more than ε of the
distribution with probability at most |H|(1 − ε)^m, so that m ≥ (ln|H| + ln(1/δ))/ε examples suffice (Blumer and
others).

    monomials                 conjunctions of literals: drop every literal that a positive example falsifies; |H| =
    3ⁿ + 1 k-CNF, k-DNF              the same over all clauses (terms) of at most k literals; |H| ≤ 2^N, N of them
    k-CNF ∨ k-DNF             D = all terms false on every negative; C = all clauses true on every positive outside D
    k-DNF ∧ k-CNF             its complement
    decision lists            find a literal that leaves one label, take those examples out, repeat (Rivest)
    Boolean thresholds        w·x ≥ b by a linear program; at most 2 Σ_{i ≤ n} C(2ⁿ − 1, i) of them (Cover)

For C ∨ D: every term of the true D is false on the negatives, hence in ours; a positive that ours misses satisfies
the true C, so that ours has all its clauses and is false on every negative. Hence the output is consistent whenever
some member is.

References: L. Valiant, A theory of the learnable, 1984. A. Blumer, A. Ehrenfeucht, D. Haussler and M. Warmuth, 1987.
R. Rivest, Learning decision lists, 1987. L. Pitt and L. Valiant, Computational limitations on learning from
examples, 1988.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import combinations, product
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from ..core import DataError, Number, ParameterError, check_parameters
from .concentration.base import COUNT, LEVEL, POSITIVE
from .vc.counting import log_sauer

Bits = NDArray[np.bool_]
#: A literal: (variable, whether it is asked to be true).
Literal = tuple[int, bool]
#: More clauses than this are not enumerated.
MOST_CLAUSES = 2_000_000


def sample_complexity(log_size: float, eps: float, delta: float) -> int:
    """Return ⌈(ln|H| + ln(1/δ))/ε⌉: examples after which a consistent learner errs below ε with probability 1 − δ.

    Examples
    --------
    >>> import math
    >>> from learnable.theory.pac import sample_complexity
    >>> sample_complexity(10 * math.log(3), 0.1, 0.05), sample_complexity(20 * math.log(3), 0.1, 0.05)
    (140, 250)
    """
    given = {"log_size": log_size, "eps": eps, "delta": delta}
    check_parameters("sample_complexity", given, {"log_size": Number(low=0.0), "eps": POSITIVE, "delta": LEVEL})
    return math.ceil((log_size - math.log(delta)) / eps)


def agnostic_complexity(log_size: float, eps: float, delta: float) -> int:
    """Return ⌈(ln|H| + ln(2/δ))/(2ε²)⌉: examples after which every member errs within ε of its share of errors."""
    given = {"log_size": log_size, "eps": eps, "delta": delta}
    check_parameters("agnostic_complexity", given, {"log_size": Number(low=0.0), "eps": POSITIVE, "delta": LEVEL})
    return math.ceil((log_size + math.log(2.0 / delta)) / (2.0 * eps**2))


@dataclass
class Learner:
    """A consistent learner of Boolean concepts; not to be used directly.

    After `fit`, `consistent` tells whether the hypothesis agrees with every example: it does whenever the concept is in
    the class, so that False proves that it is not.
    """

    consistent: bool | None = field(default=None, init=False)
    n_variables: int = field(default=0, init=False)

    name: ClassVar[str]

    def fit(self, X: Any, y: Any) -> Learner:
        """Learn from examples: X of zeros and ones (m, n), y of zeros and ones (m,)."""
        bits, labels = _examples(type(self).__name__, X, y)
        self.n_variables = bits.shape[1]
        self._learn(bits, labels)
        self.consistent = bool((self.predict(bits) == labels).all())
        return self

    def predict(self, X: Any) -> Bits:
        """Return the hypothesis' labels."""
        bits = _bits(type(self).__name__, X)
        if bits.shape[1] != self.n_variables or self.n_variables == 0:
            raise DataError(f"{type(self).__name__}: fitted to {self.n_variables} variables, got {bits.shape[1]}.")
        return self._evaluate(bits)

    def log_size(self, n: int) -> float:
        """Return ln|H| over n variables, or a bound on it."""
        raise TypeError(f"{type(self).__name__} does not define log_size")

    def sample_size(self, n: int, eps: float, delta: float) -> int:
        """Return how many examples suffice for error ε with probability 1 − δ."""
        check_parameters(type(self).__name__, {"n": n}, {"n": COUNT})
        return sample_complexity(self.log_size(n), eps, delta)

    def formula(self) -> str:
        """Return the hypothesis in words of logic."""
        raise TypeError(f"{type(self).__name__} does not define formula")

    def _learn(self, X: Bits, y: Bits) -> None:
        raise TypeError(f"{type(self).__name__} does not define _learn")

    def _evaluate(self, X: Bits) -> Bits:
        raise TypeError(f"{type(self).__name__} does not define _evaluate")


@dataclass
class KCNF(Learner):
    """Conjunctions of clauses of at most k literals: keep every clause that all positive examples satisfy.

    The hypothesis is the most specific one: it errs on positive examples only.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.pac import KCNF
    >>> X = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    >>> learner = KCNF(2).fit(X, (X[:, 0] | X[:, 1]) & X[:, 2])
    >>> learner.consistent, bool(learner.predict([[0, 1, 1]])[0])
    (True, False)
    """

    k: int = 1
    clauses: list[tuple[Literal, ...]] = field(default_factory=list, init=False)

    name: ClassVar[str] = "k-CNF"

    def log_size(self, n: int) -> float:
        """Return N ln 2, with N clauses of at most k literals."""
        return _n_clauses(n, self.k) * math.log(2.0)

    def formula(self) -> str:
        """Return the clauses that were kept."""
        return _join(self.clauses, " ∨ ", " ∧ ") or "true"

    def _learn(self, X: Bits, y: Bits) -> None:
        self.clauses = [clause for clause in _clauses(X.shape[1], self.k) if _any_true(X[y], clause).all()]

    def _evaluate(self, X: Bits) -> Bits:
        found = np.ones(len(X), dtype=np.bool_)
        for clause in self.clauses:
            found &= _any_true(X, clause)
        return found


@dataclass
class Monomials(KCNF):
    """Conjunctions of literals: 1-CNF, with |H| = 3ⁿ + 1 (each variable true, false or absent; and "never").

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.pac import Monomials
    >>> X = np.array([[1, 0, 1], [1, 0, 0], [0, 0, 1], [1, 1, 1]])
    >>> Monomials().fit(X, [1, 1, 0, 0]).formula()
    'x0 ∧ ¬x1'
    >>> Monomials().sample_size(10, 0.1, 0.05)
    140
    """

    k: int = field(default=1, init=False)

    name: ClassVar[str] = "monomials"

    def log_size(self, n: int) -> float:
        """Return ln(3ⁿ + 1)."""
        return n * math.log(3.0) + math.log1p(3.0**-n)


@dataclass
class KDNF(Learner):
    """Disjunctions of terms of at most k literals: keep every term that no negative example satisfies.

    The hypothesis is the most general one: it errs on negative examples only.

    Examples
    --------
    >>> import numpy as np
    >>> from learnable.theory.pac import KDNF
    >>> X = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1], [1, 1, 1], [0, 0, 1], [1, 1, 0]])
    >>> KDNF(2).fit(X, (X[:, 0] & X[:, 1]) | X[:, 2]).consistent
    True
    """

    k: int = 1
    terms: list[tuple[Literal, ...]] = field(default_factory=list, init=False)

    name: ClassVar[str] = "k-DNF"

    def log_size(self, n: int) -> float:
        """Return N ln 2, with N terms of at most k literals."""
        return _n_clauses(n, self.k) * math.log(2.0)

    def formula(self) -> str:
        """Return the terms that were kept."""
        return _join(self.terms, " ∧ ", " ∨ ") or "false"

    def _learn(self, X: Bits, y: Bits) -> None:
        self.terms = [term for term in _clauses(X.shape[1], self.k) if not _all_true(X[~y], term).any()]

    def _evaluate(self, X: Bits) -> Bits:
        found = np.zeros(len(X), dtype=np.bool_)
        for term in self.terms:
            found |= _all_true(X, term)
        return found


@dataclass
class CNFOrDNF(Learner):
    """Unions of a k-CNF and a k-DNF formula.

    Examples
    --------
    >>> import itertools
    >>> import numpy as np
    >>> from learnable.theory.pac import CNFOrDNF, KCNF, KDNF
    >>> X = np.array(list(itertools.product([0, 1], repeat=4)))
    >>> y = (X[:, 0] & X[:, 1]) | ((X[:, 2] | X[:, 3]) & (1 - X[:, 0]))
    >>> CNFOrDNF(1).fit(X, y).consistent, CNFOrDNF(2).fit(X, y).consistent
    (False, True)
    """

    k: int = 1
    cnf: KCNF = field(default_factory=KCNF, init=False)
    dnf: KDNF = field(default_factory=KDNF, init=False)

    name: ClassVar[str] = "k-CNF ∨ k-DNF"

    def log_size(self, n: int) -> float:
        """Return 2N ln 2."""
        return 2.0 * _n_clauses(n, self.k) * math.log(2.0)

    def formula(self) -> str:
        """Return both parts."""
        return f"({self.cnf.formula()}) ∨ ({self.dnf.formula()})"

    def _learn(self, X: Bits, y: Bits) -> None:
        self.dnf = KDNF(self.k)
        self.dnf.fit(X, y)
        left = y & ~self.dnf.predict(X)
        self.cnf = KCNF(self.k)
        # With no positive left, the conjunction of all clauses is false everywhere.
        self.cnf.fit(X, left)

    def _evaluate(self, X: Bits) -> Bits:
        return self.cnf.predict(X) | self.dnf.predict(X)


@dataclass
class DNFAndCNF(Learner):
    """Intersections of a k-DNF and a k-CNF formula: the complement of a union of a k-CNF and a k-DNF formula."""

    k: int = 1
    complement: CNFOrDNF = field(default_factory=CNFOrDNF, init=False)

    name: ClassVar[str] = "k-DNF ∧ k-CNF"

    def log_size(self, n: int) -> float:
        """Return 2N ln 2."""
        return 2.0 * _n_clauses(n, self.k) * math.log(2.0)

    def formula(self) -> str:
        """Return the complement's formula, negated."""
        return f"¬({self.complement.formula()})"

    def _learn(self, X: Bits, y: Bits) -> None:
        self.complement = CNFOrDNF(self.k)
        self.complement.fit(X, ~y)

    def _evaluate(self, X: Bits) -> Bits:
        return ~self.complement.predict(X)


@dataclass
class DecisionLists(Learner):
    """Lists "if term₁ then b₁, else if term₂ then b₂, …, else b", with terms of at most k literals.

    Examples
    --------
    >>> import itertools
    >>> import numpy as np
    >>> from learnable.theory.pac import DecisionLists
    >>> X = np.array(list(itertools.product([0, 1], repeat=3)))
    >>> y = np.where(X[:, 0] == 1, 0, np.where(X[:, 1] == 0, 1, X[:, 2]))
    >>> DecisionLists().fit(X, y).formula()
    'if x0 then 0; if ¬x1 then 1; if x2 then 1; else 0'
    """

    k: int = 1
    rules: list[tuple[tuple[Literal, ...], bool]] = field(default_factory=list, init=False)

    name: ClassVar[str] = "decision lists"

    def log_size(self, n: int) -> float:
        """Return ln(2 · 3^N · N!): every term with label 0, 1 or absent, in every order, and a last label."""
        n_terms = _n_clauses(n, self.k)
        return math.log(2.0) + n_terms * math.log(3.0) + math.lgamma(n_terms + 1.0)

    def formula(self) -> str:
        """Return the list."""
        parts = []
        for term, label in self.rules:
            parts.append(f"if {_join([term], ' ∧ ', '')} then {int(label)}" if term else f"else {int(label)}")
        return "; ".join(parts)

    def _learn(self, X: Bits, y: Bits) -> None:
        terms = [(term, _all_true(X, term)) for term in _clauses(X.shape[1], self.k)]
        left = np.ones(len(X), dtype=np.bool_)
        self.rules = []
        while True:
            labels = y[left]
            if len(labels) == 0 or labels.all() or not labels.any():
                self.rules.append(((), bool(len(labels) and labels[0])))
                return
            for term, covered in terms:
                here = covered & left
                if here.any() and (y[here].all() or not y[here].any()):
                    self.rules.append((term, bool(y[here][0])))
                    left &= ~here
                    break
            else:
                # No list agrees with all examples; the majority ends this one.
                self.rules.append(((), bool(labels.mean() >= 0.5)))
                return

    def _evaluate(self, X: Bits) -> Bits:
        found = np.zeros(len(X), dtype=np.bool_)
        open_rows = np.ones(len(X), dtype=np.bool_)
        for term, label in self.rules:
            here = open_rows & _all_true(X, term)
            found[here] = label
            open_rows &= ~here
        return found


@dataclass
class Thresholds(Learner):
    """Boolean thresholds w·x ≥ b with real weights, found by a linear program.

    Weights of 0 and 1 only are hard to find; the hypothesis here may have any, which is enough to predict.

    Examples
    --------
    >>> import itertools
    >>> import numpy as np
    >>> from learnable.theory.pac import Thresholds
    >>> X = np.array(list(itertools.product([0, 1], repeat=4)))
    >>> Thresholds().fit(X, X.sum(axis=1) >= 2).consistent, Thresholds().fit(X, X[:, 0] ^ X[:, 1]).consistent
    (True, False)
    """

    weights: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0), init=False)
    threshold: float = field(default=0.0, init=False)

    name: ClassVar[str] = "Boolean thresholds"

    def log_size(self, n: int) -> float:
        """Return the logarithm of Cover's number for the 2ⁿ corners of the cube, or n² ln 2 beyond 40 variables."""
        return math.log(2.0) + log_sauer(2**n - 1, n) if n <= 40 else n**2 * math.log(2.0)

    def formula(self) -> str:
        """Return the inequality."""
        terms = [f"{weight:+.3g}·x{i}" for i, weight in enumerate(self.weights) if abs(weight) > 1e-9]
        return f"{' '.join(terms) or '0'} ≥ {self.threshold:.3g}"

    def _learn(self, X: Bits, y: Bits) -> None:
        signs = np.where(y, 1.0, -1.0)
        rows = np.column_stack([X.astype(np.float64), -np.ones(len(X))])
        # Least total violation of signs·(w·x − b) ≥ 1: zero if and only if a threshold is consistent.
        m, d = rows.shape
        cost = np.r_[np.zeros(d), np.ones(m)]
        left = np.hstack([-signs[:, None] * rows, -np.eye(m)])
        found = linprog(cost, A_ub=left, b_ub=-np.ones(m), bounds=[(None, None)] * d + [(0, None)] * m)
        if found.status != 0:
            raise DataError(f"Thresholds: the linear program was not solved; {found.message}")
        self.weights = np.asarray(found.x[: d - 1])
        self.threshold = float(found.x[d - 1])

    def _evaluate(self, X: Bits) -> Bits:
        return np.asarray(X.astype(np.float64) @ self.weights >= self.threshold)


def _n_clauses(n: int, k: int) -> int:
    """Return the number of clauses, or terms, of one to k literals over n variables, none with x and ¬x."""
    check_parameters("pac", {"k": k}, {"k": COUNT})
    return sum(math.comb(n, size) * 2**size for size in range(1, min(k, n) + 1))


def _clauses(n: int, k: int) -> list[tuple[Literal, ...]]:
    count = _n_clauses(n, k)
    if count > MOST_CLAUSES:
        raise ParameterError(f"pac: k={k} over {n} variables has {count} clauses; lower k.")
    found: list[tuple[Literal, ...]] = []
    for size in range(1, min(k, n) + 1):
        for variables in combinations(range(n), size):
            for signs in product((True, False), repeat=size):
                found.append(tuple(zip(variables, signs, strict=True)))
    return found


def _any_true(X: Bits, clause: tuple[Literal, ...]) -> Bits:
    found = np.zeros(len(X), dtype=np.bool_)
    for variable, sign in clause:
        found |= X[:, variable] == sign
    return found


def _all_true(X: Bits, term: tuple[Literal, ...]) -> Bits:
    found = np.ones(len(X), dtype=np.bool_)
    for variable, sign in term:
        found &= X[:, variable] == sign
    return found


def _join(parts: list[tuple[Literal, ...]], inside: str, between: str) -> str:
    words = [inside.join(f"{'' if sign else '¬'}x{variable}" for variable, sign in part) for part in parts]
    if between and any(len(part) > 1 for part in parts):
        words = [f"({word})" for word in words]
    return between.join(words)


def _bits(owner: str, X: Any) -> Bits:
    array = np.asarray(X)
    if array.ndim != 2 or array.shape[1] == 0 or not np.isin(array, (0, 1)).all():
        raise DataError(f"{owner}: X must be zeros and ones in two dimensions; got shape {array.shape}.")
    return array.astype(np.bool_)


def _examples(owner: str, X: Any, y: Any) -> tuple[Bits, Bits]:
    bits = _bits(owner, X)
    labels = np.asarray(y)
    if labels.shape != (len(bits),) or not np.isin(labels, (0, 1)).all():
        raise DataError(f"{owner}: y must be {len(bits)} zeros and ones; got shape {labels.shape}.")
    return bits, labels.astype(np.bool_)
