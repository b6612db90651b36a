from .classification import KNeighborsClassifier as KNeighborsClassifier
from .nearest import NearestNeighbors as NearestNeighbors
from .regression import KNeighborsRegressor as KNeighborsRegressor
