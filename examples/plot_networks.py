"""Networks from one unit to an LSTM: symmetry, saturation, gradient flow, double descent, a cliff, digits.

Run with the name of a folder to get the figures as SVG files: python examples/plot_networks.py figures
"""

import sys
import warnings
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import learnable as ln
from learnable.neural import double_descent, gradient_report, loss_along_line, loss_on_plane
from learnable.plots import image_grid, labelled_lines, path_plot, side_by_side
from learnable.solvers import Rescale

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None


def keep(name, figure):
    """Write a figure, if there is a folder for it."""
    if FOLDER is not None:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


rng = np.random.default_rng(0)
X = rng.normal(size=(300, 2))
ring = (np.linalg.norm(X, axis=1) < 1.1).astype(int)

# 1. Symmetry: units that start equal get equal gradients and stay equal. Eight units then do the work of one.
settings = {"activation": "tanh", "learning_rate": "cosine", "learning_rate_init": 0.03, "max_iter": 150, "tol": 0.0}
settings |= {"random_state": 0, "n_iter_no_change": 150}
curves = {}
for init in ("zeros", "glorot", "lsuv"):
    model = ln.MLPClassifier((8,), init=init, **settings).fit(X, ring)
    distinct = len(np.unique(model.coefs_[0].round(6), axis=1).T)
    print(f"start {init}: {distinct} different units of 8, training accuracy {model.score(X, ring):.2f}")
    curves[init] = (np.arange(len(model.loss_curve_)), model.loss_curve_)
keep("symmetry", labelled_lines(curves, title="Loss by start", x_label="epoch", y_label="loss"))

# 2. Saturated units: inputs a hundred times too large leave logistic units flat, and little is learned.
scales = np.geomspace(0.1, 1000.0, 13)
saturated, losses = [], []
for scale in scales:
    flat = ln.MLPClassifier((16,), **(settings | {"activation": "logistic", "max_iter": 100})).fit(scale * X, ring)
    report = gradient_report(flat, scale * X, ring)
    saturated.append(report.layers[1].saturated)
    losses.append(flat.loss_)
    if np.isclose(scale, 100.0):
        print(f"saturated: {saturated[-1]:.0%} of the logistic units' values;", report.words[0])
lines = {"saturated": (scales, saturated), "loss": (scales, losses)}
keep(
    "saturation",
    labelled_lines(lines, x_log=True, title="Inputs too large", x_label="scale of the inputs", y_label="share, loss"),
)

# 3. Gradient flow in thirty layers, with and without shortcuts, before any training.
plain = ln.MLPClassifier((16,) * 30, activation="tanh", init="uniform", **{k: settings[k] for k in ("random_state",)})
plain.set_params(learning_rate="cosine", learning_rate_init=1e-9, max_iter=1).fit(X, ring)
blocks = ln.ResNetClassifier(30, 16, activation="tanh", learning_rate="cosine", learning_rate_init=1e-9, max_iter=1)
blocks.set_params(random_state=0).fit(X, ring)
flows = {name: gradient_report(m, X, ring).measured for name, m in (("plain", plain), ("residual", blocks))}
depth = {name: (np.linspace(0.0, 1.0, len(flow)), flow) for name, flow in flows.items()}
print(f"gradient that reaches the first layer: plain {flows['plain'][0]:.1e}, residual {flows['residual'][0]:.1e}")
keep(
    "gradient_flow",
    labelled_lines(depth, y_log=True, title="Gradient by depth", x_label="share of the way", y_label="of the last"),
)

# 4. Double descent: the test error peaks where units are as many as rows, and falls again beyond.
Z, new = rng.normal(size=(60, 6)), rng.normal(size=(1000, 6))


def truth(rows):
    """Return what the rows have without noise."""
    return np.sin(rows[:, 0]) + rows[:, 1]


widths = [5, 10, 20, 40, 50, 60, 70, 80, 120, 250, 500, 1000, 3000]
descent = double_descent(Z, truth(Z) + 0.3 * rng.normal(size=60), new, truth(new), widths)
peak = int(descent.widths[np.argmax(descent.test)])
print(f"double descent: test error peaks at {peak} units for 60 rows, and ends at {descent.test[-1]:.2f}")
lines = {"training": (descent.widths, np.maximum(descent.train, 1e-6)), "test": (descent.widths, descent.test)}
keep(
    "double_descent",
    labelled_lines(lines, x_log=True, y_log=True, title="Double descent", x_label="units", y_label="squared error"),
)

# 5. A cliff: a recurrent network whose loss has a wall. Rescaled gradients stay on this side of it.
series = rng.normal(size=(64, 30, 1))
total = series[:, :, 0].sum(axis=1)
walls = {}
for name, clip in (("free", None), ("rescaled", Rescale(1.0))):
    cell = ln.RNNRegressor(6, cell="relu", clip=clip, solver="sgd", momentum=0.0, nesterovs_momentum=False)
    cell.set_params(learning_rate="cosine", learning_rate_init=0.03, max_iter=40, random_state=1, tol=0.0)
    cell.set_params(n_iter_no_change=40, init="orthogonal")
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        cell.fit(series, total)
    walls[name] = (np.arange(len(cell.loss_curve_)), np.minimum(cell.loss_curve_, 1e6))
    ended = "its loss became infinite" if any("infinite" in str(w.message) for w in heard) else "it arrived"
    print(f"cliff, {name} gradients: {ended} after {len(cell.loss_curve_)} epochs, loss {cell.loss_:.3g}")
keep("clipping", labelled_lines(walls, y_log=True, title="A cliff", x_label="epoch", y_label="loss"))

# 6. Digits: what the first layer looks for, and the loss around the fit.
digits = load_digits()
pixels = digits.data / 16.0
images = ln.MLPClassifier(
    (32,), alpha=1.0, learning_rate="cosine", learning_rate_init=0.01, max_iter=30, random_state=0
)
images.fit(pixels[:1200], digits.target[:1200])
print(f"digits: test accuracy {images.score(pixels[1200:], digits.target[1200:]):.3f}, {images.certificate_}")
keep("first_layer", image_grid(images.coefs_[0].T.reshape(-1, 8, 8), title="Weights of the first layer"))
line = loss_along_line(images, pixels[:500], digits.target[:500], reach=1.0, n_points=31)
plane = loss_on_plane(images, pixels[:500], digits.target[:500], reach=1.0, n_points=15)
keep(
    "landscape",
    side_by_side(
        labelled_lines({"loss": (line.t, line.loss)}, title="Along a line", x_label="t", y_label="loss"),
        path_plot(plane.t, plane.s, plane.loss, {"the fit": np.zeros((1, 2))}, title="On a plane"),
        title="The loss around the fit",
    ),
)
