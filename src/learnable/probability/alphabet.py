"""Letters, and codes that stand for one of several letters.

Sequences are strings, or lists of symbols where a letter is more than one character. Symbols are numbered: letters
first, in the order of the alphabet, then the ambiguous codes. `members[s, k]` tells whether symbol s may stand for
letter k.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ..core.errors import DataError, ParameterError

DNA: Final = "ACGT"
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
