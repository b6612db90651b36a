from .best_subset import BestSubset as BestSubset
from .lars import LassoLars as LassoLars
from .lars import lars_path as lars_path
from .stagewise import ForwardStagewise as ForwardStagewise
from .stepwise import BackwardStepwise as BackwardStepwise
from .stepwise import ForwardStepwise as ForwardStepwise
