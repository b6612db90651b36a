from .best_subset import BestSubset as BestSubset
