"""Every number in the report equals the one in the record."""

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression
from tests.report import records

from learnable.report import advise, render, report
from learnable.report.numbers import Numbers, decimals_for, pointer, text_of, word

SUPERSCRIPTS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
WORDS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def read_back(text):
    """Return what a reader takes a number for, and half a unit of its last digit. Written apart from the formatter."""
    text = text.replace("−", "-").replace("\N{NARROW NO-BREAK SPACE}", " ").replace(",", "")
    if text in WORDS:
        return WORDS.index(text), 0.0
    if match := re.fullmatch(r"(\d+) min (\d+) s", text):
        return 60 * int(match[1]) + int(match[2]), 0.5
    scale = {" %": 0.01, " ms": 1e-3, " µs": 1e-6, " s": 1.0}
    factor = next((scale.pop(unit) for unit in list(scale) if text.endswith(unit)), 1.0)
    text = re.sub(r" (%|ms|µs|s)$", "", text)
    match = re.fullmatch(r"(-?)(?:(\d+(?:\.\d+)?)(?: × )?)?(?:10([⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+))?", text)
    assert match, text
    mantissa = match[2] or "1"
    power = int(match[3].translate(SUPERSCRIPTS)) if match[3] else 0
    digits = len(mantissa.partition(".")[2])
    sign = -1 if match[1] else 1
    return sign * float(mantissa) * 10.0**power * factor, 0.5 * 10.0 ** (power - digits) * factor


class Page(HTMLParser):
    """The `data` elements of a page with their text, and the text outside of them, figures and times."""

    def __init__(self, html):
        super().__init__()
        self.numbers, self.text, self.skipped, self.open = [], [], 0, None
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        if tag in ("svg", "style", "time"):
            self.skipped += 1
        if tag == "data":
            self.open = dict(attributes) | {"text": ""}

    def handle_endtag(self, tag):
        if tag in ("svg", "style", "time"):
            self.skipped -= 1
        if tag == "data":
            self.numbers.append(self.open)
            self.open = None

    def handle_data(self, text):
        if self.open is not None:
            self.open["text"] += text
        elif not self.skipped:
            self.text.append(text)


def follow(record, path):
    """Return what a JSON pointer leads to (RFC 6901)."""
    value = record
    for key in path.split("/")[1:]:
        key = key.replace("~1", "/").replace("~0", "~")
        value = value[int(key)] if isinstance(value, list) else value[key]
    return value


def strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from value
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def one_model():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = X @ [1.0, 0.0, -3e6] + rng.normal(size=300)
    return report(LinearRegression().fit(X, y), X, y).record


PAGES = {
    "houses": records.houses,
    "churn": records.churn,
    "letters": records.letters,
    "nulls": records.nulls,
    "wide": lambda: records.wide(300),
    "nothing_worked": records.nothing_worked,
    "one_model": one_model,
}


@pytest.fixture(scope="module", params=PAGES)
def shown(request):
    record = records.as_json(PAGES[request.param]())
    return record, Page(render(record))


def test_every_number_is_the_one_in_the_record(shown):
    record, page = shown
    assert len(page.numbers) > 20
    for number in page.numbers:
        found = follow(record, number["data-from"])
        if number.get("data-as") == "share":
            found = found / follow(record, number["data-per"])
        elif number.get("data-as") == "length":
            found = len(found)
        elif number.get("data-as") == "rest":
            found = len(found) - int(number["data-shown"])
        assert number["value"] == repr(found), number


def test_what_is_read_is_the_value_rounded(shown):
    for number in shown[1].numbers:
        value, half_unit = read_back(number["text"])
        exact = float(number["value"])
        assert abs(value - exact) <= half_unit * (1 + 1e-9) + 1e-12 * abs(exact), number


def test_no_number_stands_outside(shown):
    record, page = shown
    text = "".join(page.text)
    advice = [] if record.get("advice") else advise(record)  # made from the record; its numbers are tested on their own
    for known in sorted({*strings(record), *advice}, key=len, reverse=True):
        text = text.replace(known, "")
    text = text.replace("F1", "")  # the name of a measure
    outside = [line.strip() for line in text.splitlines() if re.search(r"[0-9]", line)]
    assert outside == []


def test_figures_of_the_leaderboard_stand_where_the_scores_are():
    record = records.houses()
    html = render(record)
    board = html[html.index('id="models"') : html.index('id="details"')]
    dots = [float(x) for x in re.findall(r'<circle cx="([\d.]+)%"', board)]
    ends = [tuple(map(float, pair)) for pair in re.findall(r'<line x1="([\d.]+)%" x2="([\d.]+)%" y1="50%"', board)]
    rows = record["leaderboard"][:4]
    scale = np.polyfit([row["mean"] for row in rows], dots, 1)
    for row, dot, (low, high) in zip(rows, dots, ends, strict=False):
        places = np.polyval(scale, [row["low"], row["mean"], row["high"]])
        np.testing.assert_allclose([low, dot, high], places, atol=0.02)


@given(st.floats(min_value=-1e300, max_value=1e300, allow_subnormal=False))
def test_a_number_reads_back(value):
    read, half_unit = read_back(text_of(value))
    assert abs(read - value) <= half_unit * (1 + 1e-9) + 1e-12 * abs(value)
    assert abs(read - value) <= 6e-3 * abs(value)


@given(st.floats(min_value=-1e9, max_value=1e9), st.integers(0, 4))
def test_a_number_with_decimals_reads_back(value, decimals):
    read, half_unit = read_back(text_of(value, decimals=decimals))
    assert abs(read - value) <= half_unit * (1 + 1e-9) + 1e-12 * abs(value)


@given(st.floats(min_value=0, max_value=1), st.floats(min_value=1e-7, max_value=1e5))
def test_shares_and_times_read_back(share, seconds):
    for value, style in ((share, "percent"), (share, "level"), (seconds, "seconds")):
        read, half_unit = read_back(text_of(value, style))
        assert abs(read - value) <= half_unit * (1 + 1e-6) + 1e-9 * value


def test_the_smallest_number_is_shown():
    assert text_of(5e-324) == "4.94 × 10⁻³²⁴"


def test_a_share_is_all_only_if_it_is():
    all_of_it, nearly, almost = (text_of(share, "percent")[:-2] for share in (1.0, 1 - 1e-12, 0.9999))
    assert (all_of_it, nearly, almost) == ("100", "100.0", "99.99")
    assert text_of(1e-9, "percent")[0] != "0"


def test_minus_zero_is_zero():
    assert text_of(-0.0) == "0"
    assert text_of(-0.0, decimals=2) == text_of(-1e-17, decimals=2) == "0.00"


@pytest.mark.parametrize("value", [None, math.nan, math.inf, True, "7", [1]])
def test_what_is_no_number_is_a_dash(value):
    assert "–" in Numbers({"a": value}).show("a")


def test_a_missing_place_is_none():
    numbers = Numbers({"a": [1]})
    assert numbers.at("b") is None
    assert numbers.at("a", 1) is None
    assert numbers.at("a", "x") is None
    assert "–" in numbers.share(("a", 0), ("b",))


def test_pointers_escape_what_rfc_6901_says():
    assert pointer(("a/b", "c~d", 0)) == "/a~1b/c~0d/0"


def test_small_counts_are_words():
    assert [word(k) for k in (0, 3, 1200)] == ["no", "three", "1,200"]


def test_decimals_follow_the_width_of_intervals():
    assert [decimals_for([half]) for half in (0.0117, 0.0009, 12.0)] == [3, 4, 0]
    assert decimals_for([]) == 3
