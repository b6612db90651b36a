"""Motifs: what the letters around the start of a gene, and around a splice junction, have in common.

Run with the name of a folder to get the figures as SVG files: python examples/plot_motif.py figures
"""

import csv
import os
import sys
from pathlib import Path

import numpy as np

from learnable.probability import MotifModel

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
folder = Path(os.environ.get("LEARNABLE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")) / "dna"


def read(name, label):
    """Return the sequences of a class; where the data are not at hand, some that are like them."""
    path = folder / f"{name}.csv"
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            return [row["sequence"] for row in csv.DictReader(file) if row["class"] == label]
    rng = np.random.default_rng(0)
    length, start, motif = (57, 37, "TATAAT") if name == "promoters" else (60, 28, "AGGTAAGT")
    background = rng.choice(list("ACGT"), (100, length))
    if label in ("+", "EI"):
        background[:, start : start + len(motif)] = list(motif)
        noisy = rng.random((100, length)) < 0.25
        background[noisy] = rng.choice(list("ACGT"), noisy.sum())
    return ["".join(row) for row in background]


figures = {}

# Promoters of E. coli: 57 letters, from 50 before to 7 after the start of transcription.
promoters, others = read("promoters", "+"), read("promoters", "-")
motif = MotifModel().fit(promoters)
shared = MotifModel(shared=True).fit(promoters)
print(f"{motif}: {motif.information_.sum():.1f} bits in {motif.length_} positions")
factor = motif.log_marginal_likelihood_ - shared.log_marginal_likelihood_
print(f"evidence of position weights over one shared distribution: {factor:.1f} nats")
low, high = motif.interval(0.9)
top = int(motif.information_.argmax())
letter = int(motif.probabilities_[top].argmax())
print(f"most certain position {top - 50}: {'ACGT'[letter]} with probability {motif.probabilities_[top, letter]:.2f} "
      f"(90 % between {low[top, letter]:.2f} and {high[top, letter]:.2f})")  # fmt: skip
figures["motif_promoters"] = motif.logo(title="Promoters of E. coli", first=-50)

# The donor site of human introns: the junction is between positions -1 and 1.
donors = MotifModel().fit([sequence[22:42] for sequence in read("splice", "EI")])
print(f"donor sites: consensus {donors.consensus()}, {donors.information_.sum():.1f} bits")
figures["motif_splice"] = donors.logo(title="Donor sites of introns", first=-8)

# Scanning: a sequence is a promoter if some window looks more like the -10 box than like anything.
box = MotifModel().fit([sequence[36:44] for sequence in promoters])
scores = [max(box.scan(sequence)) for sequence in promoters], [max(box.scan(sequence)) for sequence in others]
area = np.mean([a > b for a in scores[0] for b in scores[1]])
print(f"-10 box {box.consensus()}: the best window of a promoter beats that of another sequence in {area:.0%} of pairs")
long = "".join(others) + promoters[0]
best = box.search(long, threshold=5.0, both_strands=True)[:3]
print("best windows of a long sequence:", ", ".join(f"{hit.site} at {hit.start}{hit.strand}" for hit in best))

if FOLDER is not None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")
