"""EM and k-means on Old Faithful, step by step: assignments, ellipses, the density, and the bound that EM raises.

Run with the name of a folder to get the figures as SVG files: python examples/plot_em.py figures
"""

import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np

from learnable import GaussianMixture, KMeans, MixtureModel, VariationalGaussianMixture, verify
from learnable.lab.tables import old_faithful
from learnable.plots import labelled_lines, side_by_side
from learnable.plots.axes import ACCENT, MUTED, Frame
from learnable.plots.markup import tag
from learnable.plots.optimization import contour_lines
from learnable.probability import MultivariateNormal

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
COLOURS = (ACCENT, "var(--ln-warn, #b3541e)")

rows = old_faithful()  # minutes that an eruption lasts, and minutes until the next
X = (rows - rows.mean(axis=0)) / rows.std(axis=0)
START = np.array([[-1.5, 1.0], [1.5, -1.0]])  # far from where they belong
RANGE = (-2.6, 2.6)


def panel(title, share, marks):
    """Draw the rows in the colours of the components that they belong to, by their share, and marks on them."""
    frame = Frame.around(RANGE, RANGE, width=250.0, height=250.0)
    drawn = []
    for k, colour in enumerate(COLOURS):
        for level in (0.2, 0.4, 0.6, 0.8, 1.0):
            some = X[np.abs(share[:, k] - level) <= 0.1]
            places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in some)
            if places:
                style = {"stroke": colour, "stroke_width": 3.5, "stroke_linecap": "round", "opacity": 0.7 * level}
                drawn.append(tag("path", d=places, fill="none", **style))
    return frame.draw(title, *drawn, *marks(frame), x_label="duration", y_label="waiting time")


def plural(steps):
    """Return a number of steps in words."""
    return f"{steps} step" + "s" * (steps > 1)


def cross(frame, point):
    """Draw a centre."""
    x, y = frame.x(point[0]), frame.y(point[1])
    return tag("path", d=f"M{x - 5:.1f} {y - 5:.1f}l10 10m0 -10l-10 10", stroke="currentColor", stroke_width=2.2)


def ellipse(frame, mean, cov):
    """Draw where the density of a component has two standard deviations."""
    angle = np.linspace(0, 2 * np.pi, 60)
    line = mean + 2 * np.stack([np.cos(angle), np.sin(angle)], axis=1) @ np.linalg.cholesky(cov).T
    return frame.line(line[:, 0], line[:, 1], stroke="currentColor", stroke_width=1.6)


def quietly(model):
    """Fit a model that is not given enough steps, which it says in a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X)


# 1. k-means: assign, move the centres, assign again.
panels = []
for steps in (1, 2, 3):
    model = quietly(KMeans(2, init=START, max_iter=steps, tol=0.0))
    share = np.eye(2)[model.labels_]
    panels.append(panel(f"{plural(steps)}, inertia {model.inertia_:.1f}", share, lambda frame, model=model: [
        cross(frame, point) for point in model.cluster_centers_
    ]))  # fmt: skip
figures = {"kmeans_steps": side_by_side(*panels, title="k-means on Old Faithful")}


# 2. EM from the same centres: rows belong to both components, by their responsibilities.
def em_after(steps):
    """Return the mixture after some steps of EM."""
    given = {"means_init": START, "weights_init": [0.5, 0.5], "precisions_init": np.stack([np.eye(2)] * 2)}
    return quietly(GaussianMixture(2, **given, reg_covar=0.0, tol=0.0, max_iter=steps))


panels = []
for steps in (1, 5, 10, 30):
    model = em_after(steps)
    title = f"{plural(steps)}, log-likelihood {272 * model.lower_bound_:.1f}"
    panels.append(panel(title, model.predict_proba(X), lambda frame, model=model: [
        ellipse(frame, mean, cov) for mean, cov in zip(model.means_, model.covariances_, strict=True)
    ]))  # fmt: skip
figures["em_steps"] = side_by_side(*panels, title="EM on Old Faithful")

# 3. The fit in the units of the data, by EM and by gradient ascent; the density; how many components.
fit = GaussianMixture(2, tol=1e-10, max_iter=500, random_state=0).fit(rows)
print(f"log-likelihood of two components: {fit.score_samples(rows).sum():.3f}")
print(fit.certificate_)
print(verify(fit, rows))
climbed = MixtureModel("MultivariateNormal", 2, solver="lbfgs", tol=1e-9, max_iter=2000, random_state=0).fit(rows)
print(f"the same hill by L-BFGS: {climbed.score_samples(rows).sum():.3f} in {climbed.n_iter_} iterations")
bayes = VariationalGaussianMixture(6, weight_concentration_prior=1e-2, max_iter=2000, random_state=0).fit(rows)
print(f"a variational mixture of at most six: {np.sort(bayes.counts_)[::-1].round(1)} rows each")

xs, ys = np.linspace(1.2, 5.6, 89), np.linspace(38, 100, 89)
grid = np.stack(np.meshgrid(xs, ys), axis=-1).reshape(-1, 2)
density = np.exp(fit.score_samples(grid)).reshape(89, 89)
frame = Frame.around((1.2, 5.6), (38.0, 100.0), width=460.0, height=340.0)
places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in rows)
marks = [tag("path", d=places, fill="none", stroke=ACCENT, stroke_width=3.5, stroke_linecap="round", opacity=0.45)]
for share in (0.02, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8):
    for line in contour_lines(xs, ys, density, share * density.max()):
        marks.append(frame.line(line[:, 0], line[:, 1], stroke=MUTED, stroke_width=1.4))
marks.extend(cross(frame, mean) for mean in fit.means_)
figures["mixture_density"] = frame.draw(
    "Density of a mixture of two", *marks, x_label="duration (minutes)", y_label="minutes until the next eruption"
)


# 4. The bound F(q, θ) = log p(x | θ) − KL(q ‖ p(z | x, θ)): an E-step closes the gap, an M-step lifts the bound.
def log_joint(model):
    """Return log p(x, z) of every row and component."""
    parts = zip(model.weights_, model.means_, model.covariances_, strict=True)
    return np.stack([np.log(p) + MultivariateNormal(m, c).logpdf(X) for p, m, c in parts], axis=1)


models = [em_after(steps) for steps in range(1, 13)]
likelihood, bound = [], []
for before, after in pairwise(models):
    q = before.predict_proba(X)
    entropy = -np.sum(q * np.log(np.maximum(q, 1e-300)))
    for model in (before, after):  # the E-step at `before`; then the M-step, with the same q
        likelihood.append(float(np.logaddexp(*log_joint(model).T).sum()))
        bound.append(float(np.sum(q * log_joint(model)) + entropy))
half_steps = np.repeat(np.arange(1, 12), 2) + np.tile([0.0, 0.96], 11)
gap = np.array(likelihood) - np.array(bound)
print(f"the bound meets the log-likelihood after every E-step: largest gap {np.abs(gap[::2]).max():.1e}")
lines = {"log p(x | θ)": (half_steps, likelihood), "bound F(q, θ)": (half_steps, bound)}
figures["em_bound"] = side_by_side(
    labelled_lines(lines, title="Bound and log-likelihood", x_label="steps", y_label="log-likelihood"),
    labelled_lines(
        {"divergence": (half_steps, gap)}, title="Divergence", x_label="steps", y_label="KL(q ‖ p(z | x, θ))"
    ),
    title="What EM raises",
)

for name, figure in figures.items():
    print(f"{name}: {len(figure)} characters of SVG")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
