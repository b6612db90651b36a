"""Every example runs, shows the certificates it promises, and draws the figures of the gallery."""

import ast
import importlib
import importlib.util
import os
import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
from tests.plots.svg import parse

import learnable

ROOT = Path(__file__).parents[1]
EXPECTED = {
    "demo.py": ["closed-form: ", "gap: ", "verified: ", "NOT verified: ", "load: "],
    "plot_trees.py": ["full tree greedy: ", "one standard error: ", "path: ", "mean over ten orders, mdl: "],
    "plot_boundaries.py": ["Bayes risk 0.142338", "boundary: line: ", "boundary: hyperbola: ", "excess risk 0.0004"],
    "plot_adaboost.py": [
        "weighted error 0.14, vote 0.92",
        "errs on 0.50 of the weight",
        "the vote errs on 0%",
        "greedy: ",
    ],
    "plot_margins.py": ["boosting  60 trees: training error 0.000", "largest margin of any vote of stumps: 0.3333"],
    "plot_forest_intervals.py": ["forest greedy: ", "90% intervals hold", "shuffling x0 adds", "figure: "],
    "plot_networks.py": [
        "start zeros: 1 different units of 8",
        "start glorot: 8 different units of 8",
        "double descent: test error peaks at 60 units for 60 rows",
        "free gradients: its loss became infinite",
        "rescaled gradients: it arrived",
    ],
    "plot_shap.py": ["boosting greedy: ", "base 152.13", "strongest interaction: ", "most important by gain: "],
    "plot_boosting.py": ["boosting greedy: ", "kept the best ", "training loss rises: False", "crossings: 0"],
    "plot_paths.py": ["LassoCV gap: ", "largest duality gap along the path", "ridge path: "],
    "plot_duality.py": [
        "gap 0; strong duality",
        "optimum (0.7156, 0.6985), multiplier 1.7949",
        "to 4.800 or more",
        "without Slater: a strictly feasible point exists: False",
    ],
    "plot_convex.py": [
        "chord of the clover leaves it: True",
        "where the line touches: True",
        "at its kink: True; others do: False",
        "dual norm 7",
    ],
    "plot_complexity.py": [
        "never rises with the degree: True",
        "ridge gap: ",
        "never falls with λ: True",
        "leave-one-out chooses",
    ],
    "plot_optimisers.py": ["the step is too long", "leaves the pass", "Closed form against gradient descent", "gap: "],
    "plot_losses.py": ["never below the 0/1 loss", "not convex", "p = 1 (lasso) is at (0.00, 1.00)"],
    "plot_svm.py": [
        "hard margin 0.22696653, half the distance of the hulls 0.22696653",
        "path: ",
        "14 on the wrong side",
    ],
    "plot_inequalities.py": [
        "tightest for 10 errors in 100: Clopper–Pearson, below 0.1637",
        "halfspaces label 7 points of the plane in 44 of 128 ways",
        "lies between its bounds: True",
    ],
    "plot_bounds.py": ["logistic regression          held-out", "learnt: x0 ∧ x3 ∧ ¬x7", "probability 0.95: 140"],
    "plot_stein.py": ["better than the mean at every θ"],
    "plot_manifolds.py": [
        "rank correlation 1.000; closed-form: ",
        "Isomap leaves out 0.14%",
        "parallel: 3",
        "gaps filled with an error of 0.79 standard deviations; ascent: ",
        "of the digits; stationarity: ",
        "t-SNE of the digits: divergence 0.",
        "verified: ",
    ],
    "plot_em.py": [
        "log-likelihood of two components: -1130.26",
        "ascent: ",
        "verified: ",
        "the same hill by L-BFGS: -1130.26",
    ],
    "plot_bandits.py": ["every proved bound holds: True", "UCB1: regret", "no constants are proved", "adversary's"],
    "plot_decisions.py": ["cliff: -13.0 bellman: ", "verified: bellman", "[0.16 0.4  0.64]", "-0.043113 per game"],
    "plot_deep_rl.py": ["interquartile mean over 4 seeds", "PPO, first seed: mean return", "diagnosis: DQN: values"],
    "plot_sampling.py": ["Metropolis, short steps", "certified: False", "groups [[0, 1, 2], [3]]", "verified: chain"],
    "plot_topics.py": ["bars: 10 of 10 found", "topic of coherence", "cats, K = 3: α = ", "verified: ascent"],
    "plot_hmm.py": ["log-likelihood -328.5", "ascent: ", "BIC chooses", "figure: "],
    "plot_motif.py": ["bits in 57 positions", "evidence of position weights", "of pairs"],
    "plot_bayesian_regression.py": [
        "in the gap",
        "greatest evidence: noise",
        "stationarity: ",
        "the evidence chooses degree",
    ],
    "linear_models.py": [
        "LinearRegression closed-form: ",
        "RidgeCV closed-form: ",
        "LogisticRegression gap: ",
        "95 % prediction interval",
    ],
}


