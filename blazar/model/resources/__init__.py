# SPDX-License-Identifier: Apache-2.0
"""Resources: what can be reserved, the kinds of it, where it lies, and which of it a request means."""
