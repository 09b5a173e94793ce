"""Filters that nova-scheduler loads by their class path; each module here imports nova."""
