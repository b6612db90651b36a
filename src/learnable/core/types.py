"""Names of array types, for annotations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray as NDArray

Array = NDArray[np.float64]
AnyArray = NDArray[Any]
