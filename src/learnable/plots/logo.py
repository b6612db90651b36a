"""Sequence logos: letters stacked at each position, as high as the information they carry.

After Schneider and Stephens (1990), *Sequence logos: a new way to display consensus sequences*: a stack is as high as
the position's information Σ p log₂(p/q) against the background q, and each letter has its share p of it, the most
probable on top.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from ..core.errors import DataError
from .axes import MUTED, Frame, Scale
from .markup import Markup, tag

#: Colours of nucleotides, readable on light and dark ground; other letters go round this list.
_COLOURS: Final[Mapping[str, str]] = {"A": "#2e8b3d", "C": "#2f6fd0", "G": "#d08a00", "T": "#c8352e", "U": "#c8352e"}
_ROUND: Final = ("#2e8b3d", "#2f6fd0", "#d08a00", "#c8352e", "#7b4fb5", "#008b8b", "#b0527a", "#6b7075")
_CAP: Final = 0.716  # height of a capital over the font's size, in Arial and its metric twins
_LEAST: Final = 0.4  # letters lower than this are not seen


def sequence_logo(
    probabilities: Any,
    letters: str | Sequence[str] = "ACGT",
    *,
    background: Any = None,
    first: int = 1,
    title: str = "Sequence logo",
    x_label: str = "position",
    y_label: str = "bits",
    colors: Mapping[str, str] | None = None,
) -> Markup:
    """Draw a sequence logo.

    Parameters
    ----------
    probabilities : array of shape (n_positions, n_letters)
        A position weight matrix; rows sum to one.
    letters : str or sequence of str
        The letters, in the order of the columns.
    background : array of shape (n_letters,), optional
        Probabilities of the letters elsewhere; equal ones if left out.
    first : int
        The number of the first position; there is no position 0 if it is negative, as around a start of transcription.
    title, x_label, y_label : str
        Words; the title is read by screen readers and shown on hover.
    colors : mapping, optional
        From letters to colours.

    Returns
    -------
    Markup
        An `<svg>` element, also a str.

    Examples
    --------
    >>> from learnable.plots import sequence_logo
    >>> sequence_logo([[0.9, 0.1, 0.0, 0.0], [0.25, 0.25, 0.25, 0.25]]).count("textLength")
    2
    """
    P = np.asarray(probabilities, dtype=np.float64)
    if P.ndim != 2 or P.shape[1] != len(letters) or not P.shape[0]:
        raise DataError(f"sequence_logo: probabilities must have one column a letter ({len(letters)}), got {P.shape}.")
    if not (np.all(P >= 0.0) and np.allclose(P.sum(axis=1), 1.0, atol=1e-6)):
        raise DataError("sequence_logo: the rows of probabilities must be >= 0 and have the sum 1.")
    q = np.full(len(letters), 1.0 / len(letters)) if background is None else np.asarray(background, dtype=np.float64)
    if q.shape != (len(letters),) or not np.all(q > 0.0):
        raise DataError(f"sequence_logo: background must be {len(letters)} probabilities > 0, got {background!r}.")
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.sum(np.where(P > 0.0, P * np.log2(P / q), 0.0), axis=1)
    most = float(max(np.max(np.log2(1.0 / q)), 1e-9))
    top = min(most, 1.05 * max(float(information.max()), 0.25 * most))
    width = min(max(18.0 * len(P) + 40.0, 240.0), 920.0)
    frame = Frame(width, 200.0, Scale(0.0, float(len(P)), 30.0, width - 8.0), Scale(0.0, top, 158.0, 26.0))
    step = (frame.x.end - frame.x.start) / len(P)
    palette = _palette(letters, colors)
    marks: list[Any] = []
    for i, (row, bits) in enumerate(zip(P, information, strict=True)):
        left = float(frame.x(float(i)))
        height = float(frame.y.start - frame.y(bits))
        base = frame.y.start
        for k in np.argsort(row, kind="stable"):
            size = height * float(row[k])
            if size >= _LEAST:
                marks.append(_letter(letters[k], palette[letters[k]], left, base, step, size))
            base -= size
    return _with_positions(frame, first, len(P), step).draw(title, *marks, x_label=x_label, y_label=y_label,
                                                            desc=_describe(P, letters, information))  # fmt: skip


def _letter(letter: str, colour: str, left: float, base: float, width: float, height: float) -> Markup:
    """Return a letter stretched to a box that stands on `base`."""
    # Drawn 10 units wide at a size at which capitals are 10 units high, then scaled.
    place = f"translate({left + 0.04 * width:.2f} {base:.2f}) scale({0.092 * width:.4f} {height / 10.0:.4f})"
    return tag(
        "text", letter, transform=place, fill=colour, font_size=f"{10.0 / _CAP:.2f}", font_weight="bold",
        font_family="Arial, Liberation Sans, Helvetica, sans-serif", textLength="10", lengthAdjust="spacingAndGlyphs",
    )  # fmt: skip


class _Positions(Frame):
    """A frame whose horizontal axis counts positions, with a label under every few of them."""

    def _x_axis(self, label: str) -> Markup:
        n = round(self.x.high)
        first = self._first  # type: ignore[attr-defined]
        step = (self.x.end - self.x.start) / n
        numbers = [first + i + (1 if first < 0 <= first + i else 0) for i in range(n)]
        every = next(m for m in (1, 2, 5, 10, 20, 50, 100, 200, 500, 10**9) if m * step >= 16.0 or m >= 10**9)
        parts = [tag("path", d=f"M{self.x.start:.2f} {self.y.start:.2f}H{self.x.end:.2f}", stroke=MUTED)]
        for i, number in enumerate(numbers):
            if number % every == 0 or every == 1:
                at = self.x.start + (i + 0.5) * step
                text = str(number).replace("-", "−")
                parts.append(tag("text", text, x=at, y=self.y.start + 15.0, text_anchor="middle", fill=MUTED))
        middle = (self.x.start + self.x.end) / 2
        parts.append(tag("text", label, x=middle, y=self.height - 6.0, text_anchor="middle"))
        return Markup("".join(parts))


def _with_positions(frame: Frame, first: int, n: int, step: float) -> Frame:
    positions = _Positions(frame.width, frame.height, frame.x, frame.y)
    object.__setattr__(positions, "_first", first)
    return positions


def _palette(letters: Sequence[str], colors: Mapping[str, str] | None) -> dict[str, str]:
    nucleic = set(letters) <= set(_COLOURS)
    known = _COLOURS if nucleic else {letter: _ROUND[i % len(_ROUND)] for i, letter in enumerate(letters)}
    return {letter: (colors or {}).get(letter, known[letter]) for letter in letters}


def _describe(P: Any, letters: Sequence[str], information: Any) -> str:
    best = "".join(letters[k] for k in P.argmax(axis=1))
    return f"{len(P)} positions, {information.sum():.1f} bits; the most probable letters are {best}."
