from . import core as core
from . import data as data
from . import evaluation as evaluation
from . import linear as linear
from . import meta as meta
from . import plots as plots
from . import probability as probability
from . import report as report
from . import risk as risk
from . import solvers as solvers
from .core import load as load
from .core import save as save
from .core import verify as verify
from .data import TableEncoder as TableEncoder
from .data import read_table as read_table
from .evaluation import CalibratedClassifier as CalibratedClassifier
from .evaluation import ConformalClassifier as ConformalClassifier
from .evaluation import ConformalRegressor as ConformalRegressor
from .linear import LinearRegression as LinearRegression
from .linear import LogisticRegression as LogisticRegression
from .linear import Ridge as Ridge
from .linear import RidgeCV as RidgeCV
from .linear import ridge_path as ridge_path
from .meta import TableModel as TableModel
from .meta import select as select

__version__: str
