"""Tests of scikit-learn's `neighbors/tests/test_neighbors.py` that our classes are not meant to pass, with reasons."""

EXPECTED: dict[str, str] = {
    "test_neigh_predictions_algorithm_agnosticity": (
        "private: chooses the parameter by a subclass test on the private KNeighborsMixin, so that "
        "n_neighbors gets a radius of 500"
    ),
    "test_kneighbors_regressor_sparse": (
        "departure: distances in DOK and BSR form are read, explicit zeros included, where scikit-learn "
        "raises a TypeError"
    ),
    "test_neighbors_validate_parameters": (
        "departure: a fit measures a few rows, so that the wrong number of columns for haversine is said by "
        "fit, not by predict"
    ),
    "test_neighbors_minkowski_semimetric_algo_warn": "private: asks for _fit_method",
    "test_auto_algorithm": "private: asks for _fit_method",
    "test_predict_sparse_ball_kd_tree": "departure: sparse queries are answered, also by a tree",
    "test_k_and_radius_neighbors_duplicates": "departure: ties go to the lower row number",
}
