"""Blazar, the reservation service of OpenStack clouds."""

__version__ = "0.1.0"
