import copy
import re
from html.parser import HTMLParser
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.report import records

from learnable.core.errors import DataError
from learnable.report import render
from learnable.report.render import MOST_BYTES
from learnable.theory.concentration.base import ALARM

ALL = [records.houses, records.churn, records.letters, records.nothing_worked, records.nulls]
VOID = {"meta", "wbr", "br", "img", "hr", "input", "link"}


class Structure(HTMLParser):
    """Headings, identifiers, links and whether tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.headings, self.ids, self.links, self.stack = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if re.fullmatch(r"h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if "id" in attributes:
            self.ids.append(attributes["id"])
        if "href" in attributes:
            self.links.append(attributes["href"])
        if tag not in VOID:
            self.stack.append(tag)

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, tag


@pytest.fixture(scope="module", params=ALL, ids=lambda make: make.__name__)
def page(request):
    return render(request.param())


def test_every_tag_is_closed(page):
    assert Structure(page).stack == []


def test_headings_go_down_one_step_at_a_time(page):
    levels = Structure(page).headings
    assert levels[0] == 1 and levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_links_lead_somewhere_and_places_have_one_name(page):
    structure = Structure(page)
    assert len(set(structure.ids)) == len(structure.ids)
    assert {link.removeprefix("#") for link in structure.links} <= set(structure.ids)
    assert structure.links[0] == "#result"


def test_the_page_asks_for_nothing(page):
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)[1]
    assert policy.startswith("default-src 'none'")
    assert "script" not in policy
    without_space = page.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"(https?:)?//[a-z]|url\(|@import|<script|<link", without_space)


def test_every_figure_has_a_title(page):
    assert page.count("<svg") == len(re.findall(r"<svg[^>]*role=\"img\"[^>]*><title>[^<]", page))


def test_small_enough():
    for record in (records.wide(2000), records.letters(100)):
        assert len(render(record).encode()) < MOST_BYTES


def test_a_record_of_endless_text_still_fits():
    record = records.with_text(records.wide(1000), "word " * 1000)
    for k, column in enumerate(record["data"]["profile"]):
        column["name"] = f"{k} " + "name " * 500
    assert len(render(record).encode()) < MOST_BYTES


def test_the_same_record_gives_the_same_page():
    assert render(records.houses()) == render(records.houses())


def test_a_record_is_not_changed():
    record = records.houses()
    before = copy.deepcopy(record)
    render(record)
    assert record == before


@pytest.mark.parametrize(
    "record, message",
    [
        ([], "got 'list'"),
        ({"format": "other"}, "got 'other'"),
        ({"format": "learnable-comparison", "version": 2}, "version 2"),
        ({"format": "learnable-comparison", "version": 1, "data": {}}, "no 'protocol'"),
    ],
)
def test_what_is_no_record_is_refused(record, message):
    with pytest.raises(DataError, match=message):
        render(record)


def leaves(value, path=()):
    if isinstance(value, dict) and value:
        for key, item in value.items():
            yield from leaves(item, (*path, key))
    elif isinstance(value, list) and value and isinstance(value[0], (dict, list)):
        for k, item in enumerate(value[:4]):
            yield from leaves(item, (*path, k))
    yield path


KEPT = {(), ("format",), ("version",), ("data",), ("protocol",), ("data", "profile", 0), ("leaderboard", 0)}
RECORDS = [records.houses(), records.churn()]
PLACES = [[path for path in leaves(record) if path not in KEPT and not isinstance(path[-1], int)] for record in RECORDS]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_null_anywhere_does_not_cost_the_report(data):
    which = data.draw(st.integers(0, len(RECORDS) - 1))
    record = copy.deepcopy(RECORDS[which])
    for path in data.draw(st.lists(st.sampled_from(PLACES[which]), min_size=1, max_size=6)):
        place = record
        for key in path[:-1]:
            place = place[key] if place is not None else None
        if isinstance(place, dict):
            place[path[-1]] = None
    Structure(render(record))


def test_colours_have_enough_contrast():
    page = render(records.houses())
    style = page[page.index("<style>") : page.index("</style>")]
    light, dark = re.findall(r":root \{(.*?)\}", style, re.DOTALL)
    for theme in (light, dark):
        colours = dict(re.findall(r"--ln-(\w+): (#[0-9a-f]{6});", theme))
        heat = float(re.search(r"--ln-heat: (\d+)%", theme)[1]) / 100
        hottest = _mix(colours["accent"], colours["soft"], heat)
        for ink, paper in (
            *((colours[name], colours[ground]) for name in ("ink", "muted", "accent") for ground in ("page", "soft")),
            (colours["page"], colours["accent"]),
            (colours["ink"], hottest),
        ):
            assert _contrast(ink, paper) >= 4.5, (ink, paper)


def _channels(colour):
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def _mix(a, b, share):
    mixed = [share * x + (1 - share) * y for x, y in zip(_channels(a), _channels(b), strict=True)]
    return "#" + "".join(f"{round(255 * channel):02x}" for channel in mixed)


def _contrast(a, b):
    """The ratio of WCAG 2.2, 1.4.3."""

    def luminance(colour):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in _channels(colour)]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    bright, dim = sorted((luminance(a), luminance(b)), reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def test_an_interrupted_comparison_says_so():
    assert "was interrupted" in render(records.houses() | {"status": "interrupted"})
    assert "was interrupted" not in render(records.houses() | {"status": "complete"})


def test_many_columns_are_folded_not_lost():
    html = render(records.wide(1000))
    assert html.count('class="kind"') == 60
    for k in (0, 500, 998):
        assert re.search(rf"gene_(<wbr>)?{k:04d}", html)


def test_an_assumption_that_a_test_does_not_refute_is_told_so_with_the_level():
    record = records.houses()
    checks = [
        {"assumption": "errors have one variance", "holds": None, "detail": "χ² = 23.17, p = 0.04"},
        {"assumption": "y is linear in the columns", "holds": False, "detail": "χ² = 99.9, p = 1e-10"},
    ]
    theorem = {"model": "Ridge", "guarantees": "g", "reference": "r", "assumes": ["y = Xβ + ε"], "checks": checks}
    record["winner"]["holdout"]["proven"] = {"sentence": "nothing bounds it", "checks": [], "theorem": theorem}
    html = render(record)
    assert "Errors have one variance: the data do not refute it (χ² = 23.17, p = 0.04)" in html
    assert "Y is linear in the columns: the data break it" in html
    assert "refutes an assumption only below p = 0.001" in html and ALARM == 0.001
