# SPDX-License-Identifier: Apache-2.0
"""The journal: who did what to which object, when and why."""
