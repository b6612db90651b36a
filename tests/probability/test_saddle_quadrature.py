"""Divergences by quadrature against those that have a closed form."""

import numpy as np
import pytest

from learnable.probability import Normal, StudentT
from learnable.probability.saddle import kl_by_quadrature


def test_closed_form_of_normal_distributions():
    p, q = Normal(0.3, 1.5), Normal([0.0, 2.0], [1.0, 7.0])
    np.testing.assert_allclose(kl_by_quadrature(p, q), p.kl(q), rtol=1e-9)


def test_student_tends_to_normal():
    assert StudentT(1e9, 0.5, 1.2).kl(StudentT(1e9, 0.0, 2.0)) == pytest.approx(
        Normal(0.5, 1.2).kl(Normal(0.0, 2.0)), rel=1e-6
    )


def test_scale_of_the_cauchy_distribution():
    # log((s + s')²/(4ss')), Chyzak and Nielsen (2019).
    assert StudentT(1.0, 0.0, 2.0).kl(StudentT(1.0, 0.0, 0.5)) == pytest.approx(np.log(2.5**2 / 4), rel=1e-8)
