"""Letters, ambiguity codes, and sequences of symbols."""

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.probability import Alphabet


def test_letters_and_codes():
    dna = Alphabet()
    assert dna.symbols[:4] == tuple("ACGT") and len(dna.symbols) == 15 and len(dna) == 4
    assert np.array_equal(dna.members[dna.symbols.index("R")], [1, 0, 1, 0])
    assert np.array_equal(dna.encode_one("NACGT"), [14, 0, 1, 2, 3])
    assert np.array_equal(dna.complement(), [3, 2, 1, 0])
    assert Alphabet("ACGU").members[4 + 1].tolist() == [0, 1, 0, 1]  # Y
    assert Alphabet("ACGT") == dna != Alphabet("ACGT", {}) and hash(dna) == hash(Alphabet())


def test_any_symbols():
    words = Alphabet(["alpha", "beta"], ambiguity={"?": ["alpha", "beta"]})
    assert np.array_equal(words.encode_one(["beta", "?", "alpha"]), [1, 2, 0])
    assert np.array_equal(Alphabet("αβγ").encode_one("γα"), [2, 0])
    assert Alphabet().encode_one("").shape == (0,)


def test_refusals():
    with pytest.raises(DataError, match=r"sequence 1 has 'x' at position 2, which is no letter of ACGT"):
        Alphabet().encode(["ACG", "ACx"])
    with pytest.raises(DataError, match=r"Pass sequence\.upper\(\)"):
        Alphabet().encode(["acgt"])
    with pytest.raises(DataError, match="if a gap may be any letter"):
        Alphabet().encode(["AC-T"])
    with pytest.raises(DataError, match="got one string"):
        Alphabet().encode("ACGT")
    with pytest.raises(DataError, match="must be a string or a list of symbols, got 3"):
        Alphabet().encode([3])
    with pytest.raises(ParameterError, match="two or more letters, each once"):
        Alphabet("AA")
    with pytest.raises(ParameterError, match="codes that are no letters"):
        Alphabet("AB", {"A": "AB"})
    with pytest.raises(ParameterError, match="to letters of the alphabet"):
        Alphabet("AB", {"C": "AX"})
    with pytest.raises(ParameterError, match="only DNA and RNA"):
        Alphabet("AB").complement()
