"""Sequences are cut between them, and their checksum knows their order."""

import numpy as np
import pytest

from learnable import PoissonHMM
from learnable.sequences.baum_welch import cut_sequences, read_sequences

NO_CODES = np.empty(0, dtype=np.int64)


@pytest.mark.threaded
def test_blocks_hold_whole_sequences_in_order():
    lengths = np.array([40_000, 10, 20, 70_000, 5])
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    X = np.arange(offsets[-1], dtype=float)[:, None]
    blocks = cut_sequences(X, NO_CODES, offsets)
    np.testing.assert_array_equal(np.concatenate([block.lines for block in blocks]), X)
    np.testing.assert_array_equal(np.concatenate([np.diff(block.offsets) for block in blocks]), lengths)
    assert len(blocks) == 3


def test_the_checksum_knows_order_and_lengths():
    X = np.array([[1.0], [2.0], [3.0], [np.nan]])

    def checksum(rows, lengths=None):
        return read_sequences(PoissonHMM(), rows, lengths, None).fingerprint

    assert checksum(X) == checksum(X.copy(), [4])
    assert len({checksum(X), checksum(X[::-1]), checksum(X, [2, 2]), checksum(X, [3, 1])}) == 4
