# SPDX-License-Identifier: Apache-2.0
"""The adapter of measurements from Prometheus, or what has its HTTP API (Thanos, Mimir, VictoriaMetrics)."""
