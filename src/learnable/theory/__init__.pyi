from . import concentration as concentration
