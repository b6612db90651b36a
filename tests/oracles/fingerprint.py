"""The checksum of a table from its definition, one element at a time, in Python's own integers."""

from __future__ import annotations

import hashlib
import json
import struct

WORD = 2**64


def checksum(rows, targets=None, weights=None, labels=None):
    """Return the checksum of lists of rows, of each row's targets, and of weights, with the class labels."""
    total = 0
    for number, row in enumerate(rows):
        h = sum(fold(bits(value)) * odd_number(column) for column, value in enumerate(row))
        h += fold(bits(1.0 if weights is None else weights[number])) * odd_number(2**32)
        if targets is not None:
            h += sum(fold(bits(v)) * odd_number(2**33 + k) for k, v in enumerate(targets[number]))
        total += splitmix(h % WORD)
    n_targets = 0 if targets is None else len(targets[0])
    for place, size in enumerate((len(rows), len(rows[0]), n_targets)):
        total += size * odd_number(2**34 + place)
    if labels is not None:
        total += int.from_bytes(hashlib.blake2b(json.dumps(labels).encode(), digest_size=8).digest(), "little")
    return total % WORD


def bits(value):
    """Return the 64 bits of a float64; −0.0 counts as 0.0."""
    return struct.unpack("<Q", struct.pack("<d", 0.0 if value == 0 else value))[0]


def fold(word):
    """Xor the upper half into the lower, and then each quarter into the next."""
    word ^= word // 2**32
    return word ^ word // 2**16


def splitmix(word):
    """Return the finaliser of SplitMix64 (Steele, Lea & Flood, 2014)."""
    word = (word ^ word // 2**30) * 0xBF58476D1CE4E5B9 % WORD
    word = (word ^ word // 2**27) * 0x94D049BB133111EB % WORD
    return word ^ word // 2**31


def odd_number(column):
    """Return the column's multiplier: SplitMix64's output number `column`, made odd."""
    return splitmix((column + 1) * 0x9E3779B97F4A7C15 % WORD) | 1
