from .diffusion import DiffusionMaps as DiffusionMaps
from .isomap import Isomap as Isomap
from .locally_linear import LocallyLinearEmbedding as LocallyLinearEmbedding
from .pca import PCA as PCA
from .scaling import ClassicalMDS as ClassicalMDS
from .spectral import LaplacianEigenmaps as LaplacianEigenmaps
from .spectral import SpectralEmbedding as SpectralEmbedding
from .truncated import TruncatedSVD as TruncatedSVD
