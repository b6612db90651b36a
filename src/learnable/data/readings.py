r"""What columns of text hold: dates in the usual ways of writing them, amounts of money, percentages, decimal commas.

A *reading* is a way to read every value of a column. It is decided by the whole column: one value that cannot be read
so rules it out, and "13/02/2024" decides for a column that the day comes first.

    day-month-year    31/01/2024, 31.01.24, 31-01-2024 17:30, 31 Jan 2024
    month-day-year    01/31/2024, 1/31/24 5:30 PM, Jan 31, 2024
    year-month-day    2024-01-31, 2024/1/31, 2024-01-31T17:30:00Z, 2024-01
    decimal point     $1,234.50   12.3 %   1,234
    decimal comma     1.234,50 €  12,3 %   1,5

Text of digits alone is no amount: numbers stored as text are mostly names, such as postal codes.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from ..core import Array, NDArray, ParameterError
from .encoder_read import Labels, is_missing, read_labels

DATES: Final = ("year-month-day", "day-month-year", "month-day-year")
NUMBERS: Final = ("decimal point", "decimal comma")
READINGS: Final = (*DATES, *NUMBERS)
#: What stands for no value among dates and amounts.
GAPS: Final = frozenset({"", "-", "–", "—", ".", "na", "n/a", "n.a.", "nan", "nat", "null", "none", "?"})

_FIRST: Final = 200  # values that are looked at before all are
_MONTHS: Final = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november",
    "december",
)  # fmt: skip
_MONTH_NAMES: Final = {name[:width]: number + 1 for number, name in enumerate(_MONTHS) for width in (3, 4, 9)}
_CLOCK: Final = re.compile(
    r"(?:[T ]\s*(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?P<fraction>[.,]\d{1,9})?)?"
    r"\s*(?P<half>[AaPp]\.?[Mm]\.?)?\s*(?P<zone>Z|UTC|[+-]\d{2}:?\d{2})?)?"
)
_YEAR_FIRST: Final = re.compile(r"(?P<year>\d{4})(?P<mark>[-/.])(?P<a>\d{1,2})(?:(?P=mark)(?P<b>\d{1,2}))?")
_YEAR_LAST: Final = re.compile(r"(?P<a>\d{1,2})(?P<mark>[-/.])(?P<b>\d{1,2})(?P=mark)(?P<year>\d{4}|\d{2})")
_DAY_NAME: Final = re.compile(r"(?P<a>\d{1,2})(?:st|nd|rd|th)?\.?[ /-](?P<name>[A-Za-z]{3,9})\.?,?[ /-](?P<year>\d{4})")
_NAME_DAY: Final = re.compile(r"(?P<name>[A-Za-z]{3,9})\.? (?P<a>\d{1,2})(?:st|nd|rd|th)?,? (?P<year>\d{4})")
_UNIT: Final = (
    r"R\$|[$€£¥₹]|USD|EUR|GBP|JPY|CHF|CAD|AUD|NZD|CNY|INR|SEK|NOK|DKK|PLN|CZK|BRL|MXN|KRW|ZAR|SGD|HKD|Fr\.?|kr\.?|zł"
)
_AMOUNT: Final = re.compile(
    rf"(?P<open>\()?\s*(?P<sign>[+−-])?\s*(?P<before>{_UNIT})?\s*(?P<inner>[+−-])?(?P<digits>\d[\d.,'\u00a0\u202f ]*)"
    rf"\s*(?P<after>{_UNIT}|%)?\s*(?P<close>\))?"
)
_POINT: Final = re.compile(r"(?:\d{1,3}(?:[,'\u00a0\u202f ]\d{3})+|\d+)(?:\.\d+)?")
_COMMA: Final = re.compile(r"(?:\d{1,3}(?:[.'\u00a0\u202f ]\d{3})+|\d+)(?:,\d+)?")


@dataclass(frozen=True)
class Found:
    """What a column of text was taken for.

    Attributes
    ----------
    reading : str
        One of `READINGS`.
    others : tuple of str
        Readings that fit every value as well.
    example : str
        A value of the column that the readings take for different things, or else the first one.
    unit : str
        The sign of the currency, "%", or nothing.
    """

    reading: str
    others: tuple[str, ...]
    example: str
    unit: str = ""

    @property
    def is_date(self) -> bool:
        """Whether the column holds dates."""
        return self.reading in DATES

    def shown(self, reading: str | None = None) -> str:
        """Return the example as it is read."""
        return show(self.example, reading or self.reading)


def recognise(labels: Labels, *, dayfirst: bool | None = None) -> Found | None:
    """Return what a column of text holds, if it is dates or amounts, and None if it is text.

    Parameters
    ----------
    labels : Labels
        The column.
    dayfirst : bool, optional
        Which of two possible readings of dates is meant; by default the day comes first.

    Examples
    --------
    >>> from learnable.data.encoder_input import Labels
    >>> import numpy as np
    >>> def column(*values): return Labels(np.arange(len(values)), list(values))
    >>> recognise(column("03/04/2024", "13/04/2024")).reading
    'day-month-year'
    >>> recognise(column("03/04/2024", "05/04/2024")).others
    ('month-day-year',)
    >>> recognise(column("$1,234", "$99")).reading, recognise(column("Monday", "Tuesday"))
    ('decimal point', None)
    """
    used = np.unique(labels.codes[labels.codes >= 0])
    values = [text for text in (labels.values[code] for code in used.tolist()) if text.strip().lower() not in GAPS]
    if len(values) < 1:
        return None
    for readings, decide in ((DATES, _decide_date), (NUMBERS, _decide_number)):
        alive = _alive(values[:_FIRST], readings)
        alive = _alive(values, alive) if alive and len(values) > _FIRST else alive
        if alive:
            found = decide(values, alive, dayfirst)
            if found is not None:
                return found
    return None


def read_as(labels: Labels, reading: str) -> Array:
    """Return a column of text as numbers: days since 1970, or amounts; what cannot be read is NaN.

    Examples
    --------
    >>> from learnable.data.encoder_input import Labels
    >>> import numpy as np
    >>> read_as(Labels(np.array([0, 1, -1]), ["1.234,5", "n/a"]), "decimal comma")
    array([1234.5,    nan,    nan])
    """
    if reading not in READINGS:
        raise ParameterError(f"readings: a reading is one of {', '.join(READINGS)}; got {reading!r}.")
    parse = _parser(reading)
    values = [parse(value) for value in labels.values]
    lookup = np.array([math.nan if v is None else v for v in values] + [math.nan])
    return np.asarray(lookup[labels.codes])


def find_readings(names: Sequence[str], columns: Iterable[Labels], *, dayfirst: bool | None = None) -> dict[str, Found]:
    """Return what the columns of a table hold that are dates or amounts written as text.

    Where "1,234" may be a thousand or a little more than one, the columns that leave no doubt decide.
    """
    found = {name: recognise(labels, dayfirst=dayfirst) for name, labels in zip(names, columns, strict=True)}
    known = {name: one for name, one in found.items() if one is not None}
    sure = {one.reading for one in known.values() if not one.is_date and not one.others}
    if sure == {"decimal comma"}:
        for name, one in known.items():
            if not one.is_date and one.others:
                known[name] = Found("decimal comma", ("decimal point",), one.example, one.unit)
    return known


def read_column(column: Any, reading: str) -> Array | NDArray[Any] | None:
    """Return a column of text read as told: dates as datetime64, amounts as numbers; None if it is no text."""
    if isinstance(column, np.ndarray):
        if column.dtype.kind not in "OUT" or not all(isinstance(v, str) or is_missing(v) for v in column.tolist()):
            return None
    elif str(column.dtype) not in ("String", "Categorical") and "Enum" not in str(column.dtype):
        return None
    numbers = read_as(read_labels(column), reading)
    return as_datetimes(numbers) if reading in DATES else numbers


def dates_with_the_year_first(column: Any) -> NDArray[Any] | None:
    """Return a column of text whose every value is such a date, as programs write them, as datetime64; else None."""
    labels = read_labels(column)
    found = recognise(labels)
    if found is None or found.reading != "year-month-day":
        return None
    return as_datetimes(read_as(labels, found.reading))


def as_datetimes(days: Array) -> NDArray[np.datetime64]:
    """Return days since 1970 as datetime64[us]; NaN is NaT."""
    gaps = np.isnan(days)
    micro = np.round(np.where(gaps, 0.0, days) * 86_400e6).astype(np.int64).astype("datetime64[us]")
    micro[gaps] = np.datetime64("NaT")
    return micro


def show(text: str, reading: str) -> str:
    """Return a value as a reading takes it, for people.

    Examples
    --------
    >>> show("03/04/2024", "day-month-year"), show("03/04/2024", "month-day-year"), show("1.234,5 €", "decimal comma")
    ('3 April 2024', '4 March 2024', '1234.5')
    """
    value = _parser(reading)(text)
    if value is None:
        return "nothing"
    if reading in NUMBERS:
        return f"{value:.15g}"
    moment = dt.datetime(1970, 1, 1) + dt.timedelta(seconds=round(value * 86_400))
    clock = f", {moment:%H:%M}" if moment.time() != dt.time() else ""
    return f"{moment.day} {moment:%B %Y}{clock}"


def _alive(values: Sequence[str], readings: Sequence[str]) -> list[str]:
    """Return the readings that fit every value."""
    found = []
    for reading in readings:
        parse = _parser(reading)
        if all(parse(value) is not None for value in values):
            found.append(reading)
    return found


def _decide_date(values: Sequence[str], alive: Sequence[str], dayfirst: bool | None) -> Found | None:
    if "year-month-day" in alive:
        return Found("year-month-day", (), values[0])
    preferred = "month-day-year" if dayfirst is False else "day-month-year"
    reading = preferred if preferred in alive else alive[0]
    others = tuple(other for other in alive if other != reading and any(_differ(v, reading, other) for v in values))
    example = next((v for v in values if others and _differ(v, reading, others[0])), values[0])
    return Found(reading, others, example)


def _decide_number(values: Sequence[str], alive: Sequence[str], dayfirst: bool | None) -> Found | None:
    units = {_unit(value) for value in values}
    marked = units != {""} or any(re.search(r"[,.'()]", value) for value in values)
    plain = all(re.fullmatch(r"[+-]?\d+(\.\d+)?", value.strip()) for value in values)
    if len(units) != 1 or not marked or plain:
        return None  # amounts in several units are no amounts of one; digits alone may be names
    reading = alive[0]
    others = tuple(other for other in alive[1:] if any(_differ(v, reading, other) for v in values))
    example = next((v for v in values if others and _differ(v, reading, others[0])), None)
    example = example or max(values[:_FIRST], key=lambda v: sum(not c.isdigit() for c in v))
    return Found(reading, others, example, units.pop())


def _differ(value: str, a: str, b: str) -> bool:
    return _parser(a)(value) != _parser(b)(value)


def _parser(reading: str) -> Callable[[str], float | None]:
    if reading in NUMBERS:
        return _read_point if reading == "decimal point" else _read_comma
    if reading == "year-month-day":
        return _read_year_first
    return _read_day_first if reading == "day-month-year" else _read_month_first


def _unit(text: str) -> str:
    match = _AMOUNT.fullmatch(text.strip())
    return "" if match is None else (match["before"] or "") + (match["after"] or "")


def _read_point(text: str) -> float | None:
    return _read_amount(text, _POINT, ",", ".")


def _read_comma(text: str) -> float | None:
    return _read_amount(text, _COMMA, ".", ",")


def _read_amount(text: str, form: re.Pattern[str], thousands: str, decimal: str) -> float | None:
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or (match["open"] is None) != (match["close"] is None) or (match["before"] and match["after"]):
        return None
    digits = match["digits"].strip()
    if form.fullmatch(digits) is None:
        return None
    for mark in (thousands, "'", " ", "\N{NO-BREAK SPACE}", "\N{NARROW NO-BREAK SPACE}"):
        digits = digits.replace(mark, "")
    value = float(digits.replace(decimal, "."))
    negative = (match["sign"] in ("-", "−")) != (match["inner"] in ("-", "−")) or match["open"] is not None
    return -value if negative else value


def _read_year_first(text: str) -> float | None:
    return _read_date(text.strip(), _YEAR_FIRST, "a", "b")


def _read_day_first(text: str) -> float | None:
    text = text.strip()
    found = _read_date(text, _YEAR_LAST, "b", "a")
    return _read_named(text, _DAY_NAME) if found is None else found


def _read_month_first(text: str) -> float | None:
    text = text.strip()
    if "." in text.partition(" ")[0].partition(":")[0] and text[:1].isdigit():
        return None  # with points between them, the day comes first everywhere
    found = _read_date(text, _YEAR_LAST, "a", "b")
    return _read_named(text, _NAME_DAY) if found is None else found


def _read_named(text: str, form: re.Pattern[str]) -> float | None:
    match = form.match(text)
    month = None if match is None else _MONTH_NAMES.get(match["name"].lower())
    if match is None or month is None:
        return None
    return _moment(int(match["year"]), month, int(match["a"]), text[match.end() :])


def _read_date(text: str, form: re.Pattern[str], month: str, day: str) -> float | None:
    match = form.match(text)
    if match is None:
        return None
    year = int(match["year"])
    if len(match["year"]) == 2:
        year += 2000 if year < 69 else 1900  # as POSIX
    return _moment(year, int(match[month]), int(match[day] or 1), text[match.end() :])


def _moment(year: int, month: int, day: int, rest: str) -> float | None:
    """Return days since 1970 of a date and what follows it: nothing, or a time of day."""
    clock = _CLOCK.fullmatch(rest.rstrip())
    if clock is None:
        return None
    try:
        days = dt.date(year, month, day).toordinal() - dt.date(1970, 1, 1).toordinal()
    except ValueError:
        return None
    if clock["hour"] is None:
        return float(days)
    hour = int(clock["hour"])
    minute = int(clock["minute"])
    second = int(clock["second"] or 0)
    if clock["half"]:
        if not 1 <= hour <= 12:
            return None
        hour = hour % 12 + (12 if clock["half"][0] in "Pp" else 0)
    if hour > 24 or minute > 59 or second > 60:
        return None
    fraction = float("0." + clock["fraction"][1:]) if clock["fraction"] else 0.0
    return days + (3600 * hour + 60 * minute + second + fraction - _offset(clock["zone"])) / 86_400


def _offset(zone: str | None) -> int:
    """Return how many seconds a zone is ahead of UTC."""
    if zone in (None, "Z", "UTC"):
        return 0
    assert zone is not None
    digits = zone[1:].replace(":", "")
    return (-1 if zone[0] == "-" else 1) * (3600 * int(digits[:2]) + 60 * int(digits[2:]))
