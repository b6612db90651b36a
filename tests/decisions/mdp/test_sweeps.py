"""Backups that skip pairs by bounds give what those of all pairs give; rows are copied where a policy changed."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.oracles import mdp as oracle

from learnable.decisions.mdp import sweeps as module
from learnable.decisions.mdp.sweeps import Sweeps


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 10**6), st.sampled_from([0.0, 0.3]), st.sampled_from([0.5, 0.99]), st.sampled_from([0.0, 0.33, 1.0])
)
def test_bounds_never_hide_the_best_pair(seed, stop, gamma, few_left):
    rng = np.random.default_rng(seed)
    mdp = oracle.random_mdp(rng, 12, 4, gamma, stop=stop)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_FEW_LEFT", few_left)  # 0: all pairs are looked at; 1: bounds always count
        sweeps = Sweeps(mdp, 1)
        chosen = np.full(12, -1, dtype=np.int64)
        v = np.zeros(12)
        rows = None
        for step in range(8):
            if rng.random() < 0.3:  # values need not come from a backup, nor change little
                v = v + rng.normal(size=12) * 10.0 ** rng.integers(-3, 2)
            Tv = sweeps.best(v, chosen, rows)
            np.testing.assert_allclose(Tv, oracle.backup(mdp, v), rtol=1e-12, atol=1e-12)
            rows = sweeps.rows_of(chosen, last=rows) if step % 2 else None
            if rows is not None:
                np.testing.assert_allclose(sweeps.follow(v, rows), Tv, rtol=1e-12, atol=1e-12)
            v = Tv


@pytest.mark.parametrize("ragged", [False, True])
def test_rows_of_a_policy_are_renewed_where_it_changed(ragged):
    rng = np.random.default_rng(1)
    mdp = oracle.random_mdp(rng, 15, 3, 0.9, n_successors=4)
    if ragged:
        pairs = (mdp.pair_state, mdp.pair_action)
        P = mdp.P.toarray()
        P[7] = 0.0
        P[7, 3] = 1.0
        mdp = type(mdp).from_pairs(*pairs, P, mdp.reward, 0.9)
    sweeps = Sweeps(mdp, 1)
    last = None
    for _ in range(4):
        chosen = mdp.pair_start[:-1] + rng.integers(0, 3, 15)
        last = sweeps.rows_of(chosen, last=last)
        np.testing.assert_array_equal(last.matrix().toarray(), mdp.P.toarray()[chosen])
        np.testing.assert_array_equal(last.reward, mdp.reward[chosen])
