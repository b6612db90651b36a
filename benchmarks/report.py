"""Measured rows as Markdown."""

from __future__ import annotations

from typing import Any

from .harness import Comparison, Result, Timing, warm_up


def to_markdown(results: list[Result], environment: dict[str, Any]) -> str:
    """Return a summary table, every contender's own numbers, and the machine they were taken on."""
    versions = ", ".join(f"{package} {number}" for package, number in environment["versions"].items())
    return "\n".join(
        [
            _table(
                ["row", "job", "size", "learnable", "peer", "its time", "ratio", "asked", "verdict"],
                [line for result in results for line in _summary_lines(result)],
            ),
            "Every contender:",
            "",
            _table(
                [
                    "row",
                    "contender",
                    "best",
                    "warm-up",
                    "peak memory",
                    "excess",
                    "certificate",
                    "numbers",
                ],
                [_contender_line(result, timing) for result in results for timing in result.timings],
            ),
            f"{environment['cpu']}, {environment['cpus']} CPUs, {environment['blas_threads']} BLAS threads, "
            f"{environment['system']}; {environment['date'][:10]}; {versions}.",
            "",
        ]
    )


def _summary_lines(result: Result) -> list[list[str]]:
    head = [f"`{result.row}`", result.job, result.size, _seconds(result.ours.best)]
    if result.limit_seconds is not None:
        verdict = f"FAILED: {'; '.join(result.failures)}" if result.failures else "met"
        return [[*head, "–", "–", "–", f"< {_seconds(result.limit_seconds)}", verdict]]
    return [[*head, *_comparison_cells(result, comparison)] for comparison in result.comparisons]


def _comparison_cells(result: Result, comparison: Comparison) -> list[str]:
    chosen = next((timing for timing in result.timings if timing.contender == comparison.contender), None)
    return [
        comparison.contender or comparison.library,
        _seconds(chosen.best) if chosen else "–",
        f"{comparison.ratio:.2f}×" if comparison.ratio is not None else "–",
        f"{comparison.target:g}×" if comparison.target is not None else "–",
        f"FAILED: {'; '.join(result.failures)}" if result.failures else comparison.verdict,
    ]


def _proof(certificate: dict[str, Any] | None) -> str:
    """Return what a certificate claims; one without a finite number, or without a claim, has only its kind."""
    if certificate is None:
        return "–"
    kind, value = certificate["kind"], certificate["value"]
    return kind if kind == "none" or value is None else f"{kind} {value:.1e}"


def _contender_line(result: Result, timing: Timing) -> list[str]:
    name = f"`{result.row}`"
    if not timing.installed:
        return [name, timing.contender, "not installed", "–", "–", "–", "–", "–"]
    excess = "–" if timing.excess is None else f"{timing.excess:.1e}"
    if not timing.reached:
        excess += " (does not count)"
    return [
        name,
        timing.contender,
        _seconds(timing.best),
        _seconds(warm_up(timing)),
        "–" if timing.peak_megabytes is None else f"{timing.peak_megabytes:.0f} MB",
        excess,
        _proof(timing.certificate),
        ", ".join(f"{key} {value:.8g}" for key, value in timing.quality.items()) or "–",
    ]


def _seconds(value: float) -> str:
    return f"{value * 1e3:.3g} ms" if value < 1 else f"{value:.3g} s"


def _table(header: list[str], lines: list[list[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + "\n"
