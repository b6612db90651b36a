from .models import ConformalClassifier as ConformalClassifier
from .models import ConformalRegressor as ConformalRegressor
