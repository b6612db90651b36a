"""Linear systems and least squares: moments of the rows, factorisations, conjugate gradients."""
