from .explain import Explanation as Explanation
from .explain import explain_theory as explain_theory
from .plan import Plan as Plan
from .plan import plan_rows as plan_rows
from .record import Bound as Bound
from .record import RiskBounds as RiskBounds
from .risk_bound import risk_bound as risk_bound
from .risk_bound import rows_needed as rows_needed
