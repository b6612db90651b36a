"""`learnable topics` and `learnable structure`: files in, one page and files out, errors in a line."""

import numpy as np
import pandas as pd
import pytest

import learnable as ln
from learnable.cli.app import run
from learnable.topics import read_genotypes

TEXTS = ["cats purr and cats sleep", "a cat may purr loudly", "stocks and bonds fell", "bonds rose as stocks fell"] * 8


@pytest.fixture
def texts(tmp_path):
    path = tmp_path / "texts.csv"
    pd.DataFrame({"id": range(len(TEXTS)), "body": TEXTS}).to_csv(path, index=False)
    return path


@pytest.fixture
def genotypes(tmp_path):
    rng = np.random.default_rng(0)
    dosage = np.vstack([rng.binomial(2, 0.9, (10, 25)), rng.binomial(2, 0.1, (10, 25))])
    frame = pd.DataFrame(dosage, columns=[f"snp{j}" for j in range(25)])
    frame["where"] = ["north"] * 10 + ["south"] * 10
    path = tmp_path / "genotypes.csv"
    frame.to_csv(path, index=False)
    return path


def test_topics_of_a_table(texts, tmp_path, capsys):
    page, model, shares = (str(tmp_path / name) for name in ("page.html", "m.safetensors", "shares.csv"))
    asked = ["topics", str(texts), "--text", "body", "-k", "1,2", "--sweeps", "40", "--min-texts", "1"]
    assert run([*asked, "--report", page, "--save", model, "-o", shares]) == 0
    said = capsys.readouterr().out
    assert "held-out log-likelihood per token" in said
    assert "certificate: chain" in said
    written = pd.read_csv(shares)
    assert len(written) == len(TEXTS)
    np.testing.assert_allclose(written.sum(axis=1), 1.0, atol=1e-5)
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "stocks" in text and "<svg" in text and "<script" not in text
    assert ln.load(model).transform(["purr purr"]).shape[0] == 1


def test_populations_of_a_table(genotypes, tmp_path, capsys):
    page, model, shares = (str(tmp_path / name) for name in ("page.html", "m.safetensors", "shares.csv"))
    asked = ["structure", str(genotypes), "-k", "1..2", "--groups", "where", "--folds", "2"]
    assert run([*asked, "--report", page, "--save", model, "-o", shares]) == 0
    said = capsys.readouterr().out
    assert "K = 2: masked log-likelihood" in said
    assert "2 populations" in said
    assert "group north: 10 individuals" in said
    written = pd.read_csv(shares)
    assert set(written["group"]) == {"north", "south"}
    assert abs(written["population_1"][:10].mean() - written["population_1"][10:].mean()) > 0.8
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "F_ST" in text and "north" in text and "<script" not in text
    table = read_genotypes(genotypes, groups="where")
    assert ln.verify(ln.load(model), table)


def test_a_posterior_has_intervals(genotypes, tmp_path):
    shares = tmp_path / "shares.csv"
    asked = ["structure", str(genotypes), "-k", "2", "--groups", "where", "--method", "gibbs", "--no-admixture"]
    assert run([*asked, "-o", str(shares)]) == 0
    assert {"low_1", "high_2"} <= set(pd.read_csv(shares).columns)


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["topics", "{texts}", "--text", "none"], "no column 'none'", 2),
        (["topics", "{texts}", "--text", "body", "-k", "x"], "-k must be", 2),
        (["topics", "{texts}", "--text", "body", "--sweeps", "3"], "at least 20", 2),
        (["topics", "{texts}", "--text", "id", "--sweeps", "20"], "no word is left", 1),
        (["structure", "{genotypes}", "--method", "em"], "ml or gibbs", 2),
        (["structure", "nowhere.bed"], "no file", 1),
        (["structure", "{genotypes}", "-k", "2", "--groups", "nothing.txt"], "nothing.txt", 1),
    ],
)
def test_what_is_wrong_is_said_in_a_line(arguments, words, code, texts, genotypes, capsys):
    asked = [argument.format(texts=texts, genotypes=genotypes) for argument in arguments]
    assert run(asked) == code
    assert words in capsys.readouterr().err
