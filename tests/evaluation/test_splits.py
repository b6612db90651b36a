"""The package shows the splits of `meta` under its own name."""

from learnable import evaluation
from learnable.evaluation import splits
from learnable.meta import splits as source


def test_the_names_are_those_of_meta():
    assert splits.make_splits is source.make_splits is evaluation.make_splits
    assert splits.hold_out is source.hold_out is evaluation.hold_out
