"""The reliability table against scikit-learn's curve, hand-made bins, and its laws."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss
from sklearn.naive_bayes import GaussianNB

from learnable.core import DataError, ParameterError
from learnable.evaluation import CalibratedClassifier, calibration_table
from learnable.evaluation.reliability import calibration_verdict


def draw(n=500, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    return (rng.random(n) < p).astype(int), p


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("bins", [1, 5, 10])
def test_bins_are_scikit_learns(strategy, bins):
    y, p = draw()
    table = calibration_table(y, p, bins, strategy=strategy)
    observed, predicted = calibration_curve(y, p, n_bins=bins, strategy=strategy)
    np.testing.assert_allclose(table.observed, observed, rtol=1e-12)
    np.testing.assert_allclose(table.mean_predicted, predicted, rtol=1e-12)
    assert table.count.sum() == 500


def test_expected_error_by_hand():
    table = calibration_table([0, 1, 1, 1], [0.1, 0.2, 0.9, 1.0], bins=2)
    assert table.expected_error == pytest.approx(0.5 * abs(0.5 - 0.15) + 0.5 * abs(1.0 - 0.95))
    assert table.largest_error == pytest.approx(0.35)
    assert table.kind == "positive"


def test_weights_are_repetitions():
    y, p = draw(60)
    times = np.random.default_rng(1).integers(1, 4, size=60)
    weighted = calibration_table(y, p, 4, sample_weight=times)
    repeated = calibration_table(np.repeat(y, times), np.repeat(p, times), 4)
    np.testing.assert_allclose(weighted.observed, repeated.observed)
    assert weighted.expected_error == pytest.approx(repeated.expected_error)
    assert weighted.count.sum() == 60


def test_the_error_of_true_probabilities_vanishes_and_is_bounded_by_the_brier_score():
    y, p = draw(200_000)
    assert calibration_table(y, p).expected_error < 0.01
    for shift in (0.0, 0.5, 3.0):
        q = np.clip(p**2 + 0.05 * shift, 0, 1)
        # By Jensen's inequality ECE² ≤ Σ (n_b/n)(observed − predicted)² ≤ mean (y − p)².
        assert calibration_table(y, q).expected_error ** 2 <= brier_score_loss(y, q)


def test_more_classes_are_judged_by_the_label_predicted():
    y = np.array(["b", "a", "c"])
    p = np.array([[0.1, 0.6, 0.3], [0.2, 0.7, 0.1], [0.0, 0.2, 0.8]])
    table = calibration_table(y, p, bins=1)
    assert table.kind == "confidence"
    assert table.observed[0] == pytest.approx(2 / 3)
    assert table.mean_predicted[0] == pytest.approx(0.7)


def test_two_columns_are_the_second_class():
    y, p = draw()
    words = np.where(y == 1, "yes", "no")
    two = calibration_table(words, np.column_stack([1 - p, p]))
    assert two.to_dict() == calibration_table(y, p).to_dict()


def test_a_record_is_json_and_empty_bins_are_null():
    record = calibration_table(pd.Series([0, 1]), [0.05, 0.95], bins=10).to_dict()
    assert json.loads(json.dumps(record)) == record
    assert record["observed"][5] is None and record["mean_predicted"][5] is None
    assert record["count"] == [1, 0, 0, 0, 0, 0, 0, 0, 0, 1]
    assert len(record["bins"]) == 11


def test_ends_belong_to_bins():
    assert calibration_table([0, 1, 1], [0.0, 0.5, 1.0], bins=2).count.tolist() == [2, 1]
    assert calibration_table([0, 1], [0.3, 0.3], strategy="quantile").count.tolist() == [2]


def test_one_class_only():
    assert calibration_table([1, 1], [0.9, 0.8], bins=1).observed.tolist() == [1.0]
    assert calibration_table(["no", "no"], [0.9, 0.8], bins=1, classes=["no", "yes"]).observed.tolist() == [0.0]
    with pytest.raises(DataError, match="p is about 2 classes, but there are 1 labels: pass `classes`"):
        calibration_table(["no", "no"], [0.9, 0.8])


@pytest.mark.parametrize(
    ("y", "p", "words"),
    [
        ([0, 1], [0.5, 1.5], "p must lie between 0 and 1; row 1"),
        ([0, 1], [np.nan, 0.5], "p must lie between 0 and 1; row 0"),
        ([0, 1, 1], [0.5, 0.5], r"y must have shape \(2,\)"),
        ([0, 1, 2], [0.5, 0.5, 0.5], "p is about 2 classes, but there are 3 labels"),
        ([], [], "one probability per row"),
    ],
)
def test_refusals(y, p, words):
    with pytest.raises(DataError, match=f"calibration_table: .*{words}"):
        calibration_table(y, p)


@pytest.mark.parametrize(("name", "value"), [("bins", 0), ("bins", 2.5), ("strategy", "kmeans")])
def test_refusals_of_parameters(name, value):
    with pytest.raises(ParameterError, match=f"calibration_table: {name} must be"):
        calibration_table([0, 1], [0.1, 0.9], **{name: value})


def test_calibration_lowers_the_error_on_adult(reference_data):
    table = pd.read_csv(reference_data / "adult.csv.gz").sample(8000, random_state=0)
    y = table["income"].astype(str).str.contains(">").to_numpy()
    X = table.select_dtypes("number").to_numpy(dtype=float)
    naive = GaussianNB()  # counts what dependent columns say more than once
    errors = [
        calibration_table(y[4000:], model.fit(X[:4000], y[:4000]).predict_proba(X[4000:])).expected_error
        for model in (naive, CalibratedClassifier(naive, method="isotonic"))
    ]
    assert errors[1] < 0.5 * errors[0]
    assert errors[1] < 0.03


def drawn_from(p, rng):
    return (rng.random(len(p))[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(max=p.shape[1] - 1)


@pytest.mark.parametrize("k", [2, 4])
def test_the_verdict_is_right_where_the_truth_is_known(k):
    rng = np.random.default_rng(k)
    wrong = 0
    for _ in range(200):
        p = rng.dirichlet(np.ones(k), 300)
        wrong += calibration_verdict(drawn_from(p, rng), p)["word"] != "calibrated"
    assert 1 <= wrong <= 20  # 5 % of 200
    p = rng.dirichlet(np.ones(k), 2000)
    y = drawn_from(p, rng)
    sharper, flatter = (p**power / (p**power).sum(axis=1, keepdims=True) for power in (2.5, 0.4))
    over, under = calibration_verdict(y, sharper), calibration_verdict(y, flatter)
    assert over["word"] == "overconfident" and over["kept"] < over["promised"]
    assert under["word"] == "underconfident" and under["kept"] > under["promised"]


def test_of_two_classes_the_test_is_spiegelhalters():
    y, p = draw()
    z = ((y - p) * (1 - 2 * p)).sum() / np.sqrt(((1 - 2 * p) ** 2 * p * (1 - p)).sum())
    assert calibration_verdict(y, np.column_stack([1 - p, p]))["z"] == pytest.approx(z)
    sure = np.tile([1.0, 0.0], (5, 1))
    assert calibration_verdict(np.zeros(5, int), sure)["word"] == "unknown"
    assert calibration_verdict(np.array([0, 0, 1, 0, 0]), sure)["word"] == "overconfident"


def test_probabilities_that_are_off_by_very_little_can_be_taken_at_their_word_however_many_rows_tell():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.2, 0.8, 400_000)
    y = (rng.random(len(true)) < true).astype(int)
    said = 0.5 + 0.97 * (true - 0.5)  # a little too cautious
    found = calibration_verdict(y, np.column_stack([1.0 - said, said]))
    assert found["p_value"] < 0.05 and found["word"] == "nearly"
    far = 0.5 + 0.5 * (true - 0.5)
    assert calibration_verdict(y, np.column_stack([1.0 - far, far]))["word"] == "underconfident"
