# SPDX-License-Identifier: Apache-2.0
"""The adapter of BMCs that speak Redfish (DMTF DSP0266): one GET and one POST are all that power needs."""
