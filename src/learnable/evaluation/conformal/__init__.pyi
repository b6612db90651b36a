from .any_regressor import with_intervals as with_intervals
from .models import ConformalClassifier as ConformalClassifier
from .models import ConformalRegressor as ConformalRegressor
