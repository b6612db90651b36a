from . import concentration as concentration
from . import vc as vc
