"""Feature spaces."""

from pdofm.features.base import Features
from pdofm.features.network import NetworkFeatures
from pdofm.features.random import RandomFeatures

__all__ = ["Features", "NetworkFeatures", "RandomFeatures"]
