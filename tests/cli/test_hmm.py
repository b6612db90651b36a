import numpy as np
import pyarrow.csv
import pytest

import learnable as ln
from learnable.cli.hmm import describe_states


@pytest.fixture
def counts(folder):
    rng = np.random.default_rng(0)
    values = np.r_[rng.poisson(2, 30), rng.poisson(12, 30), rng.poisson(2, 30)]
    lines = [str(v) for v in values]
    lines[5] = ""
    with open("counts.csv", "w", encoding="utf-8") as file:
        file.write("count,year\n" + "\n".join(f"{v},{1900 + t}" for t, v in enumerate(lines)) + "\n")


def test_states_over_time(learnable, counts):
    code, out, _ = learnable(
        "hmm",
        "counts.csv",
        "-c",
        "count",
        "--emission",
        "poisson",
        "-k",
        "2",
        "-o",
        "states.csv",
        "--save",
        "m.safetensors",
    )
    assert code == 0 and "PoissonHMM with 2 states" in out and "ascent" in out
    found = pyarrow.csv.read_csv("states.csv")
    assert found.column_names == ["state", "p(0)", "p(1)"]
    np.testing.assert_array_equal(found["state"], np.repeat([0, 1, 0], 30))
    np.testing.assert_allclose(np.add(found["p(0)"], found["p(1)"]), 1.0)
    assert isinstance(ln.load("m.safetensors"), ln.PoissonHMM)


def test_bic_chooses_the_states(learnable, counts):
    code, out, _ = learnable("hmm", "counts.csv", "-c", "count", "--emission", "poisson")
    assert code == 0 and "BIC: 1 states" in out and "PoissonHMM with 2 states" in out


def test_a_state_may_be_a_mixture(learnable):
    """A calm state, and one of jumps up and down, which one Gaussian cannot tell from it by its mean."""
    rng = np.random.default_rng(0)
    calm, wild = rng.normal(0, 1, 80), rng.choice([-9, 9], 80) + rng.normal(0, 1, 80)
    pyarrow.csv.write_csv(pyarrow.table({"x": np.r_[calm, wild]}), "jumps.csv")
    code, out, _ = learnable(
        "hmm", "jumps.csv", "--emission", "mixture", "-k", "2", "-o", "states.csv", "--save", "m.safetensors"
    )
    assert code == 0 and "GMMHMM with 2 states" in out
    state = np.asarray(pyarrow.csv.read_csv("states.csv")["state"])
    assert set(state[:80]) != set(state[80:]) and np.abs(np.diff(state)).sum() == 1
    assert ln.load("m.safetensors").n_mix == 2


@pytest.mark.parametrize(
    "arguments, code, words",
    [
        (["--emission", "cauchy"], 2, "gaussian, mixture, poisson, categorical"),
        (["--mix", "2"], 2, "with --emission mixture"),
        (["--emission", "mixture", "--mix", "0"], 2, "--mix must be at least 1"),
        (["-k", "0"], 2, "at least 1"),
        (["-c", "price"], 1, "there is no column 'price'"),
    ],
)
def test_what_is_wrong_is_said(learnable, counts, arguments, code, words):
    found, _, err = learnable("hmm", "counts.csv", *arguments)
    assert found == code and words in err


def test_columns_that_count_the_rows_are_left_out_and_the_page_shows_the_states(learnable, counts):
    code, out, _ = learnable("hmm", "counts.csv", "--emission", "poisson", "-k", "2", "--report", "states.html")
    assert code == 0
    assert "note: left out (not numbers, or counting the rows): year" in out
    assert "state 0 (low)" in out and "state 1 (high)" in out and "from 0" in out and "(sd " in out
    with open("states.html", encoding="utf-8") as file:
        page = file.read()
    assert "2 hidden states" in page and "From state to state" in page and "<script" not in page
    assert "1 (high)" in page and "<svg" in page


def test_transitions_and_spreads_are_those_of_the_model_and_the_rows(folder, counts):
    X = np.asarray(pyarrow.csv.read_csv("counts.csv")["count"].to_numpy(zero_copy_only=False), dtype=float)[:, None]
    model = ln.PoissonHMM(2, n_init=3, random_state=0).fit(X)
    found = describe_states(model, X)
    np.testing.assert_allclose(found.transitions.sum(axis=1), 1.0)
    low = X[found.labels == 0]
    np.testing.assert_allclose(found.mean[0], np.nanmean(low), rtol=0.02)
    np.testing.assert_allclose(found.spread[0], np.nanstd(low), rtol=0.05)
    assert found.mean[0] < found.mean[1]
