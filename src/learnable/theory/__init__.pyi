from . import bounds as bounds
from . import concentration as concentration
from . import covering as covering
from . import demonstrate as demonstrate
from . import pac as pac
from . import rademacher as rademacher
from . import vc as vc
