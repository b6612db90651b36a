"""Numbers as people read them, each with the exact value and the place in the record it comes from.

A number of the report is an element `<data value="0.8123" data-from="/leaderboard/0/mean">0.812</data>`: `value` is
what the text rounds, `data-from` a JSON pointer (RFC 6901) into the record. Numbers made from the record say how:
`data-as="share"` is the value over the one at `data-per`, `data-as="length"` counts the entries of a list, and
`data-as="rest"` those beyond the first `data-shown`.
"""

from __future__ import annotations

import math
from statistics import median
from typing import Any, Final, Literal, TypeGuard

from ..plots.axes import power_of_ten
from ..plots.markup import Markup, tag

Style = Literal["number", "count", "plain", "percent", "level", "seconds", "scientific"]
NOTHING: Final = Markup('<span class="none" aria-label="none">–</span>')
_THIN: Final = "\N{NARROW NO-BREAK SPACE}"
_WORDS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


class Numbers:
    """The numbers of one record.

    Parameters
    ----------
    record : dict
        The record that pointers lead into.

    Examples
    --------
    >>> from learnable.report.numbers import Numbers
    >>> Numbers({"leaderboard": [{"mean": 0.81234}]}).show("leaderboard", 0, "mean", decimals=2)
    '<data value="0.81234" data-from="/leaderboard/0/mean">0.81</data>'
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def at(self, *path: str | int) -> Any:
        """Return what stands at a place of the record; None where there is nothing."""
        value: Any = self.record
        for key in path:
            inside = isinstance(key, int) and isinstance(value, list) and key < len(value)
            if not inside and not (isinstance(value, dict) and key in value):
                return None
            value = value[key]
        return value

    def known(self, *path: str | int) -> bool:
        """Tell whether there is a finite number."""
        return is_number(self.at(*path))

    def show(self, *path: str | int, style: Style = "number", decimals: int | None = None) -> Markup:
        """Return the number at a place of the record, or a dash."""
        value = self.at(*path)
        if not is_number(value):
            return NOTHING
        return tag("data", text_of(value, style, decimals), value=repr(value), data_from=pointer(path))

    def share(self, path: tuple[str | int, ...], whole: tuple[str | int, ...]) -> Markup:
        """Return one number of the record over another, in percent."""
        part = self.at(*path)
        total = self.at(*whole)
        if not is_number(part) or not is_number(total) or not total:
            return NOTHING
        value = part / total
        places = {"data_from": pointer(path), "data_per": pointer(whole), "data_as": "share"}
        return tag("data", text_of(value, "percent"), value=repr(value), **places)

    def length(self, *path: str | int) -> Markup:
        """Return how many entries a list of the record has; a word for a small number."""
        size = len(self.at(*path) or [])
        text = _WORDS[size] if size < len(_WORDS) else text_of(size, "count")
        return tag("data", text, value=repr(size), data_from=pointer(path), data_as="length")

    def rest(self, shown: int, *path: str | int) -> Markup:
        """Return how many entries a list of the record has beyond those shown."""
        size = max(len(self.at(*path) or []) - shown, 0)
        places = {"data_from": pointer(path), "data_as": "rest", "data_shown": shown}
        return tag("data", text_of(size, "count"), value=repr(size), **places)


def is_number(value: Any) -> TypeGuard[float]:
    """Tell whether the value is a finite number (and not a truth value)."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def pointer(path: tuple[str | int, ...]) -> str:
    """Return a JSON pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def word(count: int) -> str:
    """Return a small count as a word."""
    return _WORDS[count] if count < len(_WORDS) else f"{count:,}"


def text_of(value: float, style: Style = "number", decimals: int | None = None) -> str:
    """Return a number for people: 4 significant digits, or as many decimals as asked for.

    Examples
    --------
    >>> from learnable.report.numbers import text_of
    >>> text_of(0.81234), text_of(68321.4), text_of(4.4e-15), text_of(-3.0), text_of(20640, "count")
    ('0.8123', '68,321', '4.4 × 10⁻¹⁵', '−3', '20,640')
    """
    value += 0  # minus zero becomes zero
    if style == "count":
        return _signed(f"{value:,.0f}")
    if style == "plain":
        return str(value).replace("-", "−")
    if style == "seconds":
        return _seconds(value)
    if style == "scientific":
        return _significant(value, 2)
    if style in ("percent", "level"):
        return _percent(value, style)
    if decimals is not None and abs(value) < 1e6 and not 1e-9 < abs(value) < 10.0**-decimals / 2:
        return _signed(f"{0.0 if abs(value) <= 1e-9 else value:,.{decimals}f}")  # what is left by rounding is zero
    return _significant(value, 4 if decimals is None else 3)


def decimals_for(half_widths: list[float]) -> int:
    """Return how many decimals a column needs: those that show two digits of the typical half-width, at most four.

    Examples
    --------
    >>> from learnable.report.numbers import decimals_for
    >>> decimals_for([0.33]), decimals_for([0.02]), decimals_for([40.0])
    (2, 3, 0)
    """
    known = [half for half in half_widths if math.isfinite(half) and half > 0]
    return min(max(math.ceil(-math.log10(median(known))) + 1, 0), 4) if known else 3


def decimals_to_tell(values: list[Any], decimals: int, most: int = 6) -> int:
    """Return the decimals from `decimals` on at which different numbers look different, `most` at most.

    Examples
    --------
    >>> from learnable.report.numbers import decimals_to_tell
    >>> decimals_to_tell([0.8123, 0.8119], 2), decimals_to_tell([0.8, 0.1], 2)
    (4, 2)
    """
    known = sorted({float(value) for value in values if is_number(value)})
    while decimals < most and len({text_of(value, decimals=decimals) for value in known}) < len(known):
        decimals += 1
    return decimals


def _significant(value: float, digits: int) -> str:
    if value == 0:
        return "0"
    if abs(value) >= 1e7 or abs(value) < (1e-3 if digits == 2 else 1e-4):
        mantissa, _, power = f"{value:.{min(digits, 3) - 1}e}".partition("e")
        mantissa = mantissa.rstrip("0").rstrip(".") if "." in mantissa else mantissa
        times = {"1": "", "-1": "-"}.get(mantissa, f"{mantissa} × ")
        return _signed(f"{times}{power_of_ten(int(power))}")
    if abs(value) >= 10.0 ** (digits - 1):
        return _signed(f"{value:,.0f}")
    text = f"{value:.{digits}g}"
    return _signed(f"{float(text):,.10g}")


def _percent(value: float, style: str) -> str:
    share = 100.0 * value
    if style == "level":
        return (_signed(f"{share:.6g}") if share == 0 or abs(share) >= 1e-3 else _significant(share, 3)) + _THIN + "%"
    if share != 0 and abs(share) < 0.05:
        return _significant(share, 2) + _THIN + "%"
    if 99.95 <= share < 100:  # not quite all; "100.0" where three decimals cannot tell, against "100" for all
        text = f"{share:.3f}".rstrip("0")
        return text + ("0" if text.endswith(".") else "") + _THIN + "%"
    return _signed(f"{share:.1f}" if share not in (0.0, 100.0) else f"{share:.0f}") + _THIN + "%"


def _seconds(value: float) -> str:
    if value < 0.9995e-3:
        return f"{value * 1e6:.0f}{_THIN}µs"
    if value < 0.9995:
        return f"{value * 1e3:.3g}{_THIN}ms"
    if value < 99.95:
        return f"{value:.3g}{_THIN}s"
    minutes, seconds = divmod(round(value), 60)
    return f"{minutes:,}{_THIN}min {seconds}{_THIN}s" if minutes else f"{seconds}{_THIN}s"


def _signed(text: str) -> str:
    return text.replace("-", "−")
