import numpy as np
import pandas as pd
import pytest

import learnable as ln
from learnable.core.errors import DataError, ParameterError

pytest.importorskip("formulaic")

RNG = np.random.default_rng(0)
TABLE = pd.DataFrame({"a": RNG.normal(size=80), "b": RNG.normal(size=80), "g": RNG.choice(["u", "v", "w"], size=80)})
TABLE["y"] = 1 + TABLE["a"] * TABLE["b"] + (TABLE["g"] == "v") + RNG.normal(size=80)


def test_a_formula_gives_statsmodels_table():
    smf = pytest.importorskip("statsmodels.formula.api")
    X, y = ln.from_formula("y ~ a*b + g", TABLE)
    found = ln.GLM().fit(X, y).summary()
    theirs = smf.ols("y ~ a*b + g", TABLE).fit()
    ours = dict(zip(found.names, found.std_error, strict=True))
    for name, value in theirs.bse.items():
        assert ours[name.replace("Intercept", "(intercept)")] == pytest.approx(value, rel=1e-9)


def test_rows_with_missing_values_are_left_out_of_both():
    table = TABLE.copy()
    table.loc[3, "a"] = np.nan
    X, y = ln.from_formula("y ~ a", table)
    assert len(X) == len(y) == 79


def test_bad_formulas_end_in_clear_words():
    with pytest.raises(ParameterError, match="target"):
        ln.from_formula("a + b", TABLE)
    with pytest.raises(ParameterError, match="cannot be read"):
        ln.from_formula("y ~ nobody", TABLE)
    with pytest.raises(DataError, match="no columns"):
        ln.from_formula("y ~ 1", TABLE)
