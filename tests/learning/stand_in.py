"""Small data sets made of noise around one image for each class: they are learnt within a few steps."""

from __future__ import annotations

import numpy as np

from secagg_spec.learning.datasets import Dataset, Samples


def samples(count: int, *, channels: int = 1, side: int = 8, classes: int = 10, seed: int = 0) -> Samples:
    """Samples whose labels go through the classes in turn."""
    images = np.random.default_rng(seed).random((classes, channels, side, side))
    labels = np.arange(count) - np.arange(count) // classes * classes
    noise = np.random.default_rng([seed, 1]).random((count, channels, side, side))
    return Samples((0.7 * images[labels] + 0.3 * noise).astype(np.float32), labels.astype(np.int64))


def dataset(count: int = 80, *, channels: int = 1, side: int = 8, classes: int = 10, seed: int = 0) -> Dataset:
    """A data set of such samples, the tests of which are those that are trained on."""
    train = samples(count, channels=channels, side=side, classes=classes, seed=seed)
    return Dataset("stand-in", "stand-in", classes, train, train, None, {})
