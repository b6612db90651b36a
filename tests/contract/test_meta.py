"""Models made of models keep scikit-learn's contract."""

from tests.contract.checks import contract_of

from learnable import RFE, RFECV, LogisticRegression, Ridge, SequentialFeatureSelector
from learnable.meta import (
    BlendClassifier,
    BlendRegressor,
    OneVsOneClassifier,
    OneVsRestClassifier,
    RegularizedRisk,
    ScaledTargetRegressor,
    TableModel,
)

test_sklearn_contract = contract_of(
    [
        TableModel(Ridge()),
        TableModel(LogisticRegression()),
        BlendRegressor([Ridge(), Ridge(alpha=9.0)]),
        BlendClassifier([LogisticRegression()]),
        ScaledTargetRegressor(Ridge()),
        OneVsRestClassifier(LogisticRegression()),
        OneVsOneClassifier(LogisticRegression()),
        RFE(Ridge()),
        RFECV(LogisticRegression(), cv=2),
        SequentialFeatureSelector(Ridge(), cv=2),
        RegularizedRisk(value=0.1),
        RegularizedRisk("logistic", "l1", value=0.05, tol=1e-5),
    ],
    others=[OneVsOneClassifier(LogisticRegression(), reconcile="tournament")],
)
