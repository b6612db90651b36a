"""A hidden Markov model decodes a series while it comes in."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from ...core import Array
from ...plots.axes import MUTED, Frame
from ...plots.markup import Markup
from ...plots.optimization import COLOURS, legend_marks
from ..drawing import HEIGHT, LEGEND, WIDTH, dots, quietly
from ..scene import Scene, Step
from ..tables import MOST_ROWS, as_floats, columns_of, earthquakes, take_numbers

_LONGEST_LEGEND: Final = 14


def read_hmm(table: Any = None) -> tuple[Array, Any, list[str]]:
    """Return the series as a column, a hidden Markov model of it, and the names of time and of the series."""
    from ...sequences import GaussianHMM, PoissonHMM

    if table is None:
        model = PoissonHMM(3, n_iter=500, tol=1e-4, n_init=4, random_state=0)
        return earthquakes()[:, None], model, ["years since 1900", "major earthquakes"]
    columns = columns_of("hmm", table)
    (name,) = take_numbers("hmm", columns, 1, least=12)
    series = as_floats(columns[name])[:MOST_ROWS]
    if np.all(series == np.round(series)) and series.min() >= 0 and series.max() < 1000:
        return series[:, None], PoissonHMM(2, n_iter=300, n_init=2, random_state=0), ["row", name]
    return series[:, None], GaussianHMM(2, n_iter=300, n_init=2, random_state=0), ["row", name]


def build_hmm(series: Array, settings: Any, names: list[str], *, n_steps: int = 18) -> list[Step]:
    """Return a step for each stretch of rows that comes in."""
    n_steps = min(max(n_steps, 2), 60)
    with quietly():
        model = settings.fit(series)
    levels = np.asarray(model.lambdas_ if hasattr(model, "lambdas_") else model.means_)[:, 0]
    order = np.argsort(levels)
    ends = np.unique(np.linspace(max(3, len(series) // n_steps), len(series), n_steps).round().astype(int))
    made = []
    before = np.zeros(0, dtype=np.int64)
    for end in ends.tolist():
        log_probability, path = model.decode(series[:end])
        filtered = model.filter_proba(series[:end])[:, order]
        changed = int(np.sum(path[: len(before)] != before))
        before = path
        now = levels[path[-1]]
        revised = f"{changed} earlier rows changed their state." if changed else "No earlier row changed its state."
        made.append(
            Step(
                title=f"{end} rows have come in",
                pictures=(_series(series, levels[path], names), _beliefs(filtered, levels[order], len(series), names)),
                text=f"The best path of all rows so far ends in the state of level {now:.1f}. {revised} Second: what "
                "the model believes about each row when that row is the last one it has seen.",
                formula=r"\hat{z} = \argmax_{z} \; p(z_1) \prod_t p(z_t | z_{t−1}) p(x_t | z_t)",
                code=f"model.fit(series)\nlog_p, path = model.decode(series[:{end}])\n"
                f"belief = model.filter_proba(series[:{end}])",
                certificates={"model": model.certificate_},
                numbers={"log p(x, z)": float(log_probability), "changes of state": int(np.sum(path[1:] != path[:-1]))},
                note="The path itself is exact: Viterbi's recursion finds the best of all of them.",
            )
        )
    return made


def _series(series: Array, level: Array, names: list[str]) -> Markup:
    """Draw the series, what has come in with the level of its decoded state, and what is still to come faintly."""
    time = np.arange(len(series))
    low = float(series.min())
    high = float(series.max())
    room = 0.08 * (high - low)
    frame = Frame.around((0.0, float(len(series))), (low - room, high + room), width=WIDTH, height=HEIGHT)
    seen = len(level)
    marks = [
        dots(frame, np.column_stack([time[seen:], series[seen:, 0]]), MUTED, size=3.0, opacity=0.35),
        frame.line(time[:seen], series[:seen, 0], stroke=MUTED, stroke_width=1.0, opacity=0.6),
        dots(frame, np.column_stack([time[:seen], series[:seen, 0]]), COLOURS[0], size=4.0),
        frame.line(np.repeat(np.arange(seen + 1), 2)[1:-1], np.repeat(level, 2), stroke=COLOURS[1], stroke_width=2.4),
    ]
    return frame.draw("The series and the level of its best path", *marks, x_label=names[0], y_label=names[1])


def _beliefs(filtered: Array, levels: Array, n: int, names: list[str]) -> Markup:
    frame = Frame.around((0.0, float(n)), (-0.02, 1.02), width=WIDTH, height=HEIGHT, right=LEGEND)
    time = np.arange(len(filtered)) + 0.5
    colours = [COLOURS[k % len(COLOURS)] for k in range(len(levels))]
    marks = [
        frame.line(time, filtered[:, k], stroke=colour, stroke_width=1.8, stroke_linejoin="round")
        for k, colour in enumerate(colours)
    ]
    marks += legend_marks(frame, [f"level {level:.1f}"[:_LONGEST_LEGEND] for level in levels], colours)
    return frame.draw("Belief in each state", *marks, x_label=names[0], y_label="probability of each state")


HMM = Scene(
    name="hmm",
    title="Decoding hidden states",
    text="As rows come in, the best path of states is found anew, and what looked like chance at first may turn "
    "out to be a change.",
    built_in="Major earthquakes of each year from 1900 to 2006, by a hidden Markov model of three rates.",
    setup="from learnable.lab import SCENES\n\n"
    'series, model, names = SCENES["hmm"].read(None)  # or a table of your own',
    takes="a column of numbers in the order of time; whole numbers are taken for counts.",
    read=read_hmm,
    build=build_hmm,
    cover=-1,
)