#: Which example draws which figure of docs/gallery.md.
FIGURES = {
    "plot_losses.py": {"surrogate_losses", "regression_losses", "lp_balls", "balls_and_errors"},
    "plot_optimisers.py": {"valley", "valley_convergence", "saddle", "cliff", "closed_form"},
    "plot_paths.py": {"paths"},
    "plot_duality.py": {"lagrangian_saddle", "program_optimum", "gap_without_slater"},
    "plot_convex.py": {"convex_sets", "convex_functions", "conjugates"},
    "plot_complexity.py": {"complexity"},
    "plot_boundaries.py": {"boundaries"},
    "plot_stein.py": {"stein"},
    "plot_manifolds.py": {"swiss_roll", "eurodist", "scree", "biplot", "digits", "digit_parts"},
    "plot_em.py": {"kmeans_steps", "em_steps", "mixture_density", "em_bound"},
    "plot_bandits.py": {"regret_bounds"},
    "plot_decisions.py": {"cliff_policy", "cliff_returns", "gambler", "blackjack_policy"},
    "plot_topics.py": {"bars", "nancycats", "hapmap"},
    "plot_deep_rl.py": {"deep_curves", "deep_critics", "deep_values", "deep_pole"},
    "plot_hmm.py": {"hmm_gap", "hmm_path", "hmm_states"},
    "plot_sampling.py": {
        "sampling_metropolis",
        "sampling_gibbs",
        "sampling_nuts",
        "sampling_paths",
        "sampling_funnel",
        "sampling_ranks_good",
        "sampling_ranks_bad",
        "sampling_schools",
        "sampling_trace",
    },
    "plot_motif.py": {"motif_promoters", "motif_splice"},
    "plot_bayesian_regression.py": {"bayesian_regression", "bayesian_evidence"},
    "plot_trees.py": {"tree", "pruning_path"},
    "plot_adaboost.py": {
        "adaboost_round_1",
        "adaboost_round_2",
        "adaboost_round_3",
        "adaboost_vote",
        "adaboost_errors",
    },
    "plot_margins.py": {"margins"},
    "plot_boosting.py": {"boosting_stops", "boosting_errors", "boosting_quantiles"},
    "plot_forest_intervals.py": {"forest_intervals"},
    "plot_shap.py": {"shap_summary", "partial_dependence"},
    "plot_svm.py": {"svm_margins", "svm_hard_margin", "svm_path"},
    "plot_gaussian_process.py": {"gaussian_process"},
    "plot_inequalities.py": {
        "inequalities",
        "growth_functions",
        "rademacher_averages",
        "law_of_large_numbers",
        "central_limit",
    },
    "plot_bounds.py": {"bounds", "pac_conjunctions"},
    "plot_networks.py": {
        "symmetry",
        "saturation",
        "gradient_flow",
        "double_descent",
        "clipping",
        "first_layer",
        "landscape",
    },
}


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """What the demo prints as a process of its own, as users start it."""
    folder = tmp_path_factory.mktemp("demo")
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, "-W", "error::UserWarning", str(ROOT / "examples" / "demo.py")]
    done = subprocess.run(
        command, capture_output=True, encoding="utf-8", cwd=folder, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    assert not list(folder.iterdir()), "an example leaves no files behind"
    return done.stdout


def run_example(name, *arguments):
    """Run an example as a script; in this process, which has the library and its kernels loaded."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        patch.setattr(sys, "argv", [name, *arguments])
        runpy.run_path(str(ROOT / "examples" / name), run_name="__main__")


EXAMPLES = sorted(path.name for path in (ROOT / "examples").glob("*.py"))
#: Those that take more than two seconds; only `make test-full` and `make docs`, which shows their figures, run them.
SLOW = {
    "plot_bandits.py",
    "plot_complexity.py",
    "plot_deep_rl.py",
    "plot_manifolds.py",
    "plot_margins.py",
    "plot_networks.py",
    "plot_optimisers.py",
    "plot_sampling.py",
    "plot_stein.py",
    "plot_topics.py",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_name_that_an_example_imports_is_there(name):
    tree = ast.parse((ROOT / "examples" / name).read_text(encoding="utf-8"))
    imported = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    for node in imported:
        module = importlib.import_module(node.module)
        for alias in node.names:
            assert hasattr(module, alias.name) or importlib.util.find_spec(f"{node.module}.{alias.name}"), alias.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "ln":
            assert hasattr(learnable, node.attr), node.attr


@pytest.mark.threaded
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long) if name in SLOW else name for name in EXAMPLES]
)
def test_example_runs(name, tmp_path, monkeypatch, capsys, request):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    if name == "demo.py":
        printed = request.getfixturevalue("demo")
    else:
        run_example(name, *([str(tmp_path / "figures")] if name in FIGURES else []))
        printed = capsys.readouterr().out
    for expected in EXPECTED.get(name, []):
        assert expected in printed
    assert "DOES NOT HOLD" not in printed
    assert not list((tmp_path / "empty").iterdir()), "an example leaves no files behind"
    drawn = {path.stem: path.read_text(encoding="utf-8") for path in tmp_path.glob("figures/*.svg")}
    assert set(drawn) == FIGURES.get(name, set())
    for figure in drawn.values():
        parse(figure)
        assert len(figure) < 120_000


def test_the_gallery_asks_for_every_figure_and_no_other():
    asked = re.findall(r"<!-- figure: (\w+) -->", (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8"))
    assert sorted(asked) == sorted(set().union(*FIGURES.values()))


def test_demo_verifies_every_model_and_catches_both_forgeries(demo):
    lines = [line.strip() for line in demo.splitlines()]
    assert sum(line.startswith("verified: ") for line in lines) == 3
    assert sum(line.startswith("NOT verified: ") for line in lines) == 1
    assert sum("identical predictions after loading: True" in line for line in lines) == 3
    assert "its checksum does not match" in " ".join(lines)
