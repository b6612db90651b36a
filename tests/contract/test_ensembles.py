"""Trees, bags, forests and boosting keep scikit-learn's contract."""

from tests.contract.checks import WEIGHTS, contract_of, registered_models

from learnable import (
    AdaBoostClassifier,
    BaggingClassifier,
    BaggingRegressor,
    ForwardStagewiseAdditive,
    LogisticRegression,
    Ridge,
)

#: AdaBoostRegressor draws rows, too. That its check passes with ten rounds is luck: over 40 tables and seeds it passes
#: 0, 0, 6 and 7 times with 1, 5, 10 and 50 rounds, scikit-learn's 1, 6, 13 and 13 times. Their weighted medians agree.
DRAWN = "weights are chances of being drawn, as in scikit-learn: repeated rows give other random bags"
LAST_DIGITS = "equal gains are told apart by the last digits of sums, which repeated rows change; so in scikit-learn"
#: Here the last digit decides whether the check finds it.
MEANS = "the mean of scores and the mean of probabilities may rank rows differently"
EXPECTED_FAILURES = {
    **{name: dict.fromkeys(WEIGHTS, DRAWN) for name in ("RandomForestClassifier", "RandomForestRegressor")},
    **{
        name: dict.fromkeys(WEIGHTS, LAST_DIGITS)
        for name in ("GradientBoostingClassifier", "GradientBoostingRegressor")
    },
    **{
        name: dict.fromkeys(WEIGHTS, DRAWN) | {"check_decision_proba_consistency": MEANS}
        for name in ("BaggingClassifier", "BaggingRegressor")
    },
}

test_sklearn_contract = contract_of(
    [
        *registered_models("trees"),
        *registered_models("ensembles"),
        BaggingRegressor(Ridge(), n_estimators=3),
        BaggingClassifier(LogisticRegression(), n_estimators=3),
        ForwardStagewiseAdditive("exponential", n_estimators=3),
    ],
    lambda model: EXPECTED_FAILURES.get(type(model).__name__, {}),
    others=[AdaBoostClassifier(n_estimators=5, variant="float")],
)
