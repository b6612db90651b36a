"""Markov chains that sample: Metropolis on a banana, Gibbs steps, paths of NUTS, a funnel, ranks, eight schools.

Run with the name of a folder to get the figures as SVG files: python examples/plot_sampling.py figures
"""

import sys
import warnings
from pathlib import Path

import numpy as np

from learnable import verify
from learnable.plots import labelled_lines, path_plot, side_by_side
from learnable.probability import Normal
from learnable.sampling import Chains, Positive, RandomWalk, Real, gibbs, metropolis_hastings, nuts

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
warnings.simplefilter("ignore")  # chains that fail on purpose


def write(name, figure):
    """Write a figure, if a folder was named."""
    if FOLDER:
        FOLDER.mkdir(parents=True, exist_ok=True)
        (FOLDER / f"{name}.svg").write_text(figure, encoding="utf-8")


def banana(x):
    """Return the log density and its gradient: a normal x₀, and x₁ around x₀²."""
    miss = x[1] - x[0] ** 2
    return -0.5 * (x[0] ** 2 + miss**2), np.array([-x[0] + 2 * miss * x[0], -miss])


# Metropolis: steps too short, steps too long, and steps that adapted to an acceptance of 0.234.
panels = []
for name, walk in (
    ("short", RandomWalk(0.1, adapt=False)),
    ("long", RandomWalk(6.0, adapt=False)),
    ("adapted", RandomWalk()),
):
    chains = metropolis_hastings(lambda x: banana(x)[0], walk, x0=[0.0, 0.0], n_draws=400, n_warmup=500, random_state=0)
    accept = chains.stats["accept"].mean()
    print(f"Metropolis, {name} steps: acceptance {accept:.2f}, effective draws {min(chains.ess.values()):.0f} of 1600")
    path = chains["x"][0]
    title = f"{name} steps, acceptance {accept:.2f}"
    panels.append(labelled_lines({name: (path[:, 0], path[:, 1])}, x_range=(-3.5, 3.5), y_range=(-2, 9), title=title))
write("sampling_metropolis", side_by_side(*panels, title="Random-walk Metropolis on a curved ridge"))

# Gibbs: one coordinate at a time cannot move along a narrow ridge.
panels = []
for rho in (0.5, 0.97):
    s = np.sqrt(1 - rho**2)
    conditionals = {"x": lambda v, r=rho, s=s: Normal(r * v["y"], s), "y": lambda v, r=rho, s=s: Normal(r * v["x"], s)}
    chains = gibbs(conditionals, {"x": -2.0, "y": -2.0}, n_draws=60, n_warmup=0, random_state=1)
    x, y = chains["x"][0], chains["y"][0]
    corners = np.repeat(np.stack([x, y], axis=1), 2, axis=0)
    corners[2::2, 1] = corners[1:-1:2, 1]  # x moves first, then y
    title = f"correlation {rho}"
    panels.append(
        labelled_lines({title: (corners[:, 0], corners[:, 1])}, x_range=(-3, 3), y_range=(-3, 3), title=title)
    )
write("sampling_gibbs", side_by_side(*panels, title="Gibbs steps on two normals"))

# NUTS: where draws lie after a few transitions, on the banana's contours.
chains = nuts(banana, 2, n_draws=1000, random_state=0)
effective = min(chains.ess.values())
print(f"NUTS on the banana: {effective:.0f} effective draws, {chains.stats['n_steps'].mean():.1f} gradients per draw")
paths = {"Metropolis": metropolis_hastings(lambda x: banana(x)[0], x0=[0.0, 0.0], n_draws=30, random_state=0)["x"][0]}
paths["NUTS"] = chains["x"][0, :30]
grid_x, grid_y = np.linspace(-3, 3, 61), np.linspace(-2, 8, 81)
values = [[-banana(np.array([a, b]))[0] for a in grid_x] for b in grid_y]
write("sampling_nuts", path_plot(grid_x, grid_y, values, paths, title="Thirty draws of each"))


# What happens between two draws: the point gets a random push and glides without friction, until it turns back.
def glide(x, p, step=0.12):
    """Return the points of leapfrog steps, until the next would come nearer to the start again."""
    points = [x]
    while (points[-1] - x) @ p >= 0.0:
        p = p + 0.5 * step * banana(points[-1])[1]
        points.append(points[-1] + step * p)
        p = p + 0.5 * step * banana(points[-1])[1]
    return np.array(points)


pushes = {f"push {angle}°": 2.5 * np.exp(1j * np.radians(angle)) for angle in (0, 70, 150, 215)}
glides = {name: glide(np.array([0.0, 0.5]), np.array([push.real, push.imag])) for name, push in pushes.items()}
print("steps before the path turns back:", ", ".join(str(len(path) - 1) for path in glides.values()))
write("sampling_paths", path_plot(grid_x, grid_y, values, glides, title="Paths until they turn back"))


def funnel(x):
    """Return Neal's funnel, v ~ N(0, 9), x ~ N(0, e^v), and its gradient."""
    v, rest = x[0], x[1:]
    t = rest**2 * np.exp(-v)
    slope = -v / 9 - 0.5 * len(rest) + 0.5 * t.sum()
    return -(v**2) / 18 - 0.5 * len(rest) * v - 0.5 * t.sum(), np.r_[slope, -rest * np.exp(-v)]


centred = nuts(funnel, 4, n_draws=1000, random_state=0)
print(f"Funnel: {centred.n_divergences} divergences; certified: {centred.certificate_.holds}")
write("sampling_funnel", centred.plot("pair", "x[1]", "x[0]"))

# Ranks: flat where chains agree.
rng = np.random.default_rng(0)
good = Chains.from_arrays({"good": rng.normal(size=(4, 1000))})
bad = Chains.from_arrays({"bad": rng.normal(size=(4, 1000)) + np.array([[0.0], [0.0], [0.0], [1.0]])})
print(f"R-hat of good chains {good.rhat['good']:.3f}, of bad ones {bad.rhat['bad']:.3f}; groups {bad.groups}")
write("sampling_ranks_good", good.plot("rank"))
write("sampling_ranks_bad", bad.plot("rank"))

# Eight schools (Rubin 1981), not centred: θ = μ + τz.
y = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
sigma = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def schools(p):
    """Return the log posterior and its gradient."""
    mu, tau, z = p["mu"], p["tau"], p["z"]
    r = (y - mu - tau * z) / sigma
    value = -0.5 * (r @ r + z @ z) - mu**2 / 50 - np.log1p(tau**2 / 25)
    pull = r / sigma
    by_tau = pull @ z - 2 * tau / (25 + tau**2)
    return value, {"mu": pull.sum() - mu / 25, "tau": by_tau, "z": pull * tau - z}


chains = nuts(schools, {"mu": Real(), "tau": Positive(), "z": 8}, n_draws=2000, target_accept=0.95, random_state=0)
print(chains.summary())
print(verify(chains))
write("sampling_schools", chains.plot("posterior", "tau"))
write("sampling_trace", chains.plot("trace", "mu"))
