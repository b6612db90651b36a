"""Models that misbehave, each in its own way; a comparison has to survive every one of them."""

import os
import signal
import time

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class Constant(RegressorMixin, BaseEstimator):
    """Predicts zero; the others misbehave before they do."""

    def misbehave(self):
        """Do nothing."""

    def fit(self, X, y):
        self.misbehave()
        self.fitted_ = True
        return self

    def predict(self, X):
        return np.zeros(X.shape[0])


class Raising(Constant):
    def misbehave(self):
        raise ValueError("these numbers\nare not to my taste")


class Hanging(Constant):
    def misbehave(self):
        while True:
            time.sleep(60)


class Killed(Constant):
    def misbehave(self):
        os.kill(os.getpid(), signal.SIGKILL)


class Leaving(Constant):
    def misbehave(self):
        os._exit(7)


class Greedy(Constant):
    def misbehave(self):
        self.hoard_ = []
        while True:
            self.hoard_.append(np.ones(2**24))


class Forking(Constant):
    """Starts a child that would outlive it, writes the child's number to `path`, and hangs."""

    def __init__(self, path="child"):
        self.path = path

    def misbehave(self):
        child = os.fork()
        if child:
            with open(self.path, "w") as file:
                file.write(str(child))
        while True:
            time.sleep(60)


class Chatty(Constant):
    def misbehave(self):
        print("look at me", flush=True)


class NotANumber(Constant):
    def predict(self, X):
        return np.full(X.shape[0], np.nan)


class Interrupting(Constant):
    def misbehave(self):
        raise KeyboardInterrupt


class Labels(ClassifierMixin, BaseEstimator):
    """A classifier without probabilities."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(X.shape[0], self.classes_[0])
