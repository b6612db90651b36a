from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def clicks(folder):
    rng = np.random.default_rng(0)
    n = 1500
    hour = rng.normal(size=n)
    p = np.where(hour > 0, 0.7, 0.3)
    ad = np.where(rng.random(n) < p, "blue", "red")
    chance = np.where(ad == "blue", 0.3, 0.5) + 0.15 * np.sign(hour) * np.where(ad == "blue", 1, -1)
    with open("clicks.csv", "w", encoding="utf-8") as file:
        file.write("ad,clicked,p,hour\n")
        for i in range(n):
            chosen = p[i] if ad[i] == "blue" else 1 - p[i]
            file.write(f"{ad[i]},{int(rng.random() < chance[i])},{chosen:.3f},{hour[i]:.4f}\n")


def estimates(out):
    """Return the printed value of each policy."""
    found = {}
    for line in out.splitlines():
        name, _, rest = line.partition("  ")
        if "[" in rest:
            found[name.strip()] = float(rest.split()[0])
    return found


def test_policies_of_a_log(learnable, clicks):
    code, out, _ = learnable(
        "bandit", "clicks.csv", "--arm", "ad", "--reward", "clicked", "-p", "p", "-c", "hour", "--report", "page.html"
    )
    assert code == 0
    found = estimates(out)
    assert found["always blue"] == pytest.approx(0.3, abs=0.06)
    assert found["always red"] == pytest.approx(0.5, abs=0.06)
    assert found["best arm by context (linear)"] > found["always blue"]
    assert "LinUCB, learning" in out and "Thompson, learning" in out and "effective rows" in out
    page = Path("page.html").read_text(encoding="utf-8")
    assert "<h1>" in page and "always red" in page and "<script" not in page and "<svg" in page


def test_without_probabilities_the_assumption_is_said(learnable, clicks):
    code, out, _ = learnable("bandit", "clicks.csv", "-a", "ad", "-r", "clicked", "--method", "snips")
    assert code == 0 and "note: probabilities are the shares of the arms" in out


@pytest.mark.parametrize(
    "arguments, code, message",
    [
        (["-a", "colour", "-r", "clicked"], 1, "no column 'colour'"),
        (["-a", "ad", "-r", "ad"], 1, "must be numbers"),
        (["-a", "ad", "-r", "clicked", "-p", "hour"], 1, "propensity"),
        (["-a", "ad", "-r", "clicked", "--method", "magic"], 2, "--method"),
        (["-a", "hour", "-r", "clicked"], 1, "more than 100"),
    ],
)
def test_wrong_requests(learnable, clicks, arguments, code, message):
    left, _, err = learnable("bandit", "clicks.csv", *arguments)
    assert left == code and message in err
