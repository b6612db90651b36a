from .isomap import Isomap as Isomap
from .pca import PCA as PCA
from .scaling import ClassicalMDS as ClassicalMDS
from .truncated import TruncatedSVD as TruncatedSVD
