# SPDX-License-Identifier: Apache-2.0
"""What is in trouble: findings of looks at the clouds, and what the books themselves say."""
