"""How fast PTX is parsed and indexed: lines and megabytes a second, on a module that this script writes.

    python benchmarks/ptx_speed.py [megabytes]

The text is shaped as nvcc writes it: register declarations, loads and stores, arithmetic, guarded branches, vectors,
matrix instructions, calls in blocks, `.loc` lines. Every figure is the best of three runs, in processor time.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from zluda.ptx.index import index_module
from zluda.ptx.parser import parse_module


def kernel(pick: random.Random, number: int, operations: int) -> str:
    """One kernel of about `operations` statements."""
    name = f"_Z{number}kernelPfS_i"
    lines = [
        f"\t// .globl\t{name}",
        f".visible .entry {name}(",
        ",\n".join(f"\t.param .u64 .ptr .align 1 {name}_param_{n}" for n in range(4)),
        ")\n.maxntid 256, 1, 1\n{",
        f"\t.reg .pred \t%p<{operations}>;\n\t.reg .b32 \t%r<{operations}>;",
        f"\t.reg .f32 \t%f<{operations}>;\n\t.reg .b64 \t%rd<{operations}>;\n",
    ]
    label = 0
    for at in range(operations):
        r, f, d, p = (f"%{kind}{pick.randrange(1, operations)}" for kind in ("r", "f", "rd", "p"))
        r2, f2, d2 = f"%r{at}", f"%f{at}", f"%rd{at}"
        choice = pick.randrange(20)
        if choice == 0:
            lines.append(f"\tld.param.u64 \t{d2}, [{name}_param_{pick.randrange(4)}];")
        elif choice < 4:
            lines.append(f"\tld.global.f32 \t{f2}, [{d}+{4 * pick.randrange(64)}];")
        elif choice < 6:
            lines.append(f"\tst.shared.u32 \t[{r}+{4 * pick.randrange(64)}], {r2};")
        elif choice < 9:
            lines.append(f"\tfma.rn.f32 \t{f2}, {f}, 0f{pick.getrandbits(32):08X}, {f2};")
        elif choice < 12:
            lines.append(f"\tmad.lo.s32 \t{r2}, {r}, {pick.randrange(-64, 64)}, {r2};")
        elif choice == 12:
            lines.append(f"\tmul.wide.s32 \t{d2}, {r}, 4;\n\tadd.s64 \t{d2}, {d}, {d2};")
        elif choice == 13:
            lines.append(f"\tsetp.lt.s32 \t{p}, {r}, {r2};\n\t@{p} bra \t$L__BB{number}_{label};")
        elif choice == 14:
            lines.append(f"$L__BB{number}_{label}:")
            label += 1
        elif choice < 17:
            lines.append(f"\t.loc\t1 {pick.randrange(1, 999)} {pick.randrange(1, 80)}")
        elif choice == 17:
            lines.append(f"\tst.global.v4.f32 \t[{d}], {{{f}, {f2}, {f}, {f2}}};")
        elif choice == 18:
            lines.append(
                "\t// begin inline asm\n\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                f"{{{f}, {f2}, {f}, {f2}}}, {{{r}, {r2}, {r}, {r2}}}, {{{r}, {r2}}}, {{{f}, {f2}, {f}, {f2}}};\n"
                "\t// end inline asm"
            )
        else:
            lines.append(
                f"\t{{ // callseq {at}, 0\n\t.param .b64 param0;\n\tst.param.b64 \t[param0], {d};\n"
                f"\tcall.uni \n\thelper, \n\t(\n\tparam0\n\t);\n\t}} // callseq {at}"
            )
    lines.append(f"$L__BB{number}_{label}:\n\tret;\n\n}}\n")
    return "\n".join(lines)


def module(megabytes: float) -> str:
    """A module of about that size."""
    pick = random.Random(1)
    pieces = [
        "//\n// Generated for benchmarks/ptx_speed.py\n//\n\n.version 9.0\n.target sm_90\n.address_size 64\n\n",
        '.file 1 "kernel.cu"\n.visible .func helper(\n\t.param .b64 helper_param_0\n)\n{\n\tret;\n}\n',
        f".global .align 4 .b8 table[4096] = {{{', '.join(str(n % 256) for n in range(4096))}}};\n",
    ]
    size = 0
    while size < megabytes * 1e6:
        pieces.append(kernel(pick, len(pieces), pick.choice((40, 200, 1000, 4000))))
        size += len(pieces[-1])
    return "".join(pieces)


def best(work: Callable[[], object]) -> float:
    """Seconds of processor time, the best of three runs."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def main() -> None:
    megabytes = float(sys.argv[1]) if len(sys.argv) > 1 else 5.0
    text = module(megabytes)
    lines = text.count("\n")
    size = len(text) / 1e6
    print(f"module: {size:.1f} MB, {lines:,} lines, {text.count('.entry'):,} kernels")
    seconds = best(lambda: parse_module(text))
    print(f"parse whole module:  {lines / seconds:10,.0f} lines/s  {size / seconds:7.1f} MB/s")
    seconds = best(lambda: index_module(text))
    print(f"index:               {lines / seconds:10,.0f} lines/s  {size / seconds:7.1f} MB/s")

    def reach() -> None:
        index = index_module(text)
        for name in index.entries:
            index.reachable(name)

    seconds = best(reach)
    print(f"index and reach all: {lines / seconds:10,.0f} lines/s  {size / seconds:7.1f} MB/s")


if __name__ == "__main__":
    main()
