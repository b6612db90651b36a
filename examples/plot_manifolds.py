"""A swiss roll unrolled by five methods, with their distortions; a map of Europe from road distances; a scree plot.

The figures are SVG text; pass a folder to keep them: `python examples/plot_manifolds.py figures/`.
"""

import csv
import os
import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine, make_swiss_roll

from learnable import PCA, verify
from learnable.manifold import ClassicalMDS, DiffusionMaps, Isomap, LocallyLinearEmbedding, SpectralEmbedding
from learnable.plots import labelled_lines, side_by_side
from learnable.plots.axes import Frame, extent
from learnable.plots.markup import tag

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
COLOURS = ("#440154", "#3b528b", "#21918c", "#5ec962", "#fde725")


def panel(title, points, value):
    """Draw points in five colours by a value."""
    frame = Frame.around(extent(points[:, 0]), extent(points[:, 1]), width=250.0, height=250.0)
    order = np.digitize(value, np.quantile(value, [0.2, 0.4, 0.6, 0.8]))
    drawn = []
    for k, colour in enumerate(COLOURS):
        places = "".join(f"M{frame.x(a):.1f} {frame.y(b):.1f}h0" for a, b in points[order == k])
        drawn.append(tag("path", d=places, fill="none", stroke=colour, stroke_width=3.0, stroke_linecap="round"))
    return frame.draw(title, *drawn, x_label="first", y_label="second")


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
    print(f"{name:20s} position along the roll: rank correlation {found:.3f}; {model.certificate_}")
    panels.append(panel(name, shown, position))
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
place = scaling.embedding_ * [1.0, -1.0]
print(f"scaling of distances: {scaling.negative_share_:.1%} of the spectrum is negative; {scaling.certificate_}")
frame = Frame.around(extent(place[:, 0]), extent(place[:, 1]), width=460.0, height=420.0)
words = [
    tag("text", city, x=float(frame.x(a)), y=float(frame.y(b)), font_size=10, text_anchor="middle", fill="currentColor")
    for city, (a, b) in zip(cities, place, strict=True)
]
figures["eurodist"] = frame.draw("Places from distances", *words, x_label="km", y_label="km")

# 3. How many components? Four rules for the wine data.
wine = load_wine().data
Z = (wine - wine.mean(axis=0)) / wine.std(axis=0, ddof=1)
RULES = (0.9, "mle", "parallel", "gavish-donoho")
rules = {str(rule): PCA(rule, random_state=0).fit(Z).n_components_ for rule in RULES}
print("components of the wine data:", ", ".join(f"{rule}: {k}" for rule, k in rules.items()))
full = PCA().fit(Z)
number = np.arange(1, 14)
ends = full.variance_intervals()
figures["scree"] = labelled_lines(
    {"variance": (number, full.explained_variance_), "low": (number, ends[:, 0]), "high": (number, ends[:, 1])},
    title="Variances of the components of the wine data, with 95 % intervals",
    x_label="component",
    y_label="variance",
)
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
