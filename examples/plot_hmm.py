"""Earthquakes and hidden rates: a Poisson hidden Markov model, its path and its doubts.

Run with the name of a folder to get the figures as SVG files: python examples/plot_hmm.py figures
"""

import sys
from pathlib import Path

import numpy as np

from learnable import GaussianHMM, PoissonHMM, verify
from learnable.lab.tables import earthquakes
from learnable.plots import labelled_lines
from learnable.sequences import select_states

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None

COUNTS = earthquakes()[:, None]  # of each year from 1900 to 2006
years = np.arange(len(COUNTS))  # since 1900
settings = PoissonHMM(n_iter=500, tol=1e-4, n_init=4, random_state=0)

choice = select_states(settings, COUNTS, candidates=range(1, 5))
print("BIC chooses", choice.n_components, "states:", {K: round(value, 1) for K, value in choice.criteria.items()})

model = settings.set_params(n_components=3).fit(COUNTS)
order = np.argsort(model.lambdas_[:, 0])
print(f"three states: log-likelihood {model.score(COUNTS):.3f}, rates {model.lambdas_[order, 0].round(2)}")
print(model.certificate_)
print(verify(model, COUNTS))

rate = model.lambdas_[model.predict(COUNTS), 0]
probability = model.predict_proba(COUNTS)[:, order]
print(f"expected next years: {model.forecast(COUNTS, steps=3)[0, :, 0].round(1)}")

# Two regimes of a noisy signal; a third of the rows is missing in one long gap.
signal = GaussianHMM(2)
signal.startprob_, signal.transmat_ = np.array([0.5, 0.5]), np.array([[0.96, 0.04], [0.08, 0.92]])
signal.means_, signal.covars_ = np.array([[-1.0], [1.0]]), np.array([[0.8], [0.8]])
seen, truth = signal.sample(240, random_state=3)
seen[100:180] = np.nan
fitted = GaussianHMM(2, n_iter=500, n_init=4, random_state=0).fit(seen)
up = int(fitted.means_[:, 0].argmax())
smoothed, filtered = fitted.predict_proba(seen)[:, up], fitted.filter_proba(seen)[:, up]
right = (fitted.predict(seen) == up) == (truth == 1)
print(f"decoded rightly: {right[:100].mean():.0%} before the gap, {right[100:180].mean():.0%} inside it")
moments = np.arange(len(seen))

figures = {
    "hmm_gap": labelled_lines(
        {
            "the truth": (np.repeat(moments, 2)[1:], np.repeat(truth.astype(float), 2)[:-1]),
            "all rows": (moments, smoothed),
            "rows so far": (moments, filtered),
        },
        y_range=(0.0, 1.0),
        title="Probability of the upper regime; rows 100 to 179 are missing",
        x_label="row",
        y_label="probability",
    ),
    "hmm_path": labelled_lines(
        {"earthquakes": (years, COUNTS[:, 0]), "rate": (np.repeat(years, 2)[1:], np.repeat(rate, 2)[:-1])},
        title="Major earthquakes a year and the rate of the best path",
        x_label="years since 1900",
        y_label="earthquakes",
    ),
    "hmm_states": labelled_lines(
        {f"rate {model.lambdas_[k, 0]:.0f}": (years, probability[:, i]) for i, k in enumerate(order)},
        y_range=(0.0, 1.0),
        title="Probability of each state given all years",
        x_label="years since 1900",
        y_label="probability",
    ),
}

print(f"figure: {len(figures['hmm_states'])} characters of SVG")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
