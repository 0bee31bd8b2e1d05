"""Memory pools: stream-ordered allocation (CUDA driver API, "Stream Ordered Memory Allocator").

A pool keeps memory that was freed, one block per allocation. A freed block is free at a point in the order of the
stream that freed it: the same stream takes it again at once, another one when that point has been reached, or, where
no other memory is left, by waiting for it.
"""

from __future__ import annotations

import weakref
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from zluda.backend.seam import BackendError
from zluda.core.errors import CudaError, from_backend, invalid_value
from zluda.core.memory import Allocation, MemoryKind
from zluda.core.wait import Point, Wait

if TYPE_CHECKING:
    from zluda.core.context import Context
    from zluda.core.device import CudaDevice
    from zluda.core.stream import Stream

GRANULE = 512
"""Blocks are multiples of this, bytes."""
WASTE = 4
"""A block is taken for a smaller allocation if no more than one part in so many of it stays unused."""


class _Block:
    """Memory of a pool: in use, or free behind `points`."""

    __slots__ = ("backing", "points", "stream")

    def __init__(self, backing: Allocation) -> None:
        self.backing = backing
        self.points: Sequence[Point] = ()
        self.stream: weakref.ref[Stream] | None = None
        """The stream that freed it, and needs no waiting."""

    @property
    def size(self) -> int:
        return self.backing.size

    def idle(self) -> bool:
        """Whether nothing uses it any more."""
        if self.points and all(map(_over, self.points)):
            self.points = ()
        return not self.points


