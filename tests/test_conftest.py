"""How many of Hypothesis's cases `make test` tries."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import fewer_examples


def test_a_third_of_the_cases_is_tried():
    tried = []

    @settings(max_examples=60)
    @given(st.integers())
    def law(number):
        tried.append(number)

    fewer_examples(law)
    law()
    assert len(tried) == 20
