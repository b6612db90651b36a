"""A model file without a fitted member is refused when it is loaded, or nothing public needs that member."""

import contextlib
import copy
import warnings

import numpy as np
import pytest
from tests.mutations import answers, same
from tests.registered import brief, build, fitted, small_table

from learnable.core import model_file
from learnable.core._encoding import encode
from learnable.core._soundness import check_model, is_fitted_name
from learnable.core.errors import LearnableError, ModelFileError, VerificationError
from learnable.core.fitted_members import FITTED, check_fitted_members
from learnable.core.model_file import load, save
from learnable.core.registry import REGISTRY, estimator_names
from learnable.core.verification import verify
from learnable.evaluation.comparison.warm import choices_of


def arrays_in(document):
    """Return the names of the arrays that a part of a document refers to."""
    if isinstance(document, dict):
        found = [document["$array"]] if "$array" in document else []
        for key, item in document.items():
            inside = key in ("$text", "$csr") and isinstance(item, dict)
            found += [name for name in item.values() if isinstance(name, str)] if inside else arrays_in(item)
        return found
    return [name for item in document for name in arrays_in(item)] if isinstance(document, list) else []


def write_without(model, member, path):
    """Write the file of a model without one fitted member, with a checksum that fits."""
    document, arrays = encode(model)
    gone = arrays_in(document["fitted"].pop(member))
    arrays = {name: array for name, array in arrays.items() if name not in gone}
    header, order = model_file._pack(document, arrays)
    path.write_bytes(header + b"".join(bytes(model_file._bytes_of(arrays[name])) for name in order))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", estimator_names())
def test_a_file_without_a_member_is_refused_or_needs_none(name, tmp_path):
    model, X, y = fitted(name)
    path = tmp_path / "model.safetensors"
    save(copy.deepcopy(model), path)
    expected = answers(load(path), X)
    refused = 0
    for member in encode(copy.deepcopy(model))[0]["fitted"]:
        write_without(copy.deepcopy(model), member, path)
        try:
            loaded = load(path)
        except ModelFileError:
            refused += 1
            continue
        answered = answers(loaded, X)
        declared = type(model)._declared_attributes.get(member)
        if declared is not None and declared.optional:  # what only some fits have may be missed, in words
            refusals = {method for method, answer in answered.items() if isinstance(answer, str) and "Error" in answer}
            answered |= {method: expected[method] for method in refusals & expected.keys()}
        assert same(expected, answered), f"{member}: the file loads, and the model answers otherwise"
        if member == "certificate_":  # of a model whose parameters may be set by hand
            with pytest.raises(VerificationError, match="no certificate"):
                verify(loaded, X, y)
        elif REGISTRY[name].checker:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                assert verify(loaded, X, y), f"{member}: the file loads, and verify does not agree"
    assert refused > 0


def damaged(value):
    """Yield values that a forged file may have in place of a fitted one: other types, lengths and numbers."""
    yield from (None, "x", [1.0], -1, 2**40)
    if isinstance(value, np.ndarray) and value.ndim and value.size:
        yield value[:-1].copy()
        yield value[None]
        yield value.astype(object)
        if value.dtype.kind in "fi":
            yield -value
            far = value.copy()
            far.flat[0] = -3 if value.dtype.kind == "i" else np.nan
            yield far
    if isinstance(value, list):
        yield value[:-1]
        yield [None] * len(value)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", estimator_names())
def test_a_damaged_member_is_refused_in_words_or_accepted(name):
    model = fitted(name)[0]
    refused = 0
    for member, value in vars(model).items():
        if is_fitted_name(member):
            for wrong in damaged(value):
                twin = copy.copy(model)
                vars(twin)[member] = wrong
                try:
                    check_model(twin, name)
                except LearnableError:
                    refused += 1
    assert refused > 0


def missing_in(model):
    """Return the members of the table that a fitted model lacks."""
    try:
        check_fitted_members(type(model).__name__, model, "it")
    except ModelFileError as error:
        return str(error)
    return None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", estimator_names())
def test_every_fit_sets_what_the_table_names(name):
    X, y = small_table(name)
    assert name in FITTED
    assert missing_in(fitted(name)[0]) is None
    n_fits = 0
    for setting in choices_of(name):
        model = brief(build(name)).set_params(**setting)
        with warnings.catch_warnings(), contextlib.suppress(ValueError):  # settings that need others, or other data
            warnings.simplefilter("ignore")
            model.fit(X) if y is None else model.fit(X, y)
            n_fits += 1
            assert missing_in(model) is None, setting
    assert n_fits > 0 or not list(choices_of(name))
