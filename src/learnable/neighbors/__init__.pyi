from .nearest import NearestNeighbors as NearestNeighbors
from .voting import KNeighborsClassifier as KNeighborsClassifier
from .voting import KNeighborsRegressor as KNeighborsRegressor
