# SPDX-License-Identifier: Apache-2.0
"""What the service tells of itself while it runs: metrics and traces. It imports nothing of ours but the model."""