class MemoryPool:
    """A CUmemoryPool: memory of one kind, on one device; host and managed memory count with the device too.

    All methods may be called from any thread.
    """

    def __init__(self, device: CudaDevice, kind: MemoryKind = MemoryKind.DEVICE, max_size: int = 0) -> None:
        """`max_size` bytes at most; 0 for no limit but the device's.

        CUDA_ERROR_NOT_SUPPORTED for managed memory where the device does not reach the window.
        """
        if kind is MemoryKind.MANAGED:
            device.require_managed()
        self.device = device
        self.kind = kind
        self.max_size = -(-max_size // GRANULE) * GRANULE
        self.release_threshold = 0
        """CU_MEMPOOL_ATTR_RELEASE_THRESHOLD: bytes; what is kept beyond it goes when a program synchronizes."""
        self.follow_events = True
        """CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES: a permission that is not made use of."""
        self.opportunistic = True
        """CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC: take what other streams freed, once they are there."""
        self.internal_dependencies = True
        """CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES: let a stream wait for another rather than fail."""
        self.reserved = self.reserved_high = 0
        """Bytes taken from the device, and the most there have been since the mark was reset."""
        self.used = self.used_high = 0
        """Bytes in allocations, likewise."""
        self.destroyed = False
        self._live: dict[int, _Block] = {}
        self._free: dict[int, deque[_Block]] = {}
        self._sizes: list[int] = []
        device.pools.add(self)

    # --- allocating -------------------------------------------------------------------------------------

    def allocate(self, size: int, stream: Stream, *, patient: bool = True) -> int:
        """cuMemAllocFromPoolAsync: the address of `size` bytes, which work of `stream` from here on may use.

        CUDA_ERROR_INVALID_VALUE for size 0 or a destroyed pool; CUDA_ERROR_OUT_OF_MEMORY. Where memory is short, a
        patient call waits for what is being freed.
        """
        stream._check()
        if size <= 0:
            raise invalid_value(f"an allocation of {size} bytes")
        try:
            return self._allocate(size, stream)
        except CudaError as error:
            if error.name != "CUDA_ERROR_OUT_OF_MEMORY" or not patient:
                raise
        self.device.pools.await_frees()
        return self._allocate(size, stream)

    def _allocate(self, size: int, stream: Stream) -> int:
        rounded = -(-size // GRANULE) * GRANULE
        device = self.device
        with device.lock:
            if self.destroyed:
                raise invalid_value("the memory pool was destroyed")
            block = self._reuse(rounded, stream) or self._grow(rounded, stream)
            address = block.backing.address
            allocation = Allocation(address, size, self.kind, device.primary, pool=self)
            device.driver.memory.add(allocation)
            self._live[address] = block
            self.used += block.size
            self.used_high = max(self.used_high, self.used)
        return address

    def _candidates(self, size: int) -> Iterator[_Block]:
        """Free blocks that fit, the smallest first."""
        for at in range(bisect_left(self._sizes, size), len(self._sizes)):
            if self._sizes[at] - size > self._sizes[at] // WASTE:
                return
            yield from self._free[self._sizes[at]]

    def _reuse(self, size: int, stream: Stream) -> _Block | None:
        found = None
        for block in self._candidates(size):
            if block.stream is not None and block.stream() is stream:
                found = block
                break
            if found is None and self.opportunistic and block.idle():
                found = block
        return found and self._take(found)

    def _grow(self, size: int, stream: Stream) -> _Block:
        """A new block; where there is no room for one, after giving back what is kept, or one that gets free."""
        try:
            return self._reserve(size)
        except CudaError as error:
            if error.name != "CUDA_ERROR_OUT_OF_MEMORY":
                raise
            self.device.pools.release_unused()
            try:
                return self._reserve(size)
            except CudaError:
                block = self._wait_for_another(size, stream)
                if block is None:
                    raise
                return block

    def _reserve(self, size: int) -> _Block:
        if self.max_size and self.reserved + size > self.max_size:
            message = f"{size} bytes more than the {self.reserved} of {self.max_size} that the pool may have"
            raise CudaError("CUDA_ERROR_OUT_OF_MEMORY", message)
        address = self.device.memory.allocate_kind(size, self.kind)
        self.reserved += size
        self.reserved_high = max(self.reserved_high, self.reserved)
        return _Block(Allocation(address, size, self.kind, self.device.primary))

    def _wait_for_another(self, size: int, stream: Stream) -> _Block | None:
        """Let `stream` wait for a block that another stream of the device is about to free."""
        if not self.internal_dependencies or stream.context.device is not self.device:
            return None
        for block in self._candidates(size):
            if block.stream is not None and all(point.context.device is self.device for point in block.points):
                freeing = block.stream()
                if freeing is not None and not freeing.destroyed:
                    freeing.flush()
                queue = stream.enter()
                for point in block.points:
                    try:
                        queue.wait(point.marker)
                    except BackendError as error:
                        raise stream.context.fail(from_backend(error)) from error
                return self._take(block)
        return None

    def _take(self, block: _Block) -> _Block:
        line = self._free[block.size]
        line.remove(block)
        if not line:
            del self._free[block.size]
            del self._sizes[bisect_left(self._sizes, block.size)]
        return block

    # --- freeing ----------------------------------------------------------------------------------------

    def free(self, allocation: Allocation, stream: Stream) -> None:
        """cuMemFreeAsync: the address is invalid at once, the memory is free behind the work in `stream`.

        In a context that is ruined it is freed as well, and the error raised: the memory is not the context's.
        """
        try:
            point = stream.mark()
        except CudaError:
            self.free_wait(allocation, stream.context)
            raise
        self._put_back(allocation, [point], stream)

    def free_wait(self, allocation: Allocation, context: Context) -> Wait:
        """cuMemFree of memory of a pool: free behind all work of the device."""
        points = [point for other in list(self.device.contexts) for point in other._points()]
        self._put_back(allocation, points, None)
        return Wait(context, points, quiet=True)

    def _put_back(self, allocation: Allocation, points: Sequence[Point], stream: Stream | None) -> None:
        with self.device.lock:
            if self.device.driver.memory.at(allocation.address) is not allocation:
                raise invalid_value(f"{allocation.address:#x} was freed already")
            self.device.driver.memory.remove(allocation)
            block = self._live.pop(allocation.address)
            block.points = points
            block.stream = weakref.ref(stream) if stream is not None else None
            self.used -= block.size
            if block.size not in self._free:
                self._free[block.size] = deque()
                insort(self._sizes, block.size)
            self._free[block.size].append(block)
            if self.destroyed:
                self.trim()

    def trim(self, keep: int = 0) -> None:
        """cuMemPoolTrimTo: give back what is not used, as long as `keep` bytes stay reserved."""
        with self.device.lock:
            for block in self._idle():
                if self.reserved - block.size >= keep:
                    self._give_back(block)
            self.device.pools.forget_drained(self)

    def settle(self) -> None:
        """The program has synchronized: what is reserved beyond the release threshold is given back."""
        with self.device.lock:
            for block in self._idle():
                if self.reserved <= self.release_threshold and not self.destroyed:
                    break
                self._give_back(block)
            self.device.pools.forget_drained(self)

    def _idle(self) -> list[_Block]:
        return [block for line in self._free.values() for block in line if block.idle()]

    def _give_back(self, block: _Block) -> None:
        self._take(block)
        self.reserved -= block.size
        self.device.memory.free(block.backing)

    @property
    def unsettled(self) -> bool:
        """Whether `settle` may have something to do."""
        return bool(self._sizes) and (self.destroyed or self.reserved > self.release_threshold)

    @property
    def drained(self) -> bool:
        """A destroyed pool of which nothing is left."""
        return self.destroyed and not self.reserved

    def pending(self) -> list[Point]:
        """What its free blocks wait for."""
        with self.device.lock:
            return [point for line in self._free.values() for block in line for point in block.points]

    def reset_reserved_high(self) -> None:
        """CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH set to 0: the mark counts anew."""
        self.reserved_high = self.reserved

    def reset_used_high(self) -> None:
        """CU_MEMPOOL_ATTR_USED_MEM_HIGH set to 0: the mark counts anew."""
        self.used_high = self.used

    def destroy(self) -> None:
        """cuMemPoolDestroy: no allocations any more; the memory goes when the last one has been freed.

        CUDA_ERROR_INVALID_VALUE for a device's default pool, or one destroyed already.
        """
        with self.device.lock:
            if self.destroyed or self is self.device.pools.default:
                raise invalid_value("the memory pool is a device's default, or was destroyed")
            self.destroyed = True
            self.device.pools.forget_current(self)
            self.trim()

    def close(self) -> None:
        """The device is being closed: everything goes, in use or not. The device's lock is held."""
        self.destroyed = True
        for address in self._live:
            allocation = self.device.driver.memory.at(address)
            if allocation is not None:
                self.device.driver.memory.remove(allocation)
        for block in (*self._live.values(), *(b for line in self._free.values() for b in line)):
            self.device.memory.free(block.backing)
        self._live.clear()
        self._free.clear()
        self._sizes.clear()


class DevicePools:
    """The memory pools of a device: its default, the one that cuMemAllocAsync takes, and those created."""

    def __init__(self, device: CudaDevice) -> None:
        self._device = device
        self._pools: list[MemoryPool] = []
        self._default: MemoryPool | None = None
        self._current: MemoryPool | None = None
        self._frees: list[Wait] = []

    @property
    def default(self) -> MemoryPool:
        """cuDeviceGetDefaultMemPool."""
        with self._device.lock:
            if self._default is None:
                self._default = MemoryPool(self._device)
            return self._default

    @property
    def current(self) -> MemoryPool:
        """cuDeviceGetMemPool."""
        return self._current or self.default

    def add(self, pool: MemoryPool) -> None:
        """A pool was created."""
        self._pools.append(pool)

    def forget_drained(self, pool: MemoryPool) -> None:
        """Let go of a destroyed pool of which nothing is left. The device's lock is held."""
        if pool.drained and pool in self._pools:
            self._pools.remove(pool)

    def set_current(self, pool: MemoryPool) -> None:
        """cuDeviceSetMemPool. CUDA_ERROR_INVALID_VALUE for a pool of another device or kind."""
        if pool.device is not self._device or pool.kind is not MemoryKind.DEVICE or pool.destroyed:
            raise invalid_value("not a memory pool of this device's memory")
        self._current = pool

    def forget_current(self, pool: MemoryPool) -> None:
        """A pool is being destroyed: the default one takes its place."""
        if self._current is pool:
            self._current = None

    @property
    def unsettled(self) -> bool:
        """Whether `settle` may have something to do."""
        return bool(self._frees) or any(pool.unsettled for pool in self._pools)

    def await_later(self, free: Wait) -> None:
        """Memory of no pool was freed in a stream's order: look after it when the program synchronizes."""
        if not free.done():
            self._frees.append(free)

    def settle(self) -> None:
        """The program has synchronized."""
        self._frees = [free for free in self._frees if not free.done()]
        for pool in [*self._pools]:
            if pool.unsettled:
                pool.settle()

    def release_unused(self) -> None:
        """Memory is short: give back all that is kept."""
        for pool in [*self._pools]:
            pool.trim()

    def await_frees(self) -> None:
        """Memory is short: wait for what is being freed, and give it back. Called without locks."""
        for context in list(self._device.contexts):
            context.await_frees()
        for pool in [*self._pools]:
            Wait(self._device.primary, pool.pending(), quiet=True).block()
        self.release_unused()

    def close(self) -> None:
        """The device is being closed. The device's lock is held."""
        for pool in [*self._pools]:
            pool.close()
        self._pools.clear()


def settled(wait: Wait) -> Wait:
    """A wait that a program synchronizes with: pools give back what they keep beyond their release thresholds."""
    pools = wait.context.device.pools
    return wait.then(pools.settle) if pools.unsettled else wait


def _over(point: Point) -> bool:
    """Whether a point is reached or never will be; its error has been told to the context."""
    try:
        return point.reached()
    except CudaError:
        return True
