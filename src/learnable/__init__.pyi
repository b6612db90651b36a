from . import core as core
from . import data as data
from . import linear as linear
from . import probability as probability
from . import risk as risk
from . import solvers as solvers
from .core import load as load
from .core import save as save
from .core import verify as verify
from .linear import LinearRegression as LinearRegression
from .linear import LogisticRegression as LogisticRegression
from .linear import Ridge as Ridge
from .linear import RidgeCV as RidgeCV
from .linear import ridge_path as ridge_path

__version__: str
