"""The documentation's page of a model says what the class says, and every model has one."""

import re
from html import unescape

import pytest
from tools.model_pages import docstrings as ds
from tools.model_pages import pages, pictures, reference

from learnable.core.registry import REGISTRY, estimator_names, resolve

FOUND = {"files": True}


@pytest.fixture(scope="module")
def made():
    return {name: pages.page(name, FOUND, []) for name in estimator_names()}


def test_every_model_is_in_a_family_of_the_index():
    assert sorted(name for names in pages.names_by_family().values() for name in names) == sorted(estimator_names())


@pytest.mark.parametrize("title", ["## Example", "## What is proven", "## Cost and limits", "## Methods", "### fit"])
def test_every_page_has_its_parts(made, title):
    assert [name for name, page in made.items() if title not in page.markdown] == []


def test_every_part_is_asked_for_once(made):
    for name, page in made.items():
        asked = [int(number) for number in re.findall(r"<!-- part: (\d+) -->", page.markdown)]
        assert asked == list(range(len(page.parts))), name


def test_every_parameter_is_on_its_page(made):
    for name, page in made.items():
        listed = unescape("".join(page.parts))
        for parameter in getattr(resolve(REGISTRY[name].path), "_parameters", {}):
            assert re.search(rf"<dt><code>[^<]*\b{parameter}\b", listed), f"{name}: {parameter}"


def test_every_page_says_what_it_costs(made):
    for name, page in made.items():
        assert "<ul></ul>" not in page.parts, name


def test_tags_in_parts_are_balanced(made):
    for name, page in made.items():
        for part in page.parts:
            for tag in ("dl", "dd", "dt", "pre", "ul", "li", "div", "p"):
                assert len(re.findall(rf"<{tag}[ >]", part)) == part.count(f"</{tag}>"), f"{name}: {tag}"


def test_text_is_escaped_and_names_are_linked():
    html = ds.prose("Use `Ridge` if x < 0 & *y*.\n\n    a <b> c\n\n- one\n- two", {"Ridge": "Ridge.html"})
    assert '<a href="Ridge.html"><code>Ridge</code></a> if x &lt; 0 &amp; *y*.' in html
    assert '<pre class="formula">a &lt;b&gt; c</pre>' in html
    assert html.count("<li>") == 2


def test_the_first_mention_of_a_model_becomes_a_link():
    html = "<h1><code>Ridge</code></h1><pre><code>Lasso</code></pre><p><code>Ridge</code> <code>Ridge</code></p>"
    link = '<a href="../models/Ridge.html"><code>Ridge</code></a>'
    assert pages.linked(html) == html.replace("<p><code>Ridge</code>", f"<p>{link}")
    assert pages.linked('<a href="x"><code>SVC</code></a>') == '<a href="x"><code>SVC</code></a>'


def test_entries_with_several_names_and_without_a_type_are_kept():
    assert ds.entries("a, b : int\n    Two.\n\n    More.\nc\n    Three.") == [
        ("a, b", "int", "Two.\n\nMore."),
        ("c", "", "Three."),
    ]


def test_sentences_after_the_entries_are_no_entries():
    text = "a : int\n    One.\n\nThe others are those of `Ridge`\nand of every model."
    assert ds.listed(text).endswith(
        "<p>One.</p></dd></dl><p>The others are those of <code>Ridge</code> and of every model.</p>"
    )
    assert ds.listed("EigenPairs") == '<dl class="entries"><dt><code>EigenPairs</code></dt><dd></dd></dl>'


DRAWN = ["Ridge", "Lasso", "GaussianNB", "KMeans", "PCA", "PoissonHMM", "PolynomialFeatures", "ID3Classifier"]


@pytest.mark.parametrize("name", [*DRAWN, "TableEncoder"])
def test_a_picture_is_drawn_by_the_model_itself(name):
    figure, words, model = pictures.draw(name)
    assert figure.startswith("<svg") and figure.endswith("</svg>")
    assert type(model).__name__ == name and words.endswith(".")


@pytest.mark.parametrize("name", ["LSTMClassifier", "RNNRegressor"])
def test_networks_of_sequences_are_drawn_too(name, monkeypatch):
    monkeypatch.setitem(pictures.SETTINGS, name, {"units": 2, "max_iter": 1})
    figure, words, model = pictures.draw(name)
    assert figure.startswith("<svg") and type(model).__name__ == name and words.endswith(".")


def test_every_picture_leads_to_its_page():
    found = {name: {"svg": "<svg></svg>"} if name == "Ridge" else {} for name in estimator_names()}
    page = pages.in_pictures(found)
    assert page.parts == [
        '<div class="pictures" data-search-exclude><a href="Ridge.html"><svg></svg><span>Ridge</span></a></div>'
    ]
    assert "## Linear models" in page.markdown and "## Trees" not in page.markdown


def test_models_without_a_picture_are_known():
    assert set(pictures.ELSEWHERE) <= set(estimator_names())
    assert all(pictures.ELSEWHERE.values())  # the gallery has their picture
    assert pictures.SPARSE | set(pictures.SETTINGS) <= set(estimator_names())


def test_the_reference_lists_models_and_writes_out_the_rest():
    page = reference.expand("# Linear\n\n::: learnable.linear\n    options:\n      inherited_members: true\n")
    assert "[`Ridge`](../models/Ridge.md)" in page.markdown
    assert "### lasso_path { #learnable.linear.lasso_path }" in page.markdown
    assert "options" not in page.markdown
    assert any("lasso_path(X, y" in part for part in page.parts)
