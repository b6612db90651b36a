r"""Motifs: the letters of aligned sequences.

Two models of sequences $z = (x_1, …, x_m)$ over K letters:

- *shared*: all letters are drawn from one distribution p, $P(z \mid p) = \prod_\ell p_{x_\ell}$;
- *position weight matrix*: position ℓ has a distribution $p_\ell$ of its own.

With Dirichlet priors the posteriors are $\mathrm{Dir}(\alpha + n)$, n the counts of the letters, over all positions or
at each of them. Both have an evidence in closed form, so that the data say which of the two they are.

A code that stands for several letters, such as N, is marginalised: its probability is the sum of theirs. A code that
may be any letter says nothing and is left out of the counts; another one is shared out among its letters in proportion
to their expected probabilities, until these do not change (EM).

Scores of a motif are log-odds $\log P(z \mid \text{motif})/P(z \mid \text{background})$ (Stormo, 2000). Scanning is one
look-up a position and letter: O(Lm) for a sequence of length L.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from ..core.errors import DataError, ParameterError
from .base import Array
from .conjugate.dirichlet_multinomial import DirichletCategorical

_MAX_STEPS = 10_000

_CONVERGED = 1e-12

DNA: Final = "ACGT"


class Hit(NamedTuple):
    """Where a motif was found in a longer sequence."""

    start: int  #: position of its first letter, from 0
    strand: str  #: "+", or "-" for the reverse complement
    score: float  #: log-odds in bits
    site: str  #: the letters there, read along the motif


class MotifModel:
    """The letters of aligned sequences: one distribution for all positions, or one for each.

    Parameters
    ----------
    alphabet : str or sequence of str
        The letters; "ACGT" by default.
    shared : bool
        Whether all positions share one distribution of letters; sequences may then have any length.
    prior : float or array of shape (n_letters,)
        The Dirichlet prior's concentrations α > 0: pseudo-counts of the letters.
    background : array of shape (n_letters,), optional
        Probabilities of the letters outside the motif, for log-odds and information; equal ones if left out.
    ambiguity : mapping, optional
        From codes to the letters that they may stand for; by default the IUPAC codes for DNA and RNA. Pass {} to
        allow none.

    Attributes
    ----------
    counts_ : array of shape (n_positions, n_letters), or (1, n_letters) if shared
        (Expected) counts of the letters.
    posterior_ : DirichletCategorical
        One for each position, or a single one.
    probabilities_ : array of the shape of `counts_`
        The position weight matrix: posterior means, which are the probabilities of the next letter.
    log_marginal_likelihood_ : float
        The evidence of the sequences; with ambiguous codes, that of the shared-out counts.
    length_ : int or None
        The number of positions; None if shared.

    Examples
    --------
    >>> model = MotifModel().fit(["TATAAT", "TATGAT", "TACAAT", "TATRAT"])
    >>> model.consensus()
    'TATAAT'
    >>> model.scan("GGCTATAATGC").argmax()
    np.int64(3)
    """

    def __init__(
        self,
        alphabet: str | Sequence[str] = DNA,
        *,
        shared: bool = False,
        prior: ArrayLike = 1.0,
        background: ArrayLike | None = None,
        ambiguity: Mapping[str, Iterable[str]] | None = None,
    ) -> None:
        self.alphabet = Alphabet(alphabet, ambiguity)
        self.shared = bool(shared)
        K = len(self.alphabet)
        try:
            self.prior = np.broadcast_to(np.asarray(prior, dtype=np.float64), (K,)).copy()
        except ValueError:
            raise ParameterError(f"MotifModel: prior must be one number or {K} of them, got {prior!r}.") from None
        if not np.all((self.prior > 0.0) & np.isfinite(self.prior)):
            raise ParameterError(f"MotifModel: prior must be > 0 and finite, got {prior!r}.")
        self.background = np.full(K, 1.0 / K) if background is None else np.asarray(background, dtype=np.float64)
        if self.background.shape != (K,) or not np.all(self.background > 0.0):
            raise ParameterError(f"MotifModel: background must be {K} probabilities > 0, got {background!r}.")
        if abs(self.background.sum() - 1.0) > 1e-9:
            raise ParameterError(f"MotifModel: background must have the sum 1, got {self.background.sum():g}.")

    def __repr__(self) -> str:
        kind = "shared" if self.shared else "positions"
        fitted = f", {self.n_sequences_} sequences" if hasattr(self, "counts_") else ""
        return f"MotifModel({''.join(self.alphabet.letters)}, {kind}{fitted})"

    def fit(self, sequences: Any, weights: ArrayLike | None = None) -> Self:
        """Learn from aligned sequences.

        Parameters
        ----------
        sequences : list of str, or of lists of symbols
            Of one length, unless the distribution is shared.
        weights : array of shape (n_sequences,), optional
            Non-negative; a weight of 2 counts as the same sequence twice.
        """
        return self._learn(*self._count(sequences, weights))

    def partial_fit(self, sequences: Any, weights: ArrayLike | None = None) -> Self:
        """Learn from some more sequences; the result is that of one fit on all of them."""
        if not hasattr(self, "counts_"):
            return self.fit(sequences, weights)
        symbols, length, n = self._count(sequences, weights)
        if length != self.length_:
            raise DataError(f"MotifModel: sequences must have the motif's {self.length_} letters, got {length}.")
        return self._learn(self._symbol_counts + symbols, length, self.n_sequences_ + n)

    def _count(self, sequences: Any, weights: ArrayLike | None) -> tuple[Array, int | None, int]:
        """Return how often each symbol stands at each position, the length, and the number of sequences."""
        codes = self.alphabet.encode(sequences)
        if not codes:
            raise DataError("MotifModel: fit needs at least one sequence, got none.")
        w = np.ones(len(codes)) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != (len(codes),) or not np.all((w >= 0.0) & np.isfinite(w)):
            raise DataError(f"MotifModel: weights must be one number >= 0 a sequence ({len(codes)}), got {weights!r}.")
        size = len(self.alphabet.symbols)
        if self.shared:
            total = sum(v * np.bincount(row, minlength=size) for v, row in zip(w, codes, strict=True))
            return np.asarray(total, dtype=np.float64)[None], None, len(codes)
        table = self._aligned(codes)
        flat = (table + size * np.arange(table.shape[1])).ravel()
        counts = np.bincount(flat, np.repeat(w, table.shape[1]), size * table.shape[1]).astype(np.float64)
        return counts.reshape(table.shape[1], size), table.shape[1], len(codes)

    def _aligned(self, codes: list[NDArray[np.intp]], length: int | None = None) -> NDArray[np.intp]:
        """Return sequences of one length as a table."""
        length = len(codes[0]) if length is None else length
        for number, row in enumerate(codes):
            if len(row) != length or not length:
                raise DataError(
                    f"MotifModel: aligned sequences must have one length, {length}; sequence {number} has {len(row)} "
                    "letters. Cut or pad them, or use shared=True."
                )
        return np.stack(codes) if codes else np.zeros((0, length), dtype=np.intp)

    def _learn(self, symbols: Array, length: int | None, n: int) -> Self:
        self._symbol_counts = symbols
        self.length_ = length
        self.n_sequences_ = n
        self.counts_ = _share_out(symbols, self.alphabet.members, self.prior)
        alpha = self.prior + self.counts_
        self.posterior_ = DirichletCategorical(alpha[0] if self.shared else alpha)
        self.probabilities_ = alpha / alpha.sum(axis=1, keepdims=True)
        prior = np.broadcast_to(self.prior, alpha.shape)
        self.log_marginal_likelihood_ = float(np.sum(_log_beta(alpha) - _log_beta(prior)))
        return self

    def _require_fitted(self) -> None:
        if not hasattr(self, "counts_"):
            raise DataError("MotifModel: it has not seen any sequences; call fit first.")

    @property
    def information_(self) -> Array:
        """Information of each position in bits: the divergence Σ p log₂(p/q) of its letters from the background."""
        self._require_fitted()
        return np.sum(self.probabilities_ * np.log2(self.probabilities_ / self.background), axis=1)

    def consensus(self) -> str:
        """Return the most probable letter of each position."""
        self._require_fitted()
        return "".join(self.alphabet.letters[k] for k in self.probabilities_.argmax(axis=1))

    def interval(self, level: float = 0.95) -> tuple[Array, Array]:
        """Return credible intervals of the probabilities, of the shape of `probabilities_` (one row if shared)."""
        self._require_fitted()
        low, high = self.posterior_.interval(level)
        return np.atleast_2d(low), np.atleast_2d(high)

    def map(self) -> Array:
        """Return the most probable probabilities (n + α - 1)/Σ(n + α - 1); with α = 1 those of greatest likelihood."""
        self._require_fitted()
        return np.atleast_2d(self.posterior_.map().p)

    def score_samples(self, sequences: Any) -> Array:
        """Return the log-probability of each sequence under the posterior predictive distribution.

        If the distribution is shared, one letter tells something about the next, and that is taken into account.
        """
        self._require_fitted()
        codes = self.alphabet.encode(sequences)
        if self.shared:
            return np.array([self._score_shared(row) for row in codes])
        return self._look_up(np.log(self.probabilities_ @ self.alphabet.members.T), codes)

    def log_odds(self, sequences: Any) -> Array:
        """Return log₂ P(sequence | motif)/P(sequence | background) of each sequence: scores in bits."""
        self._require_fitted()
        codes = self.alphabet.encode(sequences)
        if self.shared:
            outside = np.log(self.alphabet.members @ self.background)
            scores = np.array([self._score_shared(row) - outside[row].sum() for row in codes])
            return scores / math.log(2.0)
        return self._look_up(self._odds(), codes)

    def _look_up(self, table: Array, codes: list[NDArray[np.intp]]) -> Array:
        rows = self._aligned(codes, self.length_)
        return table[np.arange(rows.shape[1]), rows].sum(axis=1)

    def _odds(self) -> Array:
        """Return the log-odds of every symbol at every position, in bits."""
        members = self.alphabet.members
        return np.log2(self.probabilities_ @ members.T) - np.log2(members @ self.background)

    def _score_shared(self, row: NDArray[np.intp]) -> float:
        """Return log P(x₁)P(x₂ | x₁)…, each from the counts before it."""
        alpha = (self.prior + self.counts_)[0]
        total = 0.0
        members = self.alphabet.members
        if len(row) and row.max(initial=0) < len(self.alphabet):
            after = alpha + np.bincount(row, minlength=len(alpha))
            return float(_log_beta(after) - _log_beta(alpha))
        for symbol in row:
            share = alpha * members[symbol]
            total += math.log(share.sum() / alpha.sum())
            if members[symbol].sum() < len(alpha):
                alpha = alpha + share / share.sum()
        return total

    def scan(self, sequence: Any, *, reverse: bool = False) -> Array:
        """Return the log-odds in bits of the motif at every offset of a longer sequence.

        Parameters
        ----------
        sequence : str or list of symbols
            Of length L.
        reverse : bool
            Whether to score the reverse complement of each window instead; DNA and RNA only.

        Returns
        -------
        array of shape (L - length_ + 1,)
            Empty if the sequence is shorter than the motif.
        """
        self._require_fitted()
        if self.length_ is None:
            raise ParameterError("MotifModel: a shared distribution has no length to scan with; use shared=False.")
        codes = self.alphabet.encode_one(sequence)
        odds = self._odds_reversed() if reverse else self._odds()
        n = max(len(codes) - self.length_ + 1, 0)
        scores = np.zeros(n)
        for position, row in enumerate(odds):
            scores += row[codes[position : position + n]]
        return scores

    def _odds_reversed(self) -> Array:
        """Return the log-odds of every symbol of the given strand at every position of the window."""
        pairs = self.alphabet.complement()
        members = self.alphabet.members
        # A letter of the given strand is its complement on the other one, where the motif runs backwards.
        inside = self.probabilities_[::-1][:, pairs] @ members.T
        return np.log2(inside) - np.log2(members @ self.background[pairs])

    def search(self, sequence: Any, threshold: float = 0.0, *, both_strands: bool = False) -> list[Hit]:
        """Return where the log-odds reach a threshold in bits, the best first.

        Parameters
        ----------
        sequence : str or list of symbols
            What to scan.
        threshold : float
            The least score of a hit. If motifs start at a share f of all places, log₂((1 - f)/f) is where one is as
            probable as not.
        both_strands : bool
            Whether to look for the reverse complement too.
        """
        hits = []
        text = sequence if isinstance(sequence, str) else list(sequence)
        for strand in ("+", "-") if both_strands else ("+",):
            scores = self.scan(sequence, reverse=strand == "-")
            for start in np.flatnonzero(scores >= threshold).tolist():
                site = "".join(text[start : start + (self.length_ or 0)])
                hits.append(
                    Hit(start, strand, float(scores[start]), self._complemented(site) if strand == "-" else site)
                )
        return sorted(hits, key=lambda hit: (-hit.score, hit.start, hit.strand))

    def _complemented(self, site: str) -> str:
        pairs = self.alphabet.complement()
        members = self.alphabet.members
        symbols = self.alphabet.symbols
        other = {}
        for number, symbol in enumerate(symbols):  # the code whose letters are the complements
            match = np.flatnonzero((members == members[number][pairs]).all(axis=1))
            other[symbol] = symbols[match[0]] if match.size else symbol
        return "".join(other[letter] for letter in reversed(site))

    def sample(self, size: int, length: int | None = None, random_state: Any = None) -> list[str]:
        """Draw sequences from the posterior predictive distribution: probabilities first, then letters.

        Parameters
        ----------
        size : int
            How many.
        length : int, optional
            Of each; needed if the distribution is shared.
        random_state : int, Generator or None
            The same integer gives the same sequences.
        """
        self._require_fitted()
        m = self.length_ if self.length_ is not None else length
        if m is None:
            raise ParameterError("MotifModel: sample needs a length, as a shared distribution has none.")
        rng = np.random.default_rng(random_state)
        members = self.posterior_.sample(size, rng)
        draws = members.sample(m, rng).T if self.shared else members.sample((), rng)
        letters = np.array(self.alphabet.letters)
        return ["".join(row) for row in letters[draws.astype(np.intp)]]

    def logo(self, *, title: str = "Sequence logo", first: int = 1) -> Any:
        """Return the sequence logo as SVG; `first` is the number of the first position. See `plots.sequence_logo`."""
        self._require_fitted()
        from ..plots.logo import sequence_logo

        return sequence_logo(
            self.probabilities_, self.alphabet.letters, background=self.background, title=title, first=first
        )


def _share_out(symbols: Array, members: Array, prior: Array) -> Array:
    """Return the expected counts of letters for counts of symbols (m, S), by EM."""
    K = members.shape[1]
    counts = symbols[:, :K].copy()
    some = np.flatnonzero((members.sum(axis=1) > 1) & (members.sum(axis=1) < K))
    unclear = symbols[:, some]
    if not unclear.any():
        return counts
    M = members[some]
    found = counts
    for _ in range(_MAX_STEPS):
        alpha = prior + found
        share = unclear / (alpha @ M.T)  # each code's count over the mass of its letters
        new = counts + alpha * (share @ M)
        if np.max(np.abs(new - found)) <= _CONVERGED * max(1.0, float(np.max(new))):
            return new
        found = new
    return found


def _log_beta(alpha: Array) -> Array:
    """Return Σ log Γ(α_k) - log Γ(Σα)."""
    return np.asarray(gammaln(alpha).sum(axis=-1) - gammaln(alpha.sum(axis=-1)))


# Letters, and codes that stand for one of several letters.
#
# Sequences are strings, or lists of symbols where a letter is more than one character. Symbols are numbered: letters
# first, in the order of the alphabet, then the ambiguous codes. `members[s, k]` tells whether symbol s may stand for
# letter k.


#: The ambiguity codes of nucleotides (IUPAC-IUB, 1984); N may be any of the four.
IUPAC: Final[Mapping[str, str]] = {
    "R": "AG", "Y": "CT", "S": "CG", "W": "AT", "K": "GT", "M": "AC",
    "B": "CGT", "D": "AGT", "H": "ACT", "V": "ACG", "N": "ACGT",
}  # fmt: skip

_COMPLEMENTS: Final = {"ACGT": "TGCA", "ACGU": "UGCA"}


class Alphabet:
    """The letters of sequences, with codes that stand for one of several.

    Parameters
    ----------
    letters : str or sequence of str
        The letters, each once; at least two.
    ambiguity : mapping, optional
        From a code to the letters it may stand for; by default the IUPAC codes for "ACGT" (and "ACGU"), else none.

    Examples
    --------
    >>> Alphabet("ACGT").encode(["GATTACA"])
    [array([2, 0, 3, 3, 0, 1, 0])]
    >>> Alphabet("ab", ambiguity={"?": "ab"}).symbols
    ('a', 'b', '?')
    """

    def __init__(
        self, letters: str | Sequence[str] = DNA, ambiguity: Mapping[str, Iterable[str]] | None = None
    ) -> None:
        self.letters = tuple(letters)
        if len(self.letters) < 2 or len(set(self.letters)) < len(self.letters) or "" in self.letters:
            raise ParameterError(f"MotifModel: alphabet must hold two or more letters, each once, got {letters!r}.")
        if not all(isinstance(letter, str) for letter in self.letters):
            raise ParameterError(f"MotifModel: alphabet must hold strings, got {letters!r}.")
        if ambiguity is None:
            ambiguity = IUPAC if self.letters == tuple("ACGT") else {}
            if self.letters == tuple("ACGU"):
                ambiguity = {code: some.replace("T", "U") for code, some in IUPAC.items()}
        for code, some in ambiguity.items():
            if code in self.letters or not isinstance(code, str) or not code:
                raise ParameterError(f"MotifModel: ambiguity must name codes that are no letters, got {code!r}.")
            if not set(some) or not set(some) <= set(self.letters):
                raise ParameterError(
                    f"MotifModel: ambiguity must map {code!r} to letters of the alphabet, got {some!r}."
                )
        self.symbols = (*self.letters, *ambiguity)
        self.members = np.zeros((len(self.symbols), len(self.letters)))
        self.members[: len(self.letters)] = np.eye(len(self.letters))
        for row, some in enumerate(ambiguity.values(), start=len(self.letters)):
            self.members[row, [self.letters.index(letter) for letter in some]] = 1.0
        self._numbers = {symbol: number for number, symbol in enumerate(self.symbols)}
        self._by_character = all(len(symbol) == 1 for symbol in self.symbols)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Alphabet)
            and self.symbols == other.symbols
            and bool((self.members == other.members).all())
        )

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __len__(self) -> int:
        return len(self.letters)

    def encode(self, sequences: Any) -> list[NDArray[np.intp]]:
        """Return the numbers of the symbols of each sequence."""
        if isinstance(sequences, str):
            raise DataError(f"MotifModel: sequences must be a list of them, got one string {sequences[:20]!r}.")
        return [self.encode_one(sequence, number) for number, sequence in enumerate(sequences)]

    def encode_one(self, sequence: Any, number: int = 0) -> NDArray[np.intp]:
        """Return the numbers of the symbols of one sequence; `number` is its place in a list, for messages."""
        if isinstance(sequence, str) and self._by_character:
            points = np.frombuffer(sequence.encode("utf-32-le"), dtype=np.uint32)
            known = np.array([ord(symbol) for symbol in self.symbols], dtype=np.uint32)
            order = np.argsort(known)
            place = np.minimum(np.searchsorted(known[order], points), len(known) - 1)
            codes = order[place]
            wrong = known[codes] != points
            if wrong.any():
                self._refuse(sequence[int(np.argmax(wrong))], number, int(np.argmax(wrong)))
            return codes.astype(np.intp)
        if isinstance(sequence, (str, bytes)) or not isinstance(sequence, Iterable):
            raise DataError(f"MotifModel: sequence {number} must be a string or a list of symbols, got {sequence!r}.")
        found = [self._numbers.get(symbol, -1) for symbol in sequence]
        if -1 in found:
            self._refuse(list(sequence)[found.index(-1)], number, found.index(-1))
        return np.array(found, dtype=np.intp)

    def _refuse(self, symbol: Any, number: int, position: int) -> None:
        hint = ""
        if isinstance(symbol, str) and symbol.upper() in self._numbers:
            hint = " Pass sequence.upper()."
        elif isinstance(symbol, str) and symbol in ("-", "."):
            hint = f" Pass ambiguity={{{symbol!r}: alphabet, …}} if a gap may be any letter."
        shown = "".join(self.letters) if self._by_character else ", ".join(self.letters)
        raise DataError(
            f"MotifModel: sequence {number} has {symbol!r} at position {position}, which is no letter of {shown} and "
            f"no ambiguity code.{hint}"
        )

    def complement(self) -> NDArray[np.intp]:
        """Return the number of the letter that pairs with each letter; an error for what is no DNA or RNA."""
        pairs = _COMPLEMENTS.get("".join(self.letters))
        if pairs is None:
            raise ParameterError(f"MotifModel: only DNA and RNA have two strands, got the alphabet {self.letters!r}.")
        return np.array([self.letters.index(letter) for letter in pairs], dtype=np.intp)
