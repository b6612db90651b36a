"""The registry's entries of topic models and population structure."""

from __future__ import annotations

from typing import Final

from .entries import Entry

TOPICS: Final[dict[str, Entry]] = {
    "PopulationStructure": Entry(
        "learnable.topics.structure:PopulationStructure", "learnable.topics.verify:population_structure"
    ),
}

#: What every fit of them sets; see `fitted_members`.
TOPIC_MEMBERS: Final[dict[str, str]] = {
    "PopulationStructure": (
        "P_, Q_, allele_names_, allele_starts_, alpha_, certificate_, labels_, log_likelihood_, n_features_in_, "
        "n_iter_"
    ),
}
