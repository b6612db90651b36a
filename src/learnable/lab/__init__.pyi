from .catalogue import SCENES as SCENES
from .formulas import mathml as mathml
from .scene import Scene as Scene
from .scene import Step as Step
from .scenes.margins import move_point as move_point
