from .nearest import NearestNeighbors as NearestNeighbors
from .partitioned import neighbors_in_partitions as neighbors_in_partitions
from .voting import KNeighborsClassifier as KNeighborsClassifier
from .voting import KNeighborsRegressor as KNeighborsRegressor
