# SPDX-License-Identifier: Apache-2.0
"""The parameters of a reservation of floating IP addresses, and the schema of a request for it."""

from __future__ import annotations

from collections import Counter

from blazar.model.base.errors import InvalidInput, pointing_at
from blazar.model.base.json_text import Json
from blazar.model.base.values import asdict, dataclass
from blazar.model.leases.reservation import Content
from blazar.resources.contract.actions import BEFORE_END, checked_action
from blazar.resources.contract.parameters import quote, stored_number, stored_text, whole_number
from blazar.resources.contract.schemas import COUNT, ID, SAVES_WORK, a_request
from blazar.resources.contract.values import Action
from blazar.resources.floating_ips.registration import address_text

SCHEMA = a_request(
    {
        "network_id": {**ID, "title": "Id of the external network"},
        "amount": {**COUNT, "title": "Addresses"},
        "required_floatingips": {
            "type": "array",
            "maxItems": 1000,
            "items": {"type": "string", "maxLength": 64, "description": "an IP address"},
            "title": "These addresses",
            "description": "a list of addresses",
            "default": [],
        },
        "before_end": SAVES_WORK,
    },
    required=("network_id", "amount"),
    fixed=("network_id",),
    example={"network_id": "c5b1d7a2-0f3e-4f57-9d0a-0e1f2a3b4c5d", "amount": 2},
)


REQUIRED = "required_floatingips"


LONGEST_ID = 255


@dataclass(frozen=True, slots=True)
class FloatingIpParameters:
    """The parameters of a reservation of addresses, named as in the API."""

    network_id: str
    amount: int
    required_floatingips: tuple[str, ...]
    before_end: str

    @classmethod
    def checked(cls, given: Json) -> FloatingIpParameters:
        """Return the parameters of a request that has all of them; InvalidInput names the field."""
        action = checked_action(given)
        if action in (Action.SNAPSHOT, Action.MIGRATION):
            raise InvalidInput(
                f"{BEFORE_END} is {action!r}, which saves servers, and addresses have none; use 'notification' or "
                f"'none'",
                at=f"/{BEFORE_END}",
            )
        network_id = given["network_id"]
        if not isinstance(network_id, str) or not 1 <= len(network_id) <= LONGEST_ID:
            raise InvalidInput(
                f"network_id is {quote(network_id)}; give the id of an external network, a string", at="/network_id"
            )
        amount = whole_number(given["amount"], "amount", least=1, what="a whole number of addresses")
        return cls(network_id, amount, _checked_addresses(given[REQUIRED], amount), action)

    @classmethod
    def of(cls, content: Content) -> FloatingIpParameters:
        """Return the parameters that a reservation keeps."""
        required = content.values.get(REQUIRED) or ()
        if not isinstance(required, list | tuple):
            raise TypeError(f"{REQUIRED} is {quote(required)}, not a list")
        return cls(
            stored_text(content, "network_id"),
            stored_number(content, "amount"),
            tuple(required),
            stored_text(content, BEFORE_END, "default"),
        )

    @property
    def values(self) -> Json:
        """Return the parameters as the API shows them."""
        return {**asdict(self), REQUIRED: list(self.required_floatingips)}

    @property
    def content(self) -> Content:
        """Return the parameters as a reservation keeps them."""
        return Content(self.values)


def _checked_address(value: object, index: int) -> str:
    with pointing_at(f"/{REQUIRED}/{index}"):
        return address_text(value, f"{REQUIRED}[{index}]")


def _checked_addresses(value: object, amount: int) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise InvalidInput(
            f'{REQUIRED} is {quote(value)}; give a list of addresses, as ["203.0.113.10"], or []', at=f"/{REQUIRED}"
        )
    if len(value) > amount:
        raise InvalidInput(
            f"{REQUIRED} has {len(value)} addresses, and amount is {amount}; raise amount, or name fewer",
            at=f"/{REQUIRED}",
        )
    addresses = [_checked_address(item, index) for index, item in enumerate(value)]
    twice = next((address for address, count in Counter(addresses).items() if count > 1), None)
    if twice:
        raise InvalidInput(f"{REQUIRED} has {twice} more than once; name each address once", at=f"/{REQUIRED}")
    return tuple(addresses)
