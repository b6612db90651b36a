from .best_subset import BestSubset as BestSubset
from .stepwise import BackwardStepwise as BackwardStepwise
from .stepwise import ForwardStepwise as ForwardStepwise
