"""Files of solutions: what is refused."""

import json

import numpy as np
import pytest

import learnable as ln
from learnable.core import _encoding, model_file
from learnable.core.errors import ModelFileError, VerificationError
from learnable.decisions.mdp import policy_iteration, problems


def write(document, arrays, path):
    """Write a file with a checksum that fits."""
    header, order = model_file._pack(document, arrays)
    path.write_bytes(header + b"".join(bytes(model_file._bytes_of(arrays[name])) for name in order))


def test_only_what_stands_by_itself_is_loaded_by_itself(tmp_path):
    solution = policy_iteration(problems.gambler(goal=4))
    document, _ = _encoding.encode(solution)
    assert set(document) == {"part"}
    inner = document["part"]["fields"]["certificate_"]["$part"]
    write({"part": inner}, {}, tmp_path / "c.safetensors")
    with pytest.raises(ModelFileError, match="only ever a part of a model"):
        ln.load(tmp_path / "c.safetensors")


@pytest.mark.parametrize(
    "change, message",
    [
        ({"values": np.zeros(3)}, "do not fit together"),
        ({"policy": np.full(5, -1)}, "must be actions"),
        ({"values": np.full(5, np.nan)}, "finite"),
        ({"proof": "faith"}, "a known one"),
    ],
)
def test_a_solution_whose_arrays_do_not_fit_is_refused(change, message, tmp_path):
    from dataclasses import replace

    solution = replace(policy_iteration(problems.gambler(goal=4)), **change)
    with pytest.raises(ModelFileError, match=message):
        ln.save(solution, tmp_path / "s.safetensors")
    verdict = ln.verify(solution, problems.gambler(goal=4))
    assert not verdict and "damaged" in str(verdict)


def test_what_proves_nothing_is_not_verified():
    with pytest.raises(VerificationError, match="not a model of this library"):
        ln.verify(json, problems.taxi())
