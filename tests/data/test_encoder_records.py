"""A file cannot bring records into an encoder that no fit would leave."""

import copy

import numpy as np
import pytest
from tests.data.messy import messy_frame

from learnable.core import ModelFileError
from learnable.data import TableEncoder

pytestmark = pytest.mark.sampled(1)  # every case is a promise of its own


FRAME, TARGET = messy_frame()
FITTED = TableEncoder().fit(FRAME, TARGET)
PLACE = {record["name"]: j for j, record in enumerate(FITTED.columns_)}


def test_what_a_fit_leaves_is_sound():
    FITTED._check_loaded()


@pytest.mark.parametrize(
    ("column", "key", "value"),
    [
        ("size", "kind", "numbers"),
        ("size", "kind", "date"),
        ("size", "name", 3),
        ("size", "missing", 1.5),
        ("size", "input", "text"),
        ("size", "fill", np.nan),
        ("size", "mean", np.inf),
        ("size", "scale", 0.0),
        ("size", "scale", "1"),
        ("size", "flag", 1),
        ("size", "varies", None),
        ("sold", "clock", "yes"),
        ("sold", "zone", 3),
        ("note", "n_features", -1),
        ("note", "n_features", 2**40),
        ("note", "analyzer", "lines"),
        ("kind", "levels", np.array(["a", 1], dtype=object)),
        ("kind", "columns", np.array([0, 1, 2, 7])),
        ("kind", "columns", np.array([0, 1, 2])),
        ("kind", "columns", np.array([0, 1, 2, -5])),
        ("kind", "columns", np.array([0.0, 1.0, 2.0, 3.0])),
        ("kind", "encoding", "other"),
        ("city", "values", np.zeros((2, 2, 1))),
        ("city", "values", "nothing"),
        ("city", "mean", np.zeros(3)),
        ("city", "mean", np.array([np.nan])),
        ("city", "scale", np.zeros(1)),
        ("city", "targets", ["a", "b"]),
    ],
)
def test_other_records_are_refused(column, key, value):
    encoder = copy.deepcopy(FITTED)
    encoder.columns_[PLACE[column]][key] = value
    with pytest.raises(ModelFileError, match="TableEncoder"):
        encoder._check_loaded()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("columns_", {}),
        ("columns_", []),
        ("columns_", [None] * 9),
        ("columns_", [{}] * 9),
        ("sources_", np.zeros(3, dtype=int)),
        ("sources_", None),
        ("sparse_", 1),
        ("n_features_in_", 3),
    ],
)
def test_other_attributes_are_refused(name, value):
    encoder = copy.deepcopy(FITTED)
    setattr(encoder, name, value)
    with pytest.raises(ModelFileError, match="TableEncoder"):
        encoder._check_loaded()


@pytest.mark.parametrize("key", ["kind", "fill", "levels", "values", "input", "columns"])
def test_a_record_without_a_member_is_refused(key):
    encoder = copy.deepcopy(FITTED)
    next(record for record in encoder.columns_ if key in record).pop(key)
    with pytest.raises(ModelFileError, match="TableEncoder"):
        encoder._check_loaded()
