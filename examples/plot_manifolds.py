"""A swiss roll unrolled by five methods, with their distortions; Europe from road distances; digits; components.

The figures are SVG text; pass a folder to keep them: `python examples/plot_manifolds.py figures/`.
"""

import csv
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine, make_swiss_roll

from learnable import PCA, verify
from learnable.manifold import (
    MDS,
    NMF,
    TSNE,
    ClassicalMDS,
    DiffusionMaps,
    Isomap,
    LocallyLinearEmbedding,
    ProbabilisticPCA,
    SpectralEmbedding,
    continuity,
    trustworthiness,
)
from learnable.plots import biplot, image_grid, scree, side_by_side
from learnable.plots.axes import Frame, extent
from learnable.plots.markup import tag

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
COLOURS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")


def panel(title, points, value, words):
    """Draw points in five colours by a value, with some words below."""
    frame = Frame.around(extent(points[:, 0]), extent(points[:, 1]), width=250.0, height=250.0)
    order = np.digitize(value, np.quantile(value, [0.2, 0.4, 0.6, 0.8]))
    drawn = []
    for k, colour in enumerate(COLOURS):
        places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in points[order == k])
        drawn.append(tag("path", d=places, fill="none", stroke=colour, stroke_width=3.0, stroke_linecap="round"))
    return frame.draw(title, *drawn, x_label=words, y_label="second")


def rank_correlation(a, b):
    """Return how well the best linear function of some coordinates orders the rows as b does."""
    design = np.column_stack([np.ones(len(a)), a])
    fit = design @ np.linalg.lstsq(design, b, rcond=None)[0]
    return abs(np.corrcoef(np.argsort(np.argsort(fit)), np.argsort(np.argsort(b)))[0, 1])


# 1. The swiss roll: its rows lie on a sheet of two dimensions, rolled up in three. PCA sees the roll from the side.
X, position = make_swiss_roll(800, random_state=0)
METHODS = {
    "PCA": PCA(2),
    "Isomap": Isomap(n_neighbors=8),
    "LTSA": LocallyLinearEmbedding(n_neighbors=12, method="ltsa"),
    "Laplacian eigenmaps": SpectralEmbedding(n_neighbors=10),
    "diffusion maps": DiffusionMaps(epsilon=6.0),
}
panels = []
for name, model in METHODS.items():
    shown = model.fit_transform(X)
    found = rank_correlation(shown, position)
    kept = trustworthiness(X, shown, n_neighbors=12)
    torn = continuity(X, shown, n_neighbors=12)
    print(f"{name:20s} position along the roll: rank correlation {found:.3f}; {model.certificate_}")
    print(f"{'':20s} trustworthiness {kept:.3f}, continuity {torn:.3f}")
    panels.append(panel(name, shown, position, f"first; trust {kept:.2f}, continuity {torn:.2f}"))
print("Isomap leaves out", f"{METHODS['Isomap'].residual_variance_:.2%} of the variance of distances along the roll")
print(verify(METHODS["Isomap"], X))
figures = {"swiss_roll": side_by_side(*panels, title="A swiss roll by five methods, coloured by the position along it")}

# 2. Europe from road distances, which are not Euclidean: roads are longer than lines.
folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
path = folder / "manifold" / "eurodist.csv"
if path.is_file():
    with path.open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    cities = [row[0] for row in rows[1:]]
    D = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
else:  # the reference data are not part of the package: cities on a grid, with roads along its lines
    cities = [f"{a}{b}" for a in "ABCDE" for b in range(5)]
    grid = np.array([[a, b] for a in range(5) for b in range(5)], dtype=float)
    D = np.abs(grid[:, None] - grid).sum(axis=2) * 500.0
scaling = ClassicalMDS(metric="precomputed").fit(D)
roads = MDS(metric="precomputed").fit(D)
order = MDS(metric="precomputed", metric_mds=False, max_iter=1000).fit(D)
print(f"scaling of distances: {scaling.negative_share_:.1%} of the spectrum is negative; {scaling.certificate_}")
distances = np.linalg.norm(scaling.embedding_[:, None] - scaling.embedding_, axis=2)
stress = ((distances - D) ** 2).sum() / 2.0
print(f"stress of classical scaling {stress:.4g}, by majorisation {roads.stress_:.4g}; ordinal: {order.stress_:.3f}")


def heights_apart(words, x, y, letter=5.6, line=11.0):
    """Return heights near y at which words centred at x do not cover each other, from the top down."""
    found = {}
    for k in np.argsort(y, kind="stable"):
        wide = [j for j in found if abs(x[k] - x[j]) < letter * (len(words[k]) + len(words[j])) / 2]
        height = y[k]
        for j in sorted(wide, key=found.get):
            if abs(height - found[j]) < line:
                height = found[j] + line
        found[k] = height
    return [found[k] for k in range(len(words))]


