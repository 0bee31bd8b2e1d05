"""Occupancy: how many blocks share a multiprocessor, as far as threads, blocks and shared memory decide it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from zluda.core.errors import invalid_value

if TYPE_CHECKING:
    from zluda.core.device import CudaDevice


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Of one function on one device. Registers are not counted: the seam does not tell them."""

    device: CudaDevice
    max_threads: int
    static_shared: int
    max_dynamic_shared: int

    def max_active_blocks(self, block_size: int, dynamic_shared: int = 0) -> int:
        """cuOccupancyMaxActiveBlocksPerMultiprocessor: 0 if such a block cannot run at all."""
        if block_size <= 0 or dynamic_shared < 0:
            raise invalid_value(f"blocks of {block_size} threads and {dynamic_shared} bytes")
        if block_size > self.max_threads or dynamic_shared > self.max_dynamic_shared:
            return 0
        attribute = self.device.attribute
        warp = attribute("CU_DEVICE_ATTRIBUTE_WARP_SIZE")
        warps = -(-block_size // warp)
        blocks = min(
            attribute("CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR"),
            attribute("CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR") // warp // warps,
        )
        shared = self.static_shared + dynamic_shared
        if shared:
            blocks = min(blocks, attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR") // shared)
        return blocks

    def max_potential_block_size(
        self, dynamic_shared: int | Callable[[int], int] = 0, block_size_limit: int = 0
    ) -> tuple[int, int]:
        """cuOccupancyMaxPotentialBlockSize: (minimum grid size, block size) that fill the device best.

        `dynamic_shared` may be a function of the block size; `block_size_limit` 0 means none.
        """
        limit = min(block_size_limit or self.max_threads, self.max_threads)
        best_threads, best_size, best_blocks = 0, 0, 0
        warp = self.device.attribute("CU_DEVICE_ATTRIBUTE_WARP_SIZE")
        size = -(-limit // warp) * warp
        while size > 0:
            threads = min(size, limit)
            shared = dynamic_shared(threads) if callable(dynamic_shared) else dynamic_shared
            blocks = self.max_active_blocks(threads, shared)
            if blocks * threads > best_threads:
                best_threads, best_size, best_blocks = blocks * threads, threads, blocks
            size -= warp
        return best_blocks * self.device.info.limits.multiprocessors, best_size

    def available_dynamic_shared(self, blocks: int, block_size: int) -> int:
        """cuOccupancyAvailableDynamicSMemPerBlock: the most dynamic shared memory with `blocks` on a multiprocessor."""
        if blocks <= 0 or block_size <= 0 or blocks > self.max_active_blocks(block_size):
            raise invalid_value(f"{blocks} blocks of {block_size} threads do not fit a multiprocessor")
        total = self.device.attribute("CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR")
        return max(0, min(total // blocks - self.static_shared, self.max_dynamic_shared))
