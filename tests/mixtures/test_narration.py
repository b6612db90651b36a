"""What `verbose` prints: the iterations of a fit, in scikit-learn's words, and nothing without it."""

import re

import numpy as np
import pytest

from learnable import GaussianMixture, KMeans, MiniBatchKMeans
from learnable.core.errors import ParameterError
from learnable.mixtures import VariationalGaussianMixture


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(centre, 1.0, size=(150, 3)) for centre in (-3.0, 0.0, 4.0)])


def inertias(text):
    return [float(value) for value in re.findall(r"^Iteration \d+, inertia (\S+)\.$", text, re.MULTILINE)]


@pytest.mark.parametrize("scale", [1.0, 1e6, 1e-6, 1e-170, 1e150, 1e200])
def test_kmeans_prints_its_history_in_the_units_of_the_data(rows, scale, capsys):
    model = KMeans(3, init="random", n_init=1, random_state=1, verbose=1).fit(rows * scale)
    text = capsys.readouterr().out
    assert text.startswith("Initialization complete\nIteration 0, inertia ")
    np.testing.assert_allclose(inertias(text)[: len(model.inertia_history_)], model.inertia_history_, rtol=1e-5)
    assert re.search(r"Converged at iteration \d+: (strict convergence|center shift .* within tolerance .*)\.$", text)


@pytest.mark.parametrize("n_init", [1, 3])
def test_kmeans_says_why_every_restart_ended(rows, n_init, capsys):
    KMeans(5, init="random", n_init=n_init, random_state=0, tol=0, verbose=True).fit(rows)
    text = capsys.readouterr().out
    assert text.count("Initialization complete") == n_init
    assert text.count("strict convergence") == n_init
    KMeans(5, init="random", n_init=n_init, random_state=0, tol=0.1, verbose=True).fit(rows)
    assert capsys.readouterr().out.count("within tolerance") == n_init


def test_a_fit_that_does_not_converge_does_not_say_so(rows, capsys):
    with pytest.warns(UserWarning, match="stopped after"):
        KMeans(8, init="random", n_init=1, max_iter=1, tol=0, random_state=0, verbose=1).fit(rows)
    assert "Converged" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tol": 1e-2, "max_no_improvement": None}, "small centers change"),
        ({"tol": 0.0, "max_no_improvement": 5}, "lack of improvement in inertia"),
    ],
)
def test_batches_are_printed(rows, settings, reason, capsys):
    model = MiniBatchKMeans(3, batch_size=50, random_state=0, verbose=1, **settings).fit(rows)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == model.n_steps_ + 1
    for number, line in enumerate(lines[:-1], start=1):
        assert re.fullmatch(rf"Minibatch step {number}/900: mean batch inertia: \S+, ewa inertia: \S+", line)
    assert lines[-1] == f"Converged ({reason}) at step {model.n_steps_}/900"


@pytest.mark.parametrize("Model", [GaussianMixture, VariationalGaussianMixture])
@pytest.mark.parametrize("verbose", [1, 2])
def test_mixtures_print_starts_and_every_so_many_steps(rows, Model, verbose, capsys):
    model = Model(3, n_init=2, tol=1e-9, max_iter=300, random_state=0, verbose=verbose, verbose_interval=2).fit(rows)
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if re.fullmatch(r"Initialization \d", line)] == [
        "Initialization 0",
        "Initialization 1",
    ]
    steps = [int(step) for step in re.findall(r"^  Iteration (\d+)", text, re.MULTILINE)]
    assert steps == list(range(2, steps[-1] + 1, 2)) and model.n_iter_ - 2 <= steps[-1]
    assert ("time lapse" in text) == (verbose == 2)
    assert "Initialization converged" in text.splitlines()[-1]


@pytest.mark.parametrize("model", [KMeans(2), MiniBatchKMeans(2), GaussianMixture(2), VariationalGaussianMixture(2)])
def test_nothing_is_printed_without_it_and_nothing_else_is_taken(model, rows, capsys):
    model.fit(rows)
    assert capsys.readouterr().out == ""
    with pytest.raises(ParameterError, match="verbose must"):
        model.set_params(verbose=-1).fit(rows)
