"""Chains: access by name, cuts, the certificate and its check, files, groups that disagree."""

import dataclasses
import tracemalloc

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import learnable as ln
from learnable.core._encoding import decode
from learnable.core.errors import DataError, ModelFileError, VerificationError
from learnable.core.estimator import Certificate
from learnable.sampling import Chains, metropolis_hastings
from learnable.sampling.chains import chain_value


def good(n=600, seed=0):
    rng = np.random.default_rng(seed)
    return Chains.from_arrays({"mu": rng.normal(size=(4, n)), "w": rng.normal(size=(4, n, 2, 3))})


def test_draws_by_name_and_label():
    chains = good()
    assert chains["mu"].shape == (4, 600) and chains["w"].shape == (4, 600, 2, 3)
    assert chains.labels == ["mu"] + [f"w[{i},{j}]" for i in range(2) for j in range(3)]
    np.testing.assert_array_equal(chains["w"][:, :, 1, 2], chains.draws[:, :, 6])
    assert chains.flat("w").shape == (2400, 2, 3) and "mu" in chains and "nu" not in chains
    with pytest.raises(DataError, match="no variable 'nu'; there are mu, w"):
        chains["nu"]


def test_cuts_keep_statistics_in_step_and_certify_again():
    rng = np.random.default_rng(0)
    chains = Chains.from_arrays({"x": rng.normal(size=(3, 90))}, {"accept": np.arange(270.0).reshape(3, 90)})
    thinned = chains.thinned(3)
    np.testing.assert_array_equal(thinned["x"], chains["x"][:, 2::3])
    np.testing.assert_array_equal(thinned.stats["accept"], chains.stats["accept"][:, 2::3])
    assert thinned.thin == 3 and thinned.certificate_.value > chains.certificate_.value
    later = chains.without_first(10)
    np.testing.assert_array_equal(later["x"], chains["x"][:, 10:])
    one = chains.select([2])
    np.testing.assert_array_equal(one["x"][0], chains["x"][2])
    with pytest.raises(DataError, match="n must be from 0 to 89; got 90"):
        chains.without_first(90)


def test_certificate_is_the_worst_of_all_parameters():
    chains = good()
    worst = max(max((r - 1) / 0.01 for r in chains.rhat.values()), max(400 / e for e in chains.ess.values()))
    assert chains.certificate_.value == pytest.approx(worst) and chains.certificate_.holds
    assert bool(ln.verify(chains))


def test_a_divergence_and_a_chain_apart_break_the_certificate():
    chains = good()
    diverging = np.zeros((4, 600))
    diverging[1, 5] = 1
    told = Chains.from_arrays({"mu": chains["mu"]}, {"diverging": diverging})
    assert not told.certificate_.holds and told.n_divergences == 1
    assert any("diverged" in fault for fault in told.warnings())
    apart = Chains.from_arrays({"mu": chains["mu"] + np.array([0, 0, 4, 4])[:, None]})
    assert apart.groups == [[0, 1], [2, 3]] and not apart.certificate_.holds
    assert any("groups of chains 0, 1 | 2, 3" in fault for fault in apart.warnings())
    assert good().groups == [[0, 1, 2, 3]]


@pytest.mark.parametrize("forge", ["draw", "certificate", "divergence"])
def test_forged_chains_are_not_verified(forge):
    chains = good()
    if forge == "draw":
        draws = chains.draws.copy()
        draws[0, :, 3] += 0.4
        forged = dataclasses.replace(chains, draws=draws)
    elif forge == "certificate":
        forged = dataclasses.replace(chains, certificate_=dataclasses.replace(chains.certificate_, value=0.01))
    else:
        forged = dataclasses.replace(chains, stats={"diverging": np.eye(4, 600)})
    assert bool(ln.verify(chains)) and not ln.verify(forged)


def test_verification_takes_no_data():
    with pytest.raises(VerificationError, match="need no data"):
        ln.verify(good(), np.zeros((3, 1)))


def test_numbers_that_never_move_are_left_out_unless_nothing_moves():
    rng = np.random.default_rng(1)
    fixed = np.zeros((4, 600))
    chains = Chains.from_arrays({"x": rng.normal(size=(4, 600)), "zero": fixed})
    assert chains.certificate_.holds and bool(ln.verify(chains))
    assert chain_value(fixed[:, :, None], None) == np.inf
    stuck = np.repeat(np.arange(4.0)[:, None], 600, axis=1)
    assert not Chains.from_arrays({"x": rng.normal(size=(4, 600)), "stuck": stuck}).certificate_.holds


