import json
import math
from dataclasses import FrozenInstanceError

import pytest
from hypothesis import given
from hypothesis import strategies as st

from learnable.core import Certificate, ParameterError
from learnable.core.estimator import KINDS

numbers = st.floats(allow_nan=True, allow_infinity=True)


@given(kind=st.sampled_from(KINDS), value=numbers, tolerance=numbers)
def test_holds_exactly_when_something_is_proven_and_reaches_its_tolerance(kind, value, tolerance):
    assert Certificate(kind, value, tolerance).holds == (kind != "none" and value <= tolerance)


def test_nan_never_holds():
    assert not Certificate("gap", math.nan, math.inf).holds
    assert not Certificate("gap", 0.0, math.nan).holds


@given(kind=st.sampled_from(KINDS), value=numbers, bound=st.none() | numbers)
def test_the_record_is_strict_json(kind, value, bound):
    record = Certificate(kind, value, 1e-6, bound=bound, n_iter=3, fingerprint="ab").to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["value"] == (value if math.isfinite(value) else None)
    assert (record["kind"], record["n_iter"], record["fingerprint"]) == (kind, 3, "ab")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_sentence_with_its_number(kind):
    sentence = Certificate(kind, 0.0123, 1.0).sentence
    assert sentence
    assert kind == "none" or "0.012" in sentence


def test_what_holds_by_construction_is_said_to():
    claim = Certificate("greedy", 0.0, 1e-9, by_construction=True)
    assert claim.sentence.endswith("by construction")
    assert claim.to_dict()["by_construction"]
    assert "construction" not in Certificate("greedy", 0.0, 1e-9).sentence


def test_a_proven_bound_is_told_with_the_conditions():
    assert "at most 0.0034 (relative) above the optimum" in Certificate("stationarity", 0.5, 1.0, 0.0034).sentence
    assert "above" not in Certificate("stationarity", 0.5, 1.0, math.inf).sentence


def test_the_words_say_when_the_claim_fails():
    assert repr(Certificate("gap", 2.0, 1.0, n_iter=1)).startswith("gap: DOES NOT HOLD; ")
    assert repr(Certificate("gap", 0.5, 1.0, n_iter=1)).endswith("tolerance 1; 1 iteration")
    assert repr(Certificate("none", 0.0, 1.0)) == "none: nothing is proven"


def test_an_unknown_kind_is_refused():
    with pytest.raises(ParameterError, match=r"kind must be one of closed-form, gap, .*; got 'proof'"):
        Certificate("proof", 0.0, 1.0)


def test_a_certificate_cannot_be_changed():
    certificate = Certificate("gap", 0.0, 1.0)
    with pytest.raises(FrozenInstanceError):
        certificate.value = 1.0
    assert certificate == Certificate("gap", 0.0, 1.0)
