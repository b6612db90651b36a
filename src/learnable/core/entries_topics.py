"""The registry's entries of topic models and population structure."""

from __future__ import annotations

from typing import Final

from .entries import Entry

TOPICS: Final[dict[str, Entry]] = {
    "LatentDirichletAllocation": Entry(
        "learnable.topics.lda:LatentDirichletAllocation", "learnable.topics.verify:latent_dirichlet_allocation"
    ),
    "PopulationStructure": Entry(
        "learnable.topics.structure:PopulationStructure", "learnable.topics.verify:population_structure"
    ),
}

#: What every fit of them sets; see `fitted_members`.
TOPIC_MEMBERS: Final[dict[str, str]] = {
    "LatentDirichletAllocation": (
        "bound_, certificate_, components_, doc_topic_, doc_topic_prior_, exp_dirichlet_component_, n_batch_iter_, "
        "n_features_in_, n_iter_, topic_word_prior_"
    ),
    "PopulationStructure": (
        "P_, Q_, allele_names_, allele_starts_, alpha_, certificate_, labels_, log_likelihood_, n_features_in_, n_iter_"
    ),
}
