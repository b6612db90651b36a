"""All scenes by name, in the order in which one would show them."""

from __future__ import annotations

from typing import Final

from .scene import Scene
from .scenes.clusters import EM, KMEANS
from .scenes.descent import DESCENT
from .scenes.margins import SVM

#: The scenes, by name.
SCENES: Final[dict[str, Scene]] = {scene.name: scene for scene in (DESCENT, SVM, KMEANS, EM)}
