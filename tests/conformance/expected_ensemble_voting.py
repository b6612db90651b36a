"""Tests of scikit-learn's `ensemble/tests/test_voting.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_sample_weight": "departure: KNeighborsClassifier takes weights here, so that the vote does not refuse them",
    "test_set_estimator_drop": "numeric: probabilities of a random forest of ten trees on four rows, at one seed",
}
