"""Regularised risks: the three forms are one problem, their gaps are true, and contradictions are told in words."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import ElasticNet as SklearnElasticNet
from sklearn.linear_model import Lasso as SklearnLasso
from sklearn.linear_model import LogisticRegression as SklearnLogistic
from sklearn.svm import SVC
from tests.oracles.risks import linear_program_optimum

import learnable as ln
from learnable.core.errors import DataError, ModelFileError, ParameterError
from learnable.meta import RegularizedRisk, equivalent
from learnable.risk import (
    DevianceLoss,
    ElasticNetPenalty,
    GroupPenalty,
    L1Penalty,
    Lq,
    ProximalPenalty,
    TotalVariationPenalty,
)
from learnable.risk.kernels import Gaussian

GROUPS = GroupPenalty((0, 0, 1, 1, 2))
LOSSES = (
    *("squared", "absolute", "huber", "epsilon_insensitive", "squared_epsilon_insensitive", "quantile", "poisson"),
    *("gamma", DevianceLoss(1.5), "logistic", "hinge", "squared_hinge", "exponential", "softmax", "multiclass_hinge"),
)
PENALTIES = ("l1", "l2", "elasticnet", "norm", GROUPS, "sup", "tv", "fused", "nuclear", Lq(1.0, 1.5))
CLASSES = ("logistic", "hinge", "squared_hinge", "exponential", "perceptron")


def table(loss, seed=0, n=30, p=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    z = X @ np.array([1.0, -2.0, 0.5, 0.0, 1.0])[:p] + rng.normal(size=n)
    if loss in CLASSES:
        return X, np.where(z > 0, "up", "down")
    if loss in ("softmax", "multiclass_hinge"):
        return X, np.digitize(z, [-1.0, 1.0])
    if loss == "gamma":
        return X, rng.gamma(2.0, np.exp(z / 4)) + 0.01
    if loss == "poisson" or isinstance(loss, DevianceLoss):
        return X, rng.poisson(np.exp(z / 4)).astype(float)
    return X, z


def coefficients(model):
    return np.atleast_2d(model.coef_).T


@given(
    loss=st.sampled_from(LOSSES),
    penalty=st.sampled_from(PENALTIES),
    strength=st.sampled_from([0.02, 0.1]),
    seed=st.integers(0, 3),
)
@settings(max_examples=8, deadline=None, derandomize=True)
def test_the_three_forms_agree_at_matching_parameters(loss, penalty, strength, seed):
    forms_agree(*table(loss, seed, n=20), loss, penalty, strength)


@pytest.mark.long
@pytest.mark.parametrize("penalty", PENALTIES, ids=str)
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_the_three_forms_agree_for_every_pair(loss, penalty):
    forms_agree(*table(loss, 0), loss, penalty, 0.05)


def forms_agree(X, y, loss, penalty, strength):
    """Assert that the optima of the three forms are those of one problem."""
    tol = 1e-5
    model = RegularizedRisk(loss, penalty, value=strength, tol=tol).fit(X, y)
    assert model.certificate_.holds
    if model.penalty_ < 1e-6:
        return
    size = model.risk_ - model.least_risk_ + strength * model.penalty_
    ivanov = equivalent(model, "ivanov").model.fit(X, y)
    phillips = equivalent(model, "phillips").model.fit(X, y)
    assert ivanov.certificate_.holds and phillips.certificate_.holds
    assert ivanov.penalty_ <= model.penalty_ * (1 + 1e-9)
    assert phillips.risk_ <= model.risk_ + 1e-7 * size  # more than rounding only where κ is the least risk itself
    # Each of the three optima is known to its gap; so are the values of the other two there.
    assert ivanov.risk_ == pytest.approx(model.risk_, abs=3 * tol * size)
    assert strength * phillips.penalty_ == pytest.approx(strength * model.penalty_, abs=6 * tol * size)


@pytest.mark.parametrize("penalty", ["l2", "elasticnet", Lq(1.0, 1.5)])
def test_a_unique_solution_is_the_same_in_all_forms(penalty):
    X, y = table("logistic")
    model = RegularizedRisk("logistic", penalty, value=0.05, tol=1e-10).fit(X, y)
    for form in ("ivanov", "phillips"):
        other = equivalent(model, form).model.fit(X, y)
        np.testing.assert_allclose(other.coef_, model.coef_, atol=2e-4)
        back = equivalent(other, "tikhonov")
        assert back.value == pytest.approx(0.05, rel=2e-3)
        assert back.multiplier == back.value


@given(loss=st.sampled_from(["squared", "logistic", "huber", "poisson"]), penalty=st.sampled_from(["l1", "l2", "sup"]))
@settings(max_examples=5, deadline=None, derandomize=True)
def test_minus_the_multiplier_is_the_rate_of_change_of_the_optimum(loss, penalty):
    X, y = table(loss)
    start = RegularizedRisk(loss, penalty, value=0.1, tol=1e-9).fit(X, y)
    for form, of in (("ivanov", "risk_"), ("phillips", "penalty_")):
        middle = equivalent(start, form).model.fit(X, y)
        h = 1e-3 * abs(middle.value)
        ends = [
            RegularizedRisk(loss, penalty, form=form, value=middle.value + s * h, tol=1e-9).fit(X, y) for s in (-1, 1)
        ]
        slope = (getattr(ends[1], of) - getattr(ends[0], of)) / (2 * h)
        assert slope == pytest.approx(-middle.multiplier_, rel=1e-2)


def test_equivalence_carries_its_proof():
    X, y = table("hinge")
    model = RegularizedRisk("hinge", "l2", value=0.05).fit(X, y)
    tikhonov, ivanov, phillips = (equivalent(model, form) for form in ("tikhonov", "ivanov", "phillips"))
    assert (tikhonov.value, ivanov.multiplier, phillips.multiplier) == (0.05, 0.05, pytest.approx(20.0))
    assert ivanov.excess == tikhonov.excess
    assert phillips.excess == pytest.approx(20.0 * ivanov.excess)
    refitted = ivanov.model.fit(X, y)
    assert abs(model.risk_ - refitted.risk_) <= ivanov.excess + 1e-6 * refitted.risk_
    with pytest.raises(ParameterError, match="form must be one of"):
        equivalent(model, "morozov")


def test_an_idle_constraint_has_no_equivalent():
    X, y = table("squared")
    loose = RegularizedRisk("squared", "l2", form="ivanov", value=1e6).fit(X, y)
    assert loose.multiplier_ < 1e-6
    with pytest.raises(ParameterError, match="idle"):
        equivalent(loose, "tikhonov")
    easy = RegularizedRisk("squared", "l1", form="phillips", value=1e3).fit(X, y)
    assert not easy.coef_.any() and easy.multiplier_ == 0.0
    assert easy.certificate_.value == 0.0
    assert ln.verify(easy, X, y)


# --- oracles ---


@pytest.mark.parametrize("loss", ["absolute", "hinge"])
@pytest.mark.parametrize("form", ["tikhonov", "ivanov", "phillips"])
def test_linear_programs(loss, form):
    X, y = table(loss)
    value = {"tikhonov": 0.05, "ivanov": 1.0, "phillips": 0.7}[form]
    model = RegularizedRisk(loss, "l1", form=form, value=value, tol=1e-8).fit(X, y)
    reached = {"tikhonov": model.risk_ + 0.05 * model.penalty_, "ivanov": model.risk_, "phillips": model.penalty_}[form]
    signs = np.where(y == "up", 1.0, -1.0) if loss == "hinge" else y
    assert reached == pytest.approx(linear_program_optimum(X, signs, loss, form, value), rel=1e-7)


def test_scikit_learns_models_are_special_cases():
    X, y = table("squared")
    np.testing.assert_allclose(
        RegularizedRisk("squared", "l1", value=0.1, tol=1e-12).fit(X, y).coef_,
        SklearnLasso(alpha=0.1, tol=1e-12).fit(X, y).coef_,
        atol=1e-6,
    )
    np.testing.assert_allclose(
        RegularizedRisk("squared", ElasticNetPenalty(1.0, 0.3), value=0.1, tol=1e-12).fit(X, y).coef_,
        SklearnElasticNet(alpha=0.1, l1_ratio=0.3, tol=1e-12).fit(X, y).coef_,
        atol=1e-6,
    )
    X, y = table("logistic")
    np.testing.assert_allclose(
        RegularizedRisk("logistic", "l2", value=1 / 30, tol=1e-12).fit(X, y).coef_,
        SklearnLogistic(C=1.0, tol=1e-10, max_iter=10_000).fit(X, y).coef_,
        atol=1e-5,
    )


def test_the_support_vector_machine_is_a_special_case():
    X, y = table("hinge")
    peer = SVC(C=1.0, kernel="rbf", gamma=0.3, tol=1e-10).fit(X, y)
    ours = RegularizedRisk("hinge", "l2", kernel="rbf", gamma=0.3, value=1 / 30, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), peer.decision_function(X), atol=1e-3)
    twin = RegularizedRisk("hinge", "l2", kernel=Gaussian.from_gamma(0.3), value=1 / 30, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(twin.expansion_, ours.expansion_, atol=1e-8)
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    given_matrix = RegularizedRisk("hinge", "l2", kernel="precomputed", value=1 / 30, tol=1e-9).fit(K, y)
    np.testing.assert_allclose(given_matrix.decision_function(K), ours.decision_function(X), atol=1e-4)


def test_constraints_against_a_general_solver():
    X, y = table("squared")

    def objective(w):
        r = y - X @ w[1:] - w[0]
        return 0.5 * r @ r / len(y) + 0.05 * w[1:] @ w[1:]

    A, b = np.array([[1.0, 1.0, 0.0, 0.0, 0.0]]), np.array([0.3])
    constraints = [
        {"type": "eq", "fun": lambda w: w[1:].sum() - 1.0},
        {"type": "eq", "fun": lambda w: A @ w[1:] - b},
    ]
    bounds = [(None, None)] + [(0.0, 0.8)] * 5
    peer = minimize(objective, np.full(6, 0.2), method="SLSQP", bounds=bounds, constraints=constraints, tol=1e-14)
    ours = RegularizedRisk(
        "squared", "l2", value=0.1, positive=True, upper=0.8, total=1.0, equalities=(A, b), tol=1e-10
    ).fit(X, y)
    np.testing.assert_allclose(ours.coef_, peer.x[1:], atol=1e-5)
    assert ours.coef_.min() >= 0.0 and ours.coef_.max() <= 0.8
    assert ours.coef_.sum() == pytest.approx(1.0, abs=1e-12)
    assert ln.verify(ours, X, y)


def test_a_penalty_of_ones_own():
    X, y = table("absolute")
    soft = ProximalPenalty(lambda w: abs(w).sum(), lambda w, step: w - np.clip(w, -step, step))
    own = RegularizedRisk("huber", soft, value=0.1).fit(X, y)
    ours = RegularizedRisk("huber", L1Penalty(), value=0.1).fit(X, y)
    assert own.certificate_.holds and ln.verify(own, X, y)
    np.testing.assert_allclose(own.coef_, ours.coef_, atol=2e-3)
    quartic = ProximalPenalty(lambda w: float((w**4).sum()), Lq(1.0, 4.0).prox)
    curved = RegularizedRisk("squared", quartic, form="ivanov", value=0.5, tol=1e-4).fit(X, y)
    assert curved.certificate_.holds and curved.penalty_ == pytest.approx(0.5)
    with pytest.raises(ModelFileError, match="penalty"):
        ln.save(own, "unused.safetensors")


# --- files, weights, tables ---


CASES = [
    {"loss": "hinge", "penalty": GROUPS, "form": "ivanov", "value": 1.0},
    {"loss": "softmax", "penalty": "nuclear", "value": 0.05},
    {"loss": "absolute", "penalty": TotalVariationPenalty(2.0, 0.3), "form": "phillips", "value": 1.2},
    {"loss": "squared", "penalty": "norm", "kernel": "rbf", "form": "ivanov", "value": 1.0},
    {"loss": DevianceLoss(1.5), "penalty": "l1", "value": 0.05, "lower": -0.1},
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["loss"]))
def test_files_and_verification(case, tmp_path):
    X, y = table(case["loss"])
    weight = np.random.default_rng(1).integers(0, 4, len(y)).astype(float)
    model = RegularizedRisk(**case).fit(X, y, sample_weight=weight)
    assert model.certificate_.holds
    assert ln.verify(model, X, y, weight)
    path = tmp_path / "model.safetensors"
    ln.save(model, path)
    loaded = ln.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert ln.verify(loaded, X, y, weight)
    assert not ln.verify(model, X, y)
    name = "coef_" if model.kernel is None else "expansion_"
    for member in (name, "dual_point_", "multiplier_", "risk_"):
        changed = ln.load(path)
        setattr(changed, member, getattr(changed, member) * 1.001)
        assert not ln.verify(changed, X, y, weight)


def test_weights_repeat_rows_and_sparse_tables_are_the_same():
    X, y = table("huber")
    weight = np.array([1, 2, 3] * 10)
    settings_ = {"loss": "huber", "penalty": "fused", "value": 0.05, "tol": 1e-9}
    weighted = RegularizedRisk(**settings_).fit(X, y, sample_weight=weight)
    repeated = RegularizedRisk(**settings_).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-4)
    X = X * (np.abs(X) > 0.5)
    dense = RegularizedRisk(**settings_).fit(X, y)
    sparse = RegularizedRisk(**settings_).fit(sp.csr_array(X), y)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-5)
    assert ln.verify(sparse, sp.csr_array(X), y)


def test_frames_and_column_names():
    pd = pytest.importorskip("pandas")
    X, y = table("hinge")
    frame = pd.DataFrame(X, columns=list("abcde")).assign(label=y)
    model = RegularizedRisk("hinge", "l1", value=0.05).fit(frame, "label")
    assert list(model.feature_names_in_) == list("abcde")
    assert model.score(frame[list("abcde")], y) > 0.7
    assert ln.verify(model, frame, "label")


# --- edges ---


def test_collinear_columns_and_more_columns_than_rows():
    X, y = table("squared")
    double = np.hstack([X, X, X[:, :1] + X[:, 1:2]])
    for loss, penalty in (("squared", "l1"), ("absolute", "l2"), ("squared", "tv")):
        model = RegularizedRisk(loss, penalty, value=0.1).fit(double, y)
        assert model.certificate_.holds
    wide = np.random.default_rng(2).normal(size=(12, 40))
    for form, value in (("tikhonov", 0.1), ("ivanov", 1.0), ("phillips", 0.1)):
        model = RegularizedRisk("squared", "l1", form=form, value=value).fit(wide, y[:12])
        assert model.certificate_.holds and ln.verify(model, wide, y[:12])


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        ({"lower": 1.0, "upper": 0.0}, "no coefficients satisfy the constraints: column 0 must be >= 1 and <= 0"),
        ({"positive": True, "total": -1.0}, r"reaches from 0 to inf, not -1"),
        ({"equalities": ([[1.0] * 5, [1.0] * 5], [1.0, 2.0])}, "contradict each other"),
        ({"form": "ivanov", "value": 0.1, "total": 5.0}, "Attainable are all values from 2.5 on"),
        ({"form": "phillips", "value": 0.01}, "Attainable are values from .* to .*, the risk at the least penalty"),
        ({"form": "phillips", "value": -1.0}, "at least 0 in the form 'phillips'"),
        ({"value": 0.0}, "λ of the form 'tikhonov', must be > 0"),
        ({"penalty": Lq(1.0, 0.5)}, "penalty must be convex"),
        ({"loss": DevianceLoss(3.0)}, "loss must be convex"),
        ({"penalty": GroupPenalty((0, 1))}, "must name the group of each of 5 columns"),
        ({"kernel": "rbf", "positive": True}, "kernel must be None where coefficients are constrained"),
        ({"loss": "cubic"}, "loss must be one of squared"),
    ],
)
def test_what_cannot_be_is_told_in_words(settings_, words):
    X, y = table("squared")
    with pytest.raises(ParameterError, match=words):
        RegularizedRisk(**settings_).fit(X, y)


def test_targets_that_do_not_suit_the_loss():
    X, y = table("softmax")
    with pytest.raises(DataError, match="is for two classes; y has 3"):
        RegularizedRisk("hinge").fit(X, y)
    with pytest.raises(DataError, match="needs targets > 0"):
        RegularizedRisk("gamma").fit(X, np.arange(30.0))
    with pytest.raises(DataError, match="no inner product"):
        RegularizedRisk("squared", kernel="sigmoid", gamma=5.0).fit(X, y)


def test_a_time_limit_leaves_a_true_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 60))
    y = X[:, 0] + rng.normal(size=400)
    for form, value in (("tikhonov", 0.05), ("ivanov", 0.5)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            short = RegularizedRisk("absolute", "sup", form=form, value=value, max_seconds=0.01, tol=1e-12).fit(X, y)
        assert np.isfinite(short.coef_).all()
        assert form == "tikhonov" or short.penalty_ <= value * (1 + 1e-9)
