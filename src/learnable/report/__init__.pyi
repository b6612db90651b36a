from .advice import advise as advise
from .card import card as card
from .clusters import render_bandit as render_bandit
from .clusters import render_clusters as render_clusters
from .clusters import render_states as render_states
from .model import Report as Report
from .model import report as report
from .render import render as render
