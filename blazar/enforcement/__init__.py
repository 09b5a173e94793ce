# SPDX-License-Identifier: Apache-2.0
"""Usage enforcement: may this project have this lease? And who is told of leases that were granted, and that ended.

What may enter: filters, the values that they see, and what carries a question to another service. A filter decides
over frozen values; it knows neither the database nor the cloud, and writes nothing.
"""

from blazar.enforcement.enforcement import Commitment, Enforcement, Identity, builtin_options
from blazar.enforcement.values import (
    AllocatedResource,
    Context,
    Filter,
    LeaseView,
    News,
    Occasion,
    Question,
    Refused,
    Unheard,
)

__all__ = [
    "Commitment",
    "Context",
    "Enforcement",
    "Filter",
    "AllocatedResource",
    "Identity",
    "LeaseView",
    "News",
    "Occasion",
    "Question",
    "Refused",
    "Unheard",
    "builtin_options",
]
