"""Feature vectors of users and items, computed in the same way from a log and online:
:class:`FeatureBuilder`."""

from c4b.features.builder import FeatureBuilder
from c4b.features.interaction import Interaction
from c4b.features.labels import Embedding, Hashed, OneHot
from c4b.features.numbers import Intercept, Number, Vector
from c4b.features.part import Part
from c4b.features.transformer import Transformer

__all__ = [
    "Embedding",
    "FeatureBuilder",
    "Hashed",
    "Interaction",
    "Intercept",
    "Number",
    "OneHot",
    "Part",
    "Transformer",
    "Vector",
]