def city_map(title, place, unit):
    """Draw cities as dots with their names, west at the left and north on top."""
    if path.is_file():
        west, north = cities.index("Lisbon"), cities.index("Stockholm")
        place = place * np.where([place[west, 0] > 0, place[north, 1] < 0], -1.0, 1.0)
    frame = Frame.around(extent(place[:, 0], pad=0.12), extent(place[:, 1]), width=460.0, height=420.0)
    style = {"font_size": 10, "text_anchor": "middle", "fill": "currentColor"}
    x = [float(frame.x(a)) for a in place[:, 0]]
    y = [float(frame.y(b)) for b in place[:, 1]]
    heights = heights_apart(cities, x, [b - 5.0 for b in y])
    dots = "".join(f"M{a:.1f} {b:.1f}h0" for a, b in zip(x, y, strict=True))
    drawn = [tag("path", d=dots, fill="none", stroke="#21918c", stroke_width=4.0, stroke_linecap="round")]
    for city, a, height in zip(cities, x, heights, strict=True):
        drawn.append(tag("text", city, x=a, y=height, **style))
    return frame.draw(title, *drawn, x_label=unit, y_label=unit)


figures["eurodist"] = side_by_side(
    city_map("Roads as distances", roads.embedding_, "km"),
    city_map("Only the order of the roads", order.embedding_, "arbitrary unit"),
    title="Places of cities from the roads between them",
)

# 3. How many components? Four rules for the wine data.
wine = load_wine().data
Z = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
RULES = (0.9, "mle", "parallel", "gavish-donoho")
rules = {str(rule): PCA(rule, random_state=0).fit(Z).n_components_ for rule in RULES}
print("components of the wine data:", ", ".join(f"{rule}: {k}" for rule, k in rules.items()))
full = PCA().fit(Z)
number = np.arange(1, 14)
ends = full.variance_intervals()
figures["scree"] = scree(
    full.explained_variance_,
    intervals=ends,
    choices={"90 % of variance" if rule == "0.9" else rule: k for rule, k in rules.items()},
    title="Variances of the components of the wine data, with 95 % intervals and four choices",
)
measured = [name.split("_of_dil")[0].replace("_", " ") for name in load_wine().feature_names]
directions = full.components_[:2].T * np.sqrt(full.explained_variance_[:2])
figures["biplot"] = biplot(
    full.transform(Z)[:, :2], directions, names=measured, title="Wines and what was measured of them"
)

# 4. A tenth of the values are taken away; what is left says what they were.
gone = np.random.default_rng(0).random(Z.shape) < 0.1
model = ProbabilisticPCA(4).fit(np.where(gone, np.nan, Z))
error = np.sqrt(np.mean((model.impute(np.where(gone, np.nan, Z)) - Z)[gone] ** 2))
print(f"gaps filled with an error of {error:.2f} standard deviations; {model.certificate_}")

# 5. Digits: pictures in two dimensions, and the parts that they are sums of.
digits, label = load_digits(return_X_y=True)
digits, label = digits[:600], label[:600]
shown = {"PCA": PCA(2).fit_transform(digits), "Isomap": Isomap(n_neighbors=10).fit_transform(digits)}
picture = TSNE(random_state=0).fit(digits)
shown["t-SNE"] = picture.embedding_
print(f"t-SNE of the digits: divergence {picture.kl_divergence_:.2f}; {picture.certificate_}")
for name, points in shown.items():
    print(f"digits by {name}: trustworthiness {trustworthiness(digits, points):.3f}")
TEN = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#999999", "#000000", "#e69f00", "#7b3294")


def digit_panel(title, points):
    """Draw every row as its digit."""
    frame = Frame.around(extent(points[:, 0]), extent(points[:, 1]), width=400.0, height=360.0)
    words = [
        tag("text", str(k), x=float(frame.x(a)), y=float(frame.y(b)), font_size=9, text_anchor="middle", fill=TEN[k])
        for k, (a, b) in zip(label, points, strict=True)
    ]
    return frame.draw(title, *words, x_label="first", y_label="second")


figures["digits"] = side_by_side(
    *(digit_panel(name, points) for name, points in shown.items()), title="Handwritten digits in two dimensions"
)
parts = NMF(16, random_state=0, max_iter=1000).fit(digits)
print(
    f"sixteen parts leave {parts.reconstruction_err_ / np.linalg.norm(digits):.1%} of the digits; {parts.certificate_}"
)
figures["digit_parts"] = image_grid(parts.components_.reshape(16, 8, 8), title="Sixteen parts of handwritten digits")
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
