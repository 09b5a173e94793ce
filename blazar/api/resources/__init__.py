# SPDX-License-Identifier: Apache-2.0
"""Resources of every kind that is served, those of other packages as well: ``/v1/resources``, from 1.2 on."""
