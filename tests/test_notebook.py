"""The notebook tour prints what its page says, and the notebook to download is the same."""

import json

import pytest
from tools.notebook import CELL, NOTEBOOK, PAGE, figures, run

import learnable  # noqa: F401  (the cells import it; a failure here is clearer)


@pytest.fixture(scope="module")
def page():
    return PAGE.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def outputs(page):
    return run(page)


def test_every_cell_prints_what_the_page_says(page, outputs):
    said = [match["text"] or "" for match in CELL.finditer(page)]
    assert [output.text for output in outputs] == said, "run `python -m tools.notebook`"


def test_the_notebook_is_the_page(page, outputs):
    cells = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert ["".join(cell["source"]) for cell in cells] == [match["code"].rstrip() for match in CELL.finditer(page)]
    printed = ["".join("".join(out.get("text", [])) for out in cell["outputs"]) for cell in cells]
    assert printed == [output.text for output in outputs]
    with_figure = {number for number, output in enumerate(outputs) if output.figure}
    assert set(figures(NOTEBOOK.read_text(encoding="utf-8"))) == with_figure
