from .regression import KernelRidge as KernelRidge
from .regression import KernelRidgeClassifier as KernelRidgeClassifier
from .ridge_cv import KernelRidgeCV as KernelRidgeCV
from .ridge_cv import kernel_ridge_path as kernel_ridge_path
