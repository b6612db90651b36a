from .approximations import Nystroem as Nystroem
from .approximations import RBFSampler as RBFSampler
from .pca import KernelPCA as KernelPCA
