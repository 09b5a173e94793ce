# SPDX-License-Identifier: Apache-2.0
"""Events: the engine that finds due ones, the worker that processes them, changes in the cloud, and the sweep."""
