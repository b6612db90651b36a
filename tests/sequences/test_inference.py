"""Filtering, smoothing, pairs, best and drawn paths against the enumeration of all paths."""

from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles.hidden_paths import enumerate_paths, posteriors

from learnable.sequences import baum_welch, inference
from learnable.sequences.baum_welch import Frames, smooth
from learnable.sequences.inference import best_path, draw_paths, filtered, pairwise

NO_CODES = np.empty(0, dtype=np.int64)


def draw(seed, K, lengths, zeros=0.0, spread=3.0):
    """Frames and a chain; with `zeros`, some transitions are impossible."""
    rng = np.random.default_rng(seed)
    A, start = rng.dirichlet(np.ones(K), K), rng.dirichlet(np.ones(K))
    A[(rng.random((K, K)) < zeros) & ~np.eye(K, dtype=bool)] = 0.0
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    log = rng.normal(size=(offsets[-1], K)) * spread - 5
    return Frames(log, NO_CODES, offsets), start, A / A.sum(axis=1, keepdims=True)


@contextmanager
def always_two_threads():
    """Let short sequences use two threads, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(baum_welch, "WORTH_A_THREAD", 0)
        patch.setattr(inference, "WORTH_A_THREAD", 0)
        yield


def each_sequence(frames):
    return [frames.log[lo:hi] for lo, hi in zip(frames.offsets[:-1], frames.offsets[1:], strict=True)]


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.5]),
    st.sampled_from([1.0, 300.0]),
)
def test_forward_backward_is_the_sum_over_all_paths(seed, K, lengths, zeros, spread):
    frames, start, A = draw(seed, K, lengths, zeros, spread)
    for threads in (1, 2):
        with always_two_threads():
            found = smooth(frames, start, A, threads)
        expected = [posteriors(log, start, A) for log in each_sequence(frames)]
        np.testing.assert_allclose(found.log_likelihoods, [e[0] for e in expected], rtol=1e-11)
        np.testing.assert_allclose(found.gamma, np.concatenate([e[1] for e in expected]), atol=1e-11)
        np.testing.assert_allclose(found.pairs, sum(e[2].sum(axis=0) for e in expected), atol=1e-11)
    np.testing.assert_allclose(
        pairwise(frames, start, A),
        np.concatenate([e[2] for e in expected if len(e[2])] or [np.zeros((0, K, K))]),
        atol=1e-10,
    )


@settings(max_examples=40)
@given(
    st.integers(0, 10_000),
    st.integers(1, 5),
    st.lists(st.integers(1, 5), min_size=1, max_size=3),
    st.sampled_from([0.0, 0.5]),
)
def test_viterbi_is_the_best_of_all_paths(seed, K, lengths, zeros):
    frames, start, A = draw(seed, K, lengths, zeros)
    for threads in (1, 2):
        with always_two_threads():
            logs, path = best_path(frames, start, A, threads)
        for log, lo, hi, found in zip(
            each_sequence(frames), frames.offsets[:-1], frames.offsets[1:], logs, strict=True
        ):
            paths, joint = enumerate_paths(log, start, A)
            assert found == pytest.approx(joint.max(), rel=1e-12)
            place = int(np.flatnonzero((paths == path[lo:hi]).all(axis=1))[0])
            assert joint[place] == pytest.approx(joint.max(), rel=1e-12)


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 5))
def test_filtering_is_smoothing_of_what_was_seen_so_far(seed, K, T):
    frames, start, A = draw(seed, K, [T])
    logs, proba = filtered(frames, start, A)
    for t in range(T):
        total, single, _, _ = posteriors(frames.log[: t + 1], start, A)
        np.testing.assert_allclose(proba[t], single[-1], atol=1e-12)
    assert logs[0] == pytest.approx(total, rel=1e-12)


def test_lines_and_codes_are_the_same_as_rows():
    frames, start, A = draw(3, 3, [40, 25])
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 7, 65)
    table = Frames(frames.log[:7], codes, frames.offsets)
    plain = Frames(frames.log[codes], NO_CODES, frames.offsets)
    for one, other in zip(smooth(table, start, A), smooth(plain, start, A), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(best_path(table, start, A)[1], best_path(plain, start, A)[1])


def test_drawn_paths_have_the_smoothed_marginals():
    frames, start, A = draw(5, 3, [6, 3], spread=1.0)
    n = 20_000
    paths = draw_paths(frames, start, A, np.random.default_rng(1).random((n, 9)))
    found = smooth(frames, start, A)
    share = np.stack([(paths == k).mean(axis=0) for k in range(3)], axis=1)
    error = np.sqrt(found.gamma * (1 - found.gamma) / n) + 1e-9
    assert (abs(share - found.gamma) / error).max() < 4.5
    pair = pairwise(frames, start, A)[2]
    both = np.array([[((paths[:, 2] == i) & (paths[:, 3] == j)).mean() for j in range(3)] for i in range(3)])
    assert (abs(both - pair) / (np.sqrt(pair * (1 - pair) / n) + 1e-9)).max() < 4.5


@pytest.mark.threaded
def test_two_threads_give_the_same_bits():
    frames, start, A = draw(7, 6, [5000, 1, 3000])
    for one, two in zip(smooth(frames, start, A, 1), smooth(frames, start, A, 2), strict=True):
        np.testing.assert_array_equal(one, two)


def test_a_million_rows_of_tiny_likelihoods_neither_under_nor_overflow():
    T, K = 1_000_000, 2
    codes = np.random.default_rng(0).integers(0, 3, T)
    A, start = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0.5, 0.5])
    log = np.log(np.array([[0.7, 0.1], [0.2, 0.3], [0.1, 0.6]]))
    for shift in (-900.0, 0.0, 900.0):
        found = smooth(Frames(log + shift, codes, np.array([0, T])), start, A, 2)
        assert np.isfinite(found.log_likelihoods).all()
        np.testing.assert_allclose(found.gamma.sum(axis=1), 1.0, rtol=1e-12)
        assert found.pairs.sum() == pytest.approx(T - 1, rel=1e-10)
        total = filtered(Frames(log + shift, codes, np.array([0, T])), start, A, keep=False)[0]
        np.testing.assert_allclose(total, found.log_likelihoods, rtol=1e-12)
        if shift == 0:
            plain = found.log_likelihoods[0]
        path = best_path(Frames(log + shift, codes, np.array([0, T])), start, A, 2)[1]
    assert found.log_likelihoods[0] == pytest.approx(plain + 900.0 * T, rel=1e-12)
    assert path.min() == 0 and path.max() == K - 1


def test_a_state_that_seemed_lost_comes_back():
    # Two chains that never meet: the first rows favour one by far more than float64 can hold, later rows the other.
    log = np.array([[0.0, -2000.0]] * 3 + [[-2000.0, 0.0]] * 4)
    frames, start, A = Frames(log, NO_CODES, np.array([0, 7])), np.array([0.5, 0.5]), np.eye(2)
    found = smooth(frames, start, A)
    assert found.log_likelihoods[0] == pytest.approx(-6000 + np.log(0.5))
    np.testing.assert_allclose(found.gamma, [[0.0, 1.0]] * 7, atol=1e-12)
    assert filtered(frames, start, A)[0][0] == pytest.approx(-6000 + np.log(0.5))
    np.testing.assert_array_equal(draw_paths(frames, start, A, np.full((1, 7), 0.5))[0], 1)


def test_the_impossible_has_no_likelihood():
    log = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    frames = Frames(log, NO_CODES, np.array([0, 2]))
    assert smooth(frames, np.array([1.0, 0.0]), np.eye(2)).log_likelihoods[0] == -np.inf
    assert filtered(frames, np.array([1.0, 0.0]), np.eye(2), keep=False)[0][0] == -np.inf


@pytest.mark.threaded
def test_an_error_of_either_thread_is_raised():
    def fail(lines):
        if lines[0] >= half:
            raise FloatingPointError("second half")
        return np.zeros((len(lines), 2))

    n, half = 4 * baum_welch._LINES, 3 * baum_welch._LINES
    frames = Frames(baum_welch.LazyRows(fail, np.arange(n), 2), NO_CODES, np.array([0, n]))
    for threads in (1, 2):
        with pytest.raises(FloatingPointError, match="second half"):
            smooth(frames, np.full(2, 0.5), np.full((2, 2), 0.5), threads)