def test_two_values_can_be_certified():
    coin = np.random.default_rng(2).integers(0, 2, size=(4, 2000)).astype(float)
    chains = Chains.from_arrays({"coin": coin})
    assert chains.certificate_.holds and bool(ln.verify(chains))


def test_a_file_gives_back_the_same_chains(tmp_path):
    chains = metropolis_hastings(lambda x: -0.5 * x @ x, x0=[0.0, 1.0], n_draws=400, random_state=1, keep_warmup=True)
    ln.save(chains, tmp_path / "c.safetensors")
    loaded = ln.load(tmp_path / "c.safetensors")
    for field in dataclasses.fields(Chains):
        a, b = getattr(chains, field.name), getattr(loaded, field.name)
        if isinstance(a, dict):
            assert a.keys() == b.keys()
            for key in a:
                np.testing.assert_array_equal(a[key], b[key])
        elif isinstance(a, np.ndarray):
            np.testing.assert_array_equal(a, b)
        else:
            assert a == b
    assert bool(ln.verify(loaded)) == loaded.certificate_.holds


@pytest.mark.parametrize(
    "change, message",
    [
        ({"names": ("a", "a")}, "distinct"),
        ({"shapes": ((), (2, 2))}, "do not fill"),
        ({"stats": {"accept": np.zeros((4, 3))}}, "does not fit"),
        ({"streams": np.zeros((2, 6), dtype=np.uint64)}, "streams"),
        ({"thin": 0}, "out of range"),
        ({"draws": np.full((4, 600, 7), np.nan)}, "finite"),
        ({"certificate_": Certificate("gap", 0.0, 1.0)}, "kind chain"),
    ],
)
def test_damaged_chains_are_neither_saved_nor_loaded(tmp_path, change, message):
    with pytest.raises(ModelFileError, match=message):
        ln.save(dataclasses.replace(good(), **change), tmp_path / "c.safetensors")


def test_a_part_of_models_is_no_file_of_its_own(tmp_path):
    with pytest.raises(ModelFileError):
        ln.save(Certificate("gap", 0.0, 1.0), tmp_path / "c.safetensors")


def test_a_summary_looks_at_a_few_parameters_at_a_time():
    chains = Chains.from_arrays({"x": np.random.default_rng(0).normal(size=(4, 1000, 500))})
    chains.summary()  # R-hat and ESS are kept
    tracemalloc.start()
    summary = chains.summary()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.6 * chains.draws.nbytes
    np.testing.assert_allclose(summary.columns["sd"], chains.draws.std(axis=(0, 1), ddof=1))
    np.testing.assert_allclose(summary.columns["50%"], np.median(chains.draws, axis=(0, 1)))


def test_summary_as_text_html_and_rows():
    summary = good().summary(level=0.8)
    assert summary.row("mu")["mean"] == pytest.approx(float(good()["mu"].mean()))
    assert list(summary.columns)[3:6] == ["10%", "50%", "90%"]
    assert "w[1,2]" in str(summary) and "tolerance 1" in str(summary)
    assert summary._repr_html_().startswith("<table>") and good()._repr_html_().count("<tr>") == 8
    frame = summary.to_frame()
    assert frame.shape == (7, 9) and frame.index[0] == "mu"


def test_bad_arrays_are_refused():
    with pytest.raises(DataError, match="no draws"):
        Chains.from_arrays({})
    with pytest.raises(DataError, match="same chains and draws"):
        Chains.from_arrays({"a": np.zeros((2, 5)), "b": np.zeros((2, 6))})
    with pytest.raises(DataError, match="must have shape"):
        Chains.from_arrays({"a": np.zeros(5)})


def test_chains_that_fail_warn_with_the_remedy():
    with pytest.warns(ConvergenceWarning, match="effective draws, fewer than 400: draw more"):
        metropolis_hastings(lambda x: -0.5 * x @ x, x0=[0.0], n_draws=50, random_state=0)


def test_arviz_and_back():
    pytest.importorskip("arviz")
    chains = good()
    back = Chains.from_arviz(chains.to_arviz())
    np.testing.assert_array_equal(back["w"], chains["w"])


@pytest.mark.parametrize("name", ["Certificate", "Nobody", 3, None])
def test_a_file_may_not_hold_any_part_by_itself(name):
    document = {"part": {"class": name, "fields": {}}}
    with pytest.raises(ModelFileError, match="only ever a part of a model"):
        decode(document, {})
