"""Families of features, wrappers around them, and files."""

from pdofm.features.base import Features, check_count, polynomial_degree
from pdofm.features.bores import BoreFunctions
from pdofm.features.boxes import BoxPolynomials, InBoxes
from pdofm.features.boxfeatures import BoxFeatures
from pdofm.features.byregion import RegionFeatures
from pdofm.features.combined import Combined
from pdofm.features.compose import Concatenate, Functions, HardDirichlet
from pdofm.features.corner import CornerFunctions
from pdofm.features.edges import EdgeFunctions
from pdofm.features.harmonic import HarmonicPolynomials
from pdofm.features.holes import HoleFunctions
from pdofm.features.io import load, save
from pdofm.features.mirrored import Mirrored
from pdofm.features.network import NetworkFeatures
from pdofm.features.partition import OVERLAP, PartitionOfUnity
from pdofm.features.random import RandomFeatures
from pdofm.features.sector import SectorFunctions
from pdofm.features.slabs import Slabs
from pdofm.features.sparse import SparsePolynomials
from pdofm.features.spectral import Chebyshev, Fourier
from pdofm.features.stretched import StretchedPolynomials
from pdofm.features.transnet import TransNet

__all__ = [
    "OVERLAP",
    "BoreFunctions",
    "BoxFeatures",
    "BoxPolynomials",
    "Chebyshev",
    "Combined",
    "Concatenate",
    "CornerFunctions",
    "EdgeFunctions",
    "Features",
    "Fourier",
    "Functions",
    "HardDirichlet",
    "HarmonicPolynomials",
    "HoleFunctions",
    "InBoxes",
    "Mirrored",
    "NetworkFeatures",
    "PartitionOfUnity",
    "RandomFeatures",
    "RegionFeatures",
    "SectorFunctions",
    "Slabs",
    "SparsePolynomials",
    "StretchedPolynomials",
    "TransNet",
    "check_count",
    "load",
    "polynomial_degree",
    "save",
]
