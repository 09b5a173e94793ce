"""Measurements: how long and how many statements requests take, and how that grows."""
