from .perceptron import Perceptron as Perceptron
from .svm import KKTReport as KKTReport
from .svm import LinearSVC as LinearSVC
from .svm import LinearSVR as LinearSVR
