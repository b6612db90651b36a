"""Multinomial NUTS as the textbook has it: a recursion over balanced trees, one leaf at a time, in plain Python.

It draws from the same stream in the same order as the compiled kernel, so that both give the same point.
"""

import math

import numpy as np

MASK = 2**64 - 1


class Stream:
    """xoshiro256++ on Python's integers, and what is made of it."""

    def __init__(self, words):
        self.s = [int(w) for w in words]

    def word(self):
        s = self.s
        total = (s[0] + s[3]) & MASK
        found = (((total << 23) | (total >> 41)) + s[0]) & MASK
        moved = (s[1] << 17) & MASK
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= moved
        s[3] = ((s[3] << 45) | (s[3] >> 19)) & MASK
        return found

    def uniform(self):
        return ((self.word() >> 11) + 0.5) / 2**53

    def normals(self, n):
        found = []
        while len(found) < n:
            u = 2 * self.uniform() - 1
            v = 2 * self.uniform() - 1
            s = u * u + v * v
            if 0 < s < 1:
                scale = math.sqrt(-2 * math.log(s) / s)
                found += [u * scale, v * scale]
        return np.array(found[:n])


class Node:
    def __init__(self, first, last, total, point, weight):
        self.first, self.last, self.total, self.point, self.weight = first, last, total, point, weight


def turns(a, b):
    """Betancourt's criterion over the whole, and over each half with the neighbouring leaf of the other."""
    whole = a.total + b.total
    left = a.total + b.first
    right = a.last + b.total
    pairs = [(a.first, whole), (b.last, whole), (a.first, left), (b.first, left), (a.last, right), (b.last, right)]
    return any(p @ rho <= 0 for p, rho in pairs)


def leapfrog(log_density, scale, u, p, epsilon):
    p = p + 0.5 * epsilon * scale * log_density(u)[1]
    u = u + epsilon * scale * p
    return u, p + 0.5 * epsilon * scale * log_density(u)[1]


class _Ended(Exception):  # noqa: N818
    pass


def nuts_step(log_density, u, scale, epsilon, max_depth, words):
    """Return the next point, the depth and the number of leapfrog steps."""
    stream = Stream(words)
    p = stream.normals(len(u))
    energy = 0.5 * p @ p - log_density(u)[0]
    ends = {1: (u, p), -1: (u, p)}
    count = 0

    def build(side, depth):
        nonlocal count
        if depth == 0:
            ends[side] = leapfrog(log_density, scale, *ends[side], side * epsilon)
            count += 1
            x, q = ends[side]
            weight = energy + log_density(x)[0] - 0.5 * q @ q
            if not weight >= -1000:
                raise _Ended
            return Node(q, q, q, x, weight)
        a = build(side, depth - 1)
        b = build(side, depth - 1)
        turning = turns(a, b)
        weight = np.logaddexp(a.weight, b.weight)
        point = b.point if stream.uniform() < math.exp(b.weight - weight) else a.point
        if turning:
            raise _Ended
        return Node(a.first, b.last, a.total + b.total, point, weight)

    tree = Node(p, p, p, u, 0.0)
    depth = 0
    while depth < max_depth:
        side = 1 if stream.uniform() < 0.5 else -1
        depth += 1
        try:
            new = build(side, depth - 1)
        except _Ended:
            break
        point = tree.point
        if new.weight >= tree.weight or stream.uniform() < math.exp(new.weight - tree.weight):
            point = new.point
        mirrored = Node(new.last, new.first, new.total, new.point, new.weight)
        halves = (tree, new) if side == 1 else (mirrored, tree)
        turning = turns(*halves)
        first, last = halves[0].first, halves[1].last
        weight = np.logaddexp(tree.weight, new.weight)
        tree = Node(first, last, tree.total + new.total, point, weight)
        if turning:
            break
    return tree.point, depth, count
