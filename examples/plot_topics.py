"""Bars found by a topic model; topics of news stories; populations of cats and people from their genotypes.

The figures are SVG text; pass a folder to keep them: `python examples/plot_topics.py figures/`.
"""

import csv
import gzip
import os
import sys
import warnings
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from learnable import verify
from learnable.plots import image_grid, share_bars
from learnable.topics import (
    Genotypes,
    LatentDirichletAllocation,
    PopulationStructure,
    align_columns,
    coherence,
    read_genotypes,
    simulate_genotypes,
)

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
DATA = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
warnings.simplefilter("ignore")  # short chains, which would say so
figures = {}

# 1. Griffiths and Steyvers' bars: images of 5 × 5 pixels, each a mixture of horizontal and vertical bars.
rng = np.random.default_rng(0)
truth = np.zeros((10, 5, 5))
for k in range(5):
    truth[k, k] = 0.2
    truth[5 + k, :, k] = 0.2
images = np.array([rng.multinomial(100, p @ truth.reshape(10, 25)) for p in rng.dirichlet(np.ones(10), size=200)])
model = LatentDirichletAllocation(
    10, doc_topic_prior=1.0, topic_word_prior=1.0, n_draws=50, n_warmup=250, random_state=1
).fit(images)
phi = model.components_ / model.components_.sum(axis=1, keepdims=True)
distance = np.abs(phi[:, None] - truth.reshape(1, 10, 25)).sum(axis=2)
print(f"bars: {int((distance.min(axis=0) < 0.6).sum())} of 10 found")
order = align_columns(truth.reshape(10, 25).T, phi.T)
figures["bars"] = image_grid(phi[order].reshape(10, 5, 5) / phi.max(), columns=10, title="Ten topics, one for each bar")

# 2. News stories, if the reference data are there: 395 of them, 20 topics.
path = DATA / "text_reuters"
if path.is_dir():
    with gzip.open(path / "counts.csv.gz", "rt", encoding="utf-8") as file:
        table = np.array([[int(cell) for cell in row] for row in list(csv.reader(file))[1:]])
    with (path / "vocab.csv").open(encoding="utf-8") as file:
        words = [row[1] for row in list(csv.reader(file))[1:]]
    X = sp.csr_array((table[:, 2], (table[:, 0], table[:, 1])), shape=(395, len(words)))
else:  # texts of two kinds
    words = ["cat", "purr", "sleep", "bond", "stock", "fall"]
    X = sp.csr_array(np.tile([[3, 2, 2, 0, 0, 0], [0, 0, 0, 2, 3, 2]], (40, 1)))
news = LatentDirichletAllocation(
    min(20, X.shape[1] // 3), doc_topic_prior=0.1, topic_word_prior=0.01, n_draws=10, n_warmup=40, random_state=0
).fit(X)
level = coherence(news.top_words(10), X)
for k in np.argsort(-level)[:3]:
    print(f"topic of coherence {level[k]:.2f}:", ", ".join(news.top_words(6, relevance=0.6, names=words)[k]))
low, high = news.transform_interval(X[:1])[1:]
print(f"shares of the first story are known to within ± {(high - low).max() / 2:.2f}")

# 3. Cats of 17 colonies at nine microsatellites: posterior proportions.
path = DATA / "genetics" / "nancycats.str"
if path.is_file():
    cats = read_genotypes(path)
else:
    P = np.concatenate([rng.dirichlet(np.full(6, 0.5), size=3).T for _ in range(9)])
    cats = simulate_genotypes(np.repeat(np.eye(3), 30, axis=0) * 0.8 + 0.2 / 3, P, np.arange(0, 55, 6), 2, rng)
strips = []
for K in (2, 3):
    cat = PopulationStructure(K, n_chains=2, n_draws=60, n_warmup=60, n_kept=40, random_state=0).fit(cats)
    strips.append(cat.Q_[:, align_columns(strips[-1], cat.Q_)] if strips else cat.Q_)
print(f"cats, K = 3: α = {cat.alpha_:.2f}")
print(f"  of so short chains nothing is proven: R-hat and ESS give {cat.certificate_.value:.0f}, where 1 is asked")
colony = [int(group) for group in cats.groups] if cats.groups else [0] * cats.n_individuals
sorted_cats = np.lexsort((-strips[-1][:, 0], colony))
figures["nancycats"] = share_bars(
    [strip[sorted_cats] for strip in strips],
    names=["K = 2", "K = 3"],
    groups=[str(colony[i]) for i in sorted_cats],
    title="Proportions of cats by colony",
)

# 4. People of HapMap 3 by maximum likelihood.
path = DATA / "genetics" / "hapmap3"
if path.is_dir():
    whole = read_genotypes(path / "hapmap3.bed", groups=path / "hapmap3.pops")
    people = Genotypes.from_dosage(whole.dosage[:, ::8], groups=whole.groups)  # every eighth locus tells as much
else:
    mixing = np.repeat([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0.3, 0.3, 0.4]], 12, axis=0)
    P = np.concatenate([rng.dirichlet([0.5, 0.5], size=3).T for _ in range(400)])
    people = simulate_genotypes(mixing, P, np.arange(0, 801, 2), 2, rng)
fitted = PopulationStructure(3, method="ml", n_init=1, random_state=0).fit(people)
print(f"people, K = 3: log-likelihood {fitted.log_likelihood_:.2f}; {fitted.certificate_}")
print(verify(fitted, people))
groups = list(people.groups) if people.groups else ["all"] * people.n_individuals
sorted_people = np.lexsort((-fitted.Q_.max(axis=1), fitted.Q_.argmax(axis=1), groups))
figures["hapmap"] = share_bars(
    [fitted.Q_[sorted_people]],
    names=["K = 3"],
    groups=[groups[i] for i in sorted_people],
    title="Proportions of people by sample",
)
if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
