"""The pending plans of one service, as a sequence that can be printed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from hoodie.display import html_rows


class _Listed(Protocol):
    """A pending plan: a dataclass with the requested time of its instant."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def instant(self) -> str: ...


ListedT = TypeVar("ListedT", bound=_Listed)


@dataclass(frozen=True, slots=True, repr=False)
class PendingPlans(Generic[ListedT]):
    """The pending plans of a service, oldest first. `service` is its name."""

    service: str
    plans: tuple[ListedT, ...] = ()

    def __len__(self) -> int:
        return len(self.plans)

    def __iter__(self) -> Iterator[ListedT]:
        return iter(self.plans)

    def __getitem__(self, place: int) -> ListedT:
        return self.plans[place]

    @property
    def instants(self) -> list[str]:
        """Return the instants of the plans."""
        return [plan.instant for plan in self.plans]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return plain values, for JSON."""
        return [asdict(plan) for plan in self.plans]

    def __str__(self) -> str:
        return "\n".join(map(str, self.plans)) or f"no {self.service} is pending"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        """Return an HTML table, for notebooks."""
        if not self.plans:
            return str(self)
        rows = self.to_dicts()
        return html_rows(list(rows[0]), [list(row.values()) for row in rows])
