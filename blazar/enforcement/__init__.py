# SPDX-License-Identifier: Apache-2.0
"""Usage enforcement: filters check leases before they are granted, and are notified of granted and ended leases.

What may enter: filters, the values that they see, and the client of the external service. A filter decides over frozen
values; it does not access the database or the cloud, and writes nothing.
"""

from blazar.enforcement.enforcement import (
    CloudIdentity,
    Commitment,
    Enforcement,
    builtin_options,
    find_budget_window,
    list_budgets,
)
from blazar.enforcement.values import (
    AllocatedResource,
    Context,
    Filter,
    FilterNotification,
    LeaseView,
    NotDelivered,
    NotificationRefused,
    Occasion,
    Question,
)

__all__ = [
    "Commitment",
    "Context",
    "Enforcement",
    "Filter",
    "AllocatedResource",
    "CloudIdentity",
    "LeaseView",
    "FilterNotification",
    "Occasion",
    "Question",
    "NotificationRefused",
    "NotDelivered",
    "builtin_options",
    "find_budget_window",
    "list_budgets",
]
