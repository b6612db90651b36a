from .forms import EquivalentForm as EquivalentForm
from .forms import equivalent as equivalent
from .model import RegularizedRisk as RegularizedRisk
