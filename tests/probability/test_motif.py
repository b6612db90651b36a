"""Motif models: posteriors, evidence, scores, scans, ambiguity, and the DNA data with their reference errors."""

import csv
import itertools

import numpy as np
import pytest

from learnable.core.errors import DataError, ParameterError
from learnable.probability import DirichletCategorical, MotifModel

SITES = ["TATAAT", "TATGAT", "TACAAT", "GATACT", "TATAAA"]


def test_posterior_of_every_position():
    model = MotifModel(prior=[0.5, 1.0, 1.0, 0.5]).fit(SITES)
    assert model.counts_[0].tolist() == [0, 0, 1, 4]
    np.testing.assert_allclose(model.posterior_.alpha[0], [0.5, 1.0, 2.0, 4.5])
    np.testing.assert_allclose(model.probabilities_[0], np.array([0.5, 1.0, 2.0, 4.5]) / 8.0)
    expected = sum(
        DirichletCategorical([0.5, 1.0, 1.0, 0.5]).log_marginal_likelihood(["ACGT".index(s[i]) for s in SITES])
        for i in range(6)
    )
    assert model.log_marginal_likelihood_ == pytest.approx(expected, rel=1e-12)
    low, high = model.interval(0.9)
    assert low.shape == (6, 4) and np.all((low < model.probabilities_) & (model.probabilities_ < high))


def test_shared_distribution_counts_all_positions():
    model = MotifModel(shared=True).fit([*SITES, "AC"])
    letters = "".join(SITES) + "AC"
    assert model.counts_[0].tolist() == [letters.count(c) for c in "ACGT"]
    assert model.posterior_.batch_shape == () and model.length_ is None
    # The probability of a sequence is a quotient of evidences: one letter tells about the next.
    more = MotifModel(shared=True).fit([*SITES, "AC", "GGAT"])
    assert model.score_samples(["GGAT"])[0] == pytest.approx(
        more.log_marginal_likelihood_ - model.log_marginal_likelihood_
    )


def test_predictive_probabilities_of_all_sequences_sum_to_one():
    for shared in (False, True):
        model = MotifModel(shared=shared).fit(["ACG", "ACT", "GCT"])
        every = ["".join(letters) for letters in itertools.product("ACGT", repeat=3)]
        assert np.exp(model.score_samples(every)).sum() == pytest.approx(1.0)
        # A code is the sum over its letters.
        some = np.exp(model.score_samples(["ACG", "ACT"])).sum()
        assert np.exp(model.score_samples(["ACK"]))[0] == pytest.approx(some)
        assert np.exp(model.score_samples(["NNN"]))[0] == pytest.approx(1.0)


def test_partial_fits_equal_one_fit():
    sites = [*SITES, "TRTAAT", "NATAAT"]
    w = np.arange(1.0, 8.0)
    whole = MotifModel().fit(sites, w)
    parts = MotifModel().partial_fit(sites[:3], w[:3]).partial_fit(sites[3:], w[3:])
    np.testing.assert_allclose(parts.counts_, whole.counts_, rtol=1e-12)
    twice = MotifModel().fit(["ACGT", "ACGT", "TTTT"])
    np.testing.assert_allclose(MotifModel().fit(["ACGT", "TTTT"], [2, 1]).counts_, twice.counts_)


def test_ambiguity_is_shared_out_where_it_may_be():
    model = MotifModel().fit([*["A"] * 6, *["G"] * 2, "R", "N"])
    # N says nothing. R is A or G in proportion to their expected probabilities; C and T get nothing.
    a, g = 7.0, 3.0
    for _ in range(200):
        a, g = 7.0 + a / (a + g), 3.0 + g / (a + g)
    np.testing.assert_allclose(model.posterior_.alpha[0], [a, 1.0, g, 1.0], rtol=1e-10)
    assert model.counts_.sum() == pytest.approx(9.0)


def test_scanning_is_scoring_every_window():
    model = MotifModel(background=[0.3, 0.2, 0.2, 0.3]).fit(SITES)
    text = "".join(np.random.default_rng(0).choice(list("ACGTN"), 400, p=[0.3, 0.2, 0.2, 0.29, 0.01])) + "TATAAT"
    scores = model.scan(text)
    windows = [text[i : i + 6] for i in range(len(text) - 5)]
    np.testing.assert_allclose(scores, model.log_odds(windows), rtol=1e-10, atol=1e-12)
    assert scores.argmax() == 400
    hits = model.search(text, threshold=scores.max() - 1e-9)
    assert hits[0].start == 400 and hits[0].site == "TATAAT" and hits[0].strand == "+"
    assert model.scan("ACG").shape == (0,)


def test_the_other_strand():
    model = MotifModel(background=[0.4, 0.1, 0.2, 0.3]).fit(SITES)
    text = "GGCCATTATAGGRC"
    pair = dict(zip("ACGTRN", "TGCAYN", strict=True))
    windows = ["".join(pair[c] for c in reversed(text[i : i + 6])) for i in range(len(text) - 5)]
    np.testing.assert_allclose(model.scan(text, reverse=True), model.log_odds(windows), rtol=1e-12)
    best = model.search(text, threshold=2.0, both_strands=True)[0]
    assert (best.start, best.strand, best.site) == (4, "-", "TATAAT")


