from .align import align_components as align_components
from .gaussian import GaussianMixture as GaussianMixture
from .kmeans import KMeans as KMeans
from .selection import Selection as Selection
from .selection import select_components as select_components
