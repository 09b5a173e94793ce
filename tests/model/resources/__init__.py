# SPDX-License-Identifier: Apache-2.0
"""Resources, their properties and regions."""