def test_information_and_evidence_tell_a_motif_from_noise():
    rng = np.random.default_rng(1)
    noise = ["".join(rng.choice(list("ACGT"), 6)) for _ in range(40)]
    motif = [s[:2] + "TATA" for s in noise]
    for sequences, is_motif in ((noise, False), (motif, True)):
        positions, shared = MotifModel().fit(sequences), MotifModel(shared=True).fit(sequences)
        assert (positions.log_marginal_likelihood_ > shared.log_marginal_likelihood_) is is_motif
    information = MotifModel().fit(motif).information_
    assert information[2:].min() > 1.5 and information[:2].max() < 0.3


def test_samples_follow_the_predictive_distribution():
    model = MotifModel().fit(SITES)
    draws = model.sample(4000, random_state=0)
    share = np.mean([s[0] == "T" for s in draws])
    assert abs(share - model.probabilities_[0, 3]) < 5 * np.sqrt(0.25 / 4000)
    assert draws == model.sample(4000, random_state=0)
    shared = MotifModel(shared=True).fit(SITES)
    assert {len(s) for s in shared.sample(5, length=9, random_state=0)} == {9}
    with pytest.raises(ParameterError, match="sample needs a length"):
        shared.sample(2)


def read(path):
    with open(path, encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_promoters_leave_one_out(reference_data):
    """Nine errors of 106 with a flat prior, as computed for the collection of data sets."""
    rows = read(reference_data / "dna" / "promoters.csv")
    errors = 0
    for i, row in enumerate(rows):
        rest = rows[:i] + rows[i + 1 :]
        scores = {}
        for label in "+-":
            mine = [r["sequence"] for r in rest if r["class"] == label]
            scores[label] = MotifModel().fit(mine).score_samples([row["sequence"]])[0] + np.log(len(mine))
        errors += max(scores, key=scores.get) != row["class"]
    assert errors == 9


def test_splice_junctions(reference_data):
    """Error 0.048589 on every fifth row, with eight letters and a flat prior; hardly another with codes."""
    rows = read(reference_data / "dna" / "splice.csv")
    test, train = rows[::5], [row for i, row in enumerate(rows) if i % 5]
    errors = {}
    for name, options in {"letters": {"alphabet": "ACGTDNRS", "ambiguity": {}}, "codes": {}}.items():
        labels = sorted({row["class"] for row in rows})
        scores = []
        for label in labels:
            mine = [row["sequence"] for row in train if row["class"] == label]
            model = MotifModel(**options).fit(mine)
            scores.append(model.score_samples([row["sequence"] for row in test]) + np.log(len(mine)))
        found = np.array(labels)[np.argmax(scores, axis=0)]
        errors[name] = np.mean(found != np.array([row["class"] for row in test]))
    assert errors["letters"] == pytest.approx(0.048589, abs=1e-6)
    assert errors["codes"] == pytest.approx(errors["letters"], abs=0.005)
    # The junctions are AG|G at the acceptor and GT after the donor.
    donor = MotifModel().fit([row["sequence"] for row in train if row["class"] == "EI"])
    assert donor.consensus()[30:32] == "GT" and donor.information_[30:32].min() > 1.8


def test_logo_and_refusals():
    model = MotifModel().fit(SITES)
    assert model.logo().startswith("<svg")
    assert "MotifModel(ACGT, positions, 5 sequences)" in repr(model)
    with pytest.raises(ParameterError, match="map needs every alpha >= 1"):
        MotifModel(prior=0.5).fit(SITES).map()
    np.testing.assert_allclose(model.map()[0], [0.0, 0.0, 0.2, 0.8])
    with pytest.raises(DataError, match="must have one length, 4; sequence 1 has 3 letters"):
        MotifModel().fit(["ACGT", "ACG"])
    with pytest.raises(DataError, match="at least one sequence"):
        MotifModel().fit([])
    with pytest.raises(DataError, match="call fit first"):
        MotifModel().scan("ACGT")
    with pytest.raises(DataError, match="the motif's 6 letters, got 2"):
        model.partial_fit(["AC"])
    with pytest.raises(DataError, match="weights must be one number >= 0"):
        MotifModel().fit(SITES, [1.0])
    with pytest.raises(ParameterError, match="prior must be > 0"):
        MotifModel(prior=0.0)
    with pytest.raises(ParameterError, match="prior must be one number or 4"):
        MotifModel(prior=[1.0, 2.0])
    with pytest.raises(ParameterError, match="background must"):
        MotifModel(background=[0.5, 0.5, 0.5, 0.5])
    with pytest.raises(ParameterError, match="no length to scan"):
        MotifModel(shared=True).fit(SITES).scan("ACGT")
