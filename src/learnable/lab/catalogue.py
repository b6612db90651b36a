"""All scenes by name, in the order in which one would show them."""

from __future__ import annotations

from typing import Final

from .scene import Scene
from .scenes.chains import METROPOLIS, NUTS
from .scenes.clusters import EM, KMEANS
from .scenes.decisions import BANDIT, VALUES
from .scenes.descent import DESCENT
from .scenes.margins import SVM
from .scenes.networks import BACKPROP
from .scenes.processes import GP
from .scenes.sequences import HMM
from .scenes.sparse import LASSO
from .scenes.trees import ADABOOST, TREE

#: The scenes, by name.
SCENES: Final[dict[str, Scene]] = {
    scene.name: scene
    for scene in (
        DESCENT, LASSO, SVM, TREE, ADABOOST, KMEANS, EM, HMM, GP, METROPOLIS, NUTS, BACKPROP, BANDIT, VALUES,
    )
}  # fmt: skip
