"""The main job, end to end: fit three models, read their certificates, save, load, re-check, catch a forgery.

The two tables come with scikit-learn: a year's progress of diabetes in 442 patients, and 569 breast tumours.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

import learnable as ln

console = Console(width=110, highlight=False)


class Split(NamedTuple):
    """A table in two parts: rows to learn from, and rows to be judged by."""

    rows: Any
    targets: Any
    unseen_rows: Any
    unseen_targets: Any


class Fit(NamedTuple):
    """A fitted model and the table it was fitted to."""

    name: str
    model: Any
    data: Split


def diabetes() -> Split:
    """Return the patients."""
    X, y = load_diabetes(return_X_y=True, scaled=False)
    X, unseen_X, y, unseen_y = train_test_split(X, y, random_state=0)
    return Split(X, y, unseen_X, unseen_y)


def tumours() -> Split:
    """Return the standardised tumours with the labels "malignant" and "benign"."""
    table = load_breast_cancer()
    X, unseen_X, y, unseen_y = train_test_split(table.data, table.target_names[table.target], random_state=0)
    scaler = StandardScaler().fit(X)
    return Split(scaler.transform(X), y, scaler.transform(unseen_X), unseen_y)


def show_certificates(fits: list[Fit]) -> None:
    """Print what every fit proves about itself, and how well it predicts."""
    table = Table("model", "certificate", "score on unseen rows", title="What each fit proves")
    for name, model, data in fits:
        score = model.score(data.unseen_rows, data.unseen_targets)
        table.add_row(name, repr(model.certificate_), f"{score:.3f}")
    console.print(table)


def show_intervals(model: ln.LinearRegression, data: Split) -> None:
    """Print predictions for a few unseen patients, and how many of all of them the interval covers."""
    truth = data.unseen_targets
    lower, upper = model.predict_interval(data.unseen_rows, level=0.9)
    table = Table("patient", "predicted", "90 % interval", "truth", title="Predictions for unseen patients")
    for i, predicted in enumerate(model.predict(data.unseen_rows[:4])):
        table.add_row(f"{i + 1}", f"{predicted:.0f}", f"{lower[i]:.0f} to {upper[i]:.0f}", f"{truth[i]:.0f}")
    console.print(table)
    covered = np.mean((lower <= truth) & (truth <= upper))
    print(f"The 90 % interval covers {covered:.0%} of all {len(truth)} unseen patients.")


def save_load_verify(fits: list[Fit], folder: Path) -> None:
    """Send every model through a file, and re-derive its certificate from the file and the data alone."""
    for name, model, data in fits:
        path = folder / f"{name.replace(' ', '_')}.safetensors"
        ln.save(model, path)
        loaded = ln.load(path)
        same = np.array_equal(loaded.predict(data.unseen_rows), model.predict(data.unseen_rows))
        print(f"{path.name}: {path.stat().st_size} bytes, identical predictions after loading: {same}")
        print(f"  {ln.verify(loaded, data.rows, data.targets)}")


def catch_forgeries(fit: Fit, folder: Path) -> None:
    """Change one coefficient by a thousandth, then one bit of the file: both are found."""
    path = folder / "forged.safetensors"
    ln.save(fit.model, path)
    forged = ln.load(path)
    forged.coef_ = forged.coef_ * np.where(np.arange(forged.coef_.size) == 0, 1.001, 1.0)
    print(f"One coefficient changed by 0.1 %:\n  {ln.verify(forged, fit.data.rows, fit.data.targets)}")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    try:
        ln.load(path)
    except ln.core.ModelFileError as error:
        print(f"One bit of the file changed:\n  {error}")


def main() -> None:
    """Run the demonstration."""
    patients = diabetes()
    problems = [
        ("least squares", ln.LinearRegression(), patients),
        ("ridge", ln.RidgeCV(alphas=np.logspace(-3, 3, 100)), patients),
        ("logistic regression", ln.LogisticRegression(), tumours()),
    ]
    console.rule("Fit")
    fits = [Fit(name, model.fit(data.rows, data.targets), data) for name, model, data in problems]
    show_certificates(fits)
    console.rule("Explain")
    print(fits[0].model.summary(names=load_diabetes().feature_names))
    show_intervals(fits[0].model, patients)
    with tempfile.TemporaryDirectory() as name:
        console.rule("Save, load, verify")
        save_load_verify(fits, Path(name))
        console.rule("Catch a forgery")
        catch_forgeries(fits[1], Path(name))


if __name__ == "__main__":
    main()
