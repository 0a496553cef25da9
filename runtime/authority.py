"""Who may do what: every access to a session, thread or run goes through `authorize`.

Pure. The shipped policy is owner-only. What a principal may not see is answered exactly as if it were missing, so a
refusal is a `NotFound`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from runtime.errors import NotFound
from runtime.journal import DEFAULT_TENANT


@dataclass(frozen=True, slots=True)
class Principal:
    """Who is asking. `operator` may also see what is for operators (rounds, full envelopes)."""

    id: str
    tenant_id: str = DEFAULT_TENANT
    operator: bool = False


ANONYMOUS = Principal("anonymous", operator=True)
"""Everybody, on a server that asks nobody who they are."""


class Owned(Protocol):
    """Anything that belongs to somebody."""

    @property
    def tenant_id(self) -> str:
        """The tenant."""
        ...

    @property
    def owner_id(self) -> str:
        """The principal's id."""
        ...


Policy: TypeAlias = Callable[[Principal, str, Owned], bool]


def owner_only(principal: Principal, action: str, resource: Owned) -> bool:
    """Whatever the action: it is yours, or it is not there."""
    return principal.tenant_id == resource.tenant_id and principal.id == resource.owner_id


def authorize(principal: Principal, action: str, resource: Owned | None, policy: Policy = owner_only) -> None:
    """Return if `principal` may take `action` (`read`, `run`, `cancel`, `update`, `delete`) on `resource`.

    Raises NotFound if not.
    """
    if resource is None or not policy(principal, action, resource):
        raise NotFound
