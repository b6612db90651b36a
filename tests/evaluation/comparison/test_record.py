import json

import numpy as np

from learnable.evaluation.comparison.record import new_row, plain, timestamp, versions


def test_anything_becomes_strict_json():
    odd = {1: (np.float32(0.5), np.inf), "b": {np.int64(3)}, "c": [np.nan, None, True], "d": object, "e": "\ud800"}
    text = json.dumps(plain(odd), allow_nan=False)
    text.encode("utf-8")
    assert json.loads(text)["1"] == [0.5, None]


def test_versions_and_time_are_plain():
    assert versions()["python"].count(".") == 2 and timestamp().endswith("Z")
    assert new_row("a", "A", {"alpha": np.float64(1.0)})["parameters"] == {"alpha": 1.0}
