import dataclasses

import numpy as np
import pytest
from sklearn.linear_model import Ridge as OtherRidge
from tests.core import toys

from learnable.core import VerificationError, verification, verify
from learnable.core.registry import REGISTRY, resolve

X, y = np.arange(6.0).reshape(3, 2), np.array([1.0, 2.0, 6.0])


@pytest.fixture(autouse=True)
def _registry(monkeypatch):
    toys.register(monkeypatch)


@pytest.fixture
def model():
    return toys.Halving().fit(X, y)


def test_an_honest_fit_is_verified(model):
    verdict = verify(model, X, y)
    assert verdict and verdict.ok and verdict.reasons == ()
    assert verdict.recorded is model.certificate_
    assert verdict.value == pytest.approx(model.certificate_.value, rel=1e-6)
    assert str(verdict).startswith("verified: gap ")


def test_a_changed_model_is_not(model):
    model.constant_ += 0.1
    verdict = verify(model, X, y)
    assert not verdict
    assert len(verdict.reasons) == 2
    assert str(verdict).startswith("NOT verified: the gap is 0.1, above the tolerance 1e-06; ")


def test_other_data_are_not_the_data_of_the_fit(model):
    assert any("not those of the fit" in reason for reason in verify(model, X + 1, y).reasons)


def test_a_record_that_claims_too_much_is_caught(model):
    model.certificate_ = dataclasses.replace(model.certificate_, value=model.certificate_.value / 2)
    verdict = verify(model, X, y)
    assert not verdict
    assert "was recorded" in str(verdict)


def test_a_model_of_nan_is_not_verified(model):
    model.constant_ = np.nan
    assert not verify(model, X, y)


def test_a_fit_short_of_its_tolerance_is_not_verified():
    with pytest.warns(UserWarning, match="above the tolerance"):
        model = toys.Halving(max_iter=2).fit(X, y)
    assert not verify(model, X, y)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (toys.Halving(), "this Halving has no certificate; call fit first"),
        (toys.Proofless().fit(X, y), "this Proofless proves nothing"),
        (toys.Box(), "Box optimises nothing"),
        (OtherRidge(), "Ridge is not a model of this library"),
    ],
    ids=["unfitted", "proves nothing", "no checker", "foreign"],
)
def test_what_cannot_be_verified_is_an_error(model, message):
    with pytest.raises(VerificationError, match=message):
        verify(model, X, y)


def test_a_model_inside_that_fails_its_own_check_fails_the_outer_one(model, monkeypatch):
    """Unless its certificate never claimed to hold: a fit that stopped early."""
    wrong = toys.Halving().fit(X, y)
    wrong.constant_ += 0.1
    inner = verify(wrong, X, y)
    plain = resolve(REGISTRY["Halving"].checker)
    monkeypatch.setattr(verification, "resolve", lambda path: lambda *a: plain(*a)._replace(inner=inner))
    verdict = verify(model, X, y)
    assert not verdict and verdict.inner is inner and verdict.reasons[0].startswith("of the model inside, the gap is")
    early = dataclasses.replace(wrong.certificate_, value=1.0)
    inner = dataclasses.replace(inner, recorded=early)
    monkeypatch.setattr(verification, "resolve", lambda path: lambda *a: plain(*a)._replace(inner=inner))
    assert verify(model, X, y)


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6, 1e-8, 1e-12])
@pytest.mark.parametrize("rounding", [0.0, 1e-9, 1e-4, 1.0, 1e10, np.inf])
@pytest.mark.parametrize("excess", [0.5, 3.0, 1e3, 1e18])
def test_a_rounding_allowance_never_exceeds_the_claim(model, monkeypatch, tolerance, rounding, excess):
    """Whatever a checker allows for rounding, a value beyond the claim is not verified, and the reason says so."""
    claim = max(tolerance, verification.FINEST_CLAIM)
    value = excess * claim
    found = verification.Recheck(value, rounding, model.certificate_.fingerprint)
    monkeypatch.setattr(verification, "resolve", lambda checker: lambda *data: found)
    model.certificate_ = dataclasses.replace(model.certificate_, value=tolerance / 2, bound=None, tolerance=tolerance)
    verdict = verify(model, X, y)
    if excess > 2:
        assert not verdict and "above the tolerance" in str(verdict)
        assert ("more than the claim" in str(verdict)) == (rounding > claim)
    elif verdict and value > tolerance:
        assert "of rounding" in str(verdict)
