"""Random programs on the device against the interpreter."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import interpreter
import numpy as np
import programs
import rig

import zluda

INTERESTING = [
    0,
    1,
    2,
    31,
    32,
    0xFFFFFFFF,
    0x7FFFFFFF,
    0x80000000,
    0x3F800000,
    0x7F800000,
    0xFF800000,
    1 << 16,
    0xC0000000,
]


def material(count: int, seed: int) -> bytes:
    """32 bytes a thread; floats of moderate size, special ones among them, no signalling NaN."""
    rng = random.Random(seed)
    words = []
    for i in range(count * 8):
        word = rng.choice(INTERESTING) if rng.random() < 0.3 else rng.getrandbits(rng.choice([4, 8, 16, 32, 32]))
        if i % 8 in (4, 5) and rng.random() < 0.7:
            word = rng.getrandbits(1) << 31 | rng.randint(118, 136) << 23 | rng.getrandbits(23)
        words.append(word)
    return np.array(words, np.uint32).tobytes()


def failures(seeds: Sequence[int], chunk: int = 25, threads: int = 40) -> Iterator[str]:
    """One line for every program that differs: its seed and the first thread. `threads`: of each block, interpreted."""
    for start in range(0, len(seeds), chunk):
        part = seeds[start : start + chunk]
        made = [programs.program(seed, f"k{seed}") for seed in part]
        loaded = rig.gpu().load(rig.HEADER + "".join(text for text, _ in made))
        for seed, (text, block) in zip(part, made, strict=True):
            count = block + 5 if block < 100 else block  # two blocks of small ones
            data = material(count, seed)
            try:
                function = loaded.function(f"k{seed}")
            except zluda.CudaError as error:
                yield f"seed {seed}: {error}"
                continue
            out = rig.gpu().array(np.zeros(count * 8, np.uint32))
            function.launch(-(-count // block), block, rig.gpu().array(np.frombuffer(data, np.uint32)), out, count)
            got = out.numpy().reshape(count, 8)
            # Threads do not see each other: interpreting the first and the last of them is enough.
            picked = sorted({*range(min(count, threads // 2)), *range(max(0, count - threads // 2), count)})
            want = interpreted(text, f"k{seed}", data, count, block, picked)
            for t in picked:
                if got[t].tolist() != want[t]:
                    yield f"seed {seed}, block {block}, thread {t}: {_hex(got[t].tolist())}, expected {_hex(want[t])}"
                    break


def interpreted(
    text: str, name: str, data: bytes, count: int, block: int, picked: Sequence[int]
) -> dict[int, list[int]]:
    kernel = interpreter.parse(text, name)
    memory = interpreter.Memory()
    source, _ = memory.place(data)
    target, out = memory.place(bytes(count * 32))
    arguments = [source.to_bytes(8, "little"), target.to_bytes(8, "little"), count.to_bytes(4, "little")]
    run = interpreter.Run(kernel, memory, arguments, [-(-count // block)], [block])
    for t in picked:
        run.alone(t)
    return {t: np.frombuffer(bytes(out[32 * t : 32 * t + 32]), np.uint32).tolist() for t in picked}


def _hex(words: Sequence[int]) -> str:
    return " ".join(f"{w:08x}" for w in words)
