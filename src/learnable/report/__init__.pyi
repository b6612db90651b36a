from .advice import advise as advise
from .bandit import render_bandit as render_bandit
from .card import card as card
from .clusters import render_clusters as render_clusters
from .model import Report as Report
from .model import report as report
from .render import render as render
from .states import render_states as render_states
