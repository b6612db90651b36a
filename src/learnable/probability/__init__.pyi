from .base import Distribution as Distribution
from .base import ExponentialFamily as ExponentialFamily
from .base import Univariate as Univariate
from .normal import Normal as Normal
from .student_t import StudentT as StudentT
