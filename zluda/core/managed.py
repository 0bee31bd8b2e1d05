"""Managed memory: what a program has advised about it. It never moves, so advice is kept and told, not acted upon.

Managed memory lies in the window, where the host and every device that has managed memory reach it without a copy.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any, NamedTuple

from zluda.core.errors import invalid_value
from zluda.core.memory import PAGE, MemoryKind
from zluda.spec.types import enum

if TYPE_CHECKING:
    from zluda.core.driver import Driver

_ADVICE = {name.removeprefix("CU_MEM_ADVISE_"): number for name, number in enum("CUmem_advise").items()}


class Location(NamedTuple):
    """A CUmemLocation; `type` is a CU_MEM_LOCATION_TYPE_*. None stands for none, or for several."""

    type: int
    id: int


class Usage(NamedTuple):
    """What is known of pages: CU_MEM_RANGE_ATTRIBUTE_*."""

    read_mostly: bool = False
    preferred: Location | None = None
    accessed_by: frozenset[Location] = frozenset()
    prefetched: Location | None = None

    def common(self, other: Usage) -> Usage:
        """What holds for both."""
        return Usage(
            self.read_mostly and other.read_mostly,
            self.preferred if self.preferred == other.preferred else None,
            self.accessed_by & other.accessed_by,
            self.prefetched if self.prefetched == other.prefetched else None,
        )


class Advice:
    """The usage of an allocation's pages, as runs of pages that are alike."""

    def __init__(self) -> None:
        self._starts = [0]
        self._usage = [Usage()]

    def change(self, first: int, end: int, **fields: Any) -> None:
        """Set fields of `Usage` for pages `first` to `end - 1`."""
        for at in range(self._split(first), self._split(end)):
            self._usage[at] = self._usage[at]._replace(**fields)
        self._join()

    def access(self, first: int, end: int, location: Location, given: bool) -> None:
        """Add or take away a processor that uses the pages."""
        for at in range(self._split(first), self._split(end)):
            usage = self._usage[at]
            who = usage.accessed_by | {location} if given else usage.accessed_by - {location}
            self._usage[at] = usage._replace(accessed_by=who)
        self._join()

    def common(self, first: int, end: int) -> Usage:
        """What holds for all the pages."""
        found = None
        for at in range(bisect_right(self._starts, first) - 1, bisect_right(self._starts, end - 1)):
            found = self._usage[at] if found is None else found.common(self._usage[at])
        assert found is not None
        return found

    def _split(self, page: int) -> int:
        """The run that starts at a page, after cutting one in two if need be."""
        at = bisect_right(self._starts, page) - 1
        if self._starts[at] != page:
            at += 1
            self._starts.insert(at, page)
            self._usage.insert(at, self._usage[at - 1])
        return at

    def _join(self) -> None:
        kept = [at for at, usage in enumerate(self._usage) if not at or usage != self._usage[at - 1]]
        self._starts = [self._starts[at] for at in kept]
        self._usage = [self._usage[at] for at in kept]


def _pages(driver: Driver, address: int, size: int) -> tuple[Advice, int, int]:
    """The advice for an allocation, and the pages of it that a range touches; CUDA_ERROR_INVALID_VALUE."""
    if size <= 0:
        raise invalid_value(f"a range of {size} bytes")
    allocation = driver.memory.require(address, size)
    if allocation.kind is not MemoryKind.MANAGED:
        raise invalid_value(f"{address:#x} is not managed memory")
    if allocation.advice is None:
        allocation.advice = Advice()
    start = allocation.address // PAGE
    return allocation.advice, address // PAGE - start, -(-(address + size) // PAGE) - start


def advise(driver: Driver, address: int, size: int, advice: int, location: Location) -> None:
    """cuMemAdvise. CUDA_ERROR_INVALID_VALUE for memory that is not managed, or unknown advice."""
    found, first, end = _pages(driver, address, size)
    if advice in (_ADVICE["SET_READ_MOSTLY"], _ADVICE["UNSET_READ_MOSTLY"]):
        found.change(first, end, read_mostly=advice == _ADVICE["SET_READ_MOSTLY"])
    elif advice == _ADVICE["SET_PREFERRED_LOCATION"]:
        found.change(first, end, preferred=location)
    elif advice == _ADVICE["UNSET_PREFERRED_LOCATION"]:
        found.change(first, end, preferred=None)
    elif advice in (_ADVICE["SET_ACCESSED_BY"], _ADVICE["UNSET_ACCESSED_BY"]):
        found.access(first, end, location, advice == _ADVICE["SET_ACCESSED_BY"])
    else:
        raise invalid_value(f"no advice {advice}")


def prefetch(driver: Driver, address: int, size: int, location: Location) -> None:
    """cuMemPrefetchAsync: the memory is where every processor reaches it; only what was asked for is remembered."""
    found, first, end = _pages(driver, address, size)
    found.change(first, end, prefetched=location)


def usage(driver: Driver, address: int, size: int) -> Usage:
    """cuMemRangeGetAttribute: what holds for all pages of a range."""
    found, first, end = _pages(driver, address, size)
    return found.common(first, end)
