"""Tests of scikit-learn's `ensemble/tests/test_bagging.py` that ours are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_oob_score_regression": "numeric: 0.104 where < 0.1 is asked of one random split and seed",
    "test_warm_start_with_oob_score_fails": "departure: out-of-bag figures and warm starts go together here",
    "test_draw_indices_using_sample_weight[10-False-True-BaggingRegressor]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[10-False-True-BaggingClassifier]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[10-True-True-BaggingRegressor]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[10-True-True-BaggingClassifier]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[0.8-False-True-BaggingRegressor]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[0.8-False-True-BaggingClassifier]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[0.8-True-True-BaggingRegressor]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_draw_indices_using_sample_weight[0.8-True-True-BaggingClassifier]": (
        "departure: a member sees the distinct rows of its bag with counts as weights (class docstring)"
    ),
    "test_max_samples_consistency": "private: reads _max_samples",
}
