"""The structure of PTX: scopes, guards, flow, parameters, calls and addresses, in kernels written by hand.

Each kernel stores one u32 a thread; `%t` is the thread's number and `%o` the address of its word.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import lower_rig as rig
import numpy as np
import pytest

THREADS = 16
M32 = 0xFFFFFFFF


@dataclass(frozen=True)
class Case:
    body: str
    expect: Callable[[int], int]
    before: str = ""
    """What stands in front of the kernel: functions and variables."""


CASES: dict[str, Case] = {}


def case(name: str, expect: Callable[[int], int], body: str, before: str = "") -> None:
    CASES[name] = Case(body, expect, before)


# --- names and scopes -----------------------------------------------------------------------------------

case(
    "inner registers hide outer ones",
    lambda t: t + 1 + 100,
    """
    .reg .u32 a, b;
    mov.u32 a, %t; mov.u32 b, 100;
    { .reg .u32 a; mov.u32 a, 55; { .reg .u32 a; mov.u32 a, 66; } mov.u32 b, a; }
    { .reg .u32 a; mov.u32 a, 1; add.u32 b, a, 100; }
    add.u32 a, a, b; st.global.u32 [%o], a;""",
)
case(
    "inner families hide outer ones",
    lambda t: 7 + t,
    """
    .reg .u32 %r<4>;
    mov.u32 %r1, 7; mov.u32 %r3, %t;
    { .reg .u32 %r<2>; mov.u32 %r1, 9; add.u32 %r1, %r1, %r3; }
    add.u32 %r1, %r1, %r3; st.global.u32 [%o], %r1;""",
)
case(
    "the same label in two scopes",
    lambda t: (10 if t & 1 else 20) + (1 if t & 2 else 2),
    """
    .reg .u32 a, b; .reg .pred p;
    and.b32 a, %t, 1; setp.ne.u32 p, a, 0; mov.u32 b, 20;
    { @!p bra L; mov.u32 b, 10; L: }
    and.b32 a, %t, 2; setp.ne.u32 p, a, 0;
    { @p bra L; add.u32 b, b, 1; L: add.u32 b, b, 1; }
    st.global.u32 [%o], b;""",
)

# --- guards ---------------------------------------------------------------------------------------------

case(
    "guarded arithmetic keeps the old value",
    lambda t: t * 3 if t < 5 else t,
    """
    .reg .u32 a; .reg .pred p;
    setp.lt.u32 p, %t, 5; mov.u32 a, %t; @p mul.lo.u32 a, a, 3; st.global.u32 [%o], a;""",
)
case(
    "both senses of a guard",
    lambda t: 1 if t < 5 else 2,
    """
    .reg .u32 a; .reg .pred p;
    setp.lt.u32 p, %t, 5; @p mov.u32 a, 1; @!p mov.u32 a, 2; st.global.u32 [%o], a;""",
)
case(
    "guarded stores and loads",
    lambda t: 50 + t if t & 1 else 9,
    """
    .reg .u32 a; .reg .pred p; .reg .u64 nowhere;
    and.b32 a, %t, 1; setp.eq.u32 p, a, 1; mov.u64 nowhere, 8;
    @!p mov.u64 nowhere, %o; @!p st.global.u32 [nowhere], 9; @p add.u32 a, %t, 50; @p st.global.u32 [%o], a;
    @!p ld.global.u32 a, [nowhere]; st.global.u32 [%o], a;""",
)
case(
    "guarded return",
    lambda t: 5 if t < 4 else 6,
    ".reg .pred p; setp.lt.u32 p, %t, 4; st.global.u32 [%o], 5; @p ret; st.global.u32 [%o], 6; ret;",
)
case(
    "guarded exit",
    lambda t: 5 if t < 4 else 6,
    ".reg .pred p; setp.lt.u32 p, %t, 4; st.global.u32 [%o], 5; @p exit; st.global.u32 [%o], 6; exit;",
)
case(
    "a predicate written under itself",
    lambda t: 3 if t > 8 else 4,
    """
    .reg .pred p; .reg .u32 a;
    setp.gt.u32 p, %t, 4; @p setp.gt.u32 p, %t, 8; mov.u32 a, 4; @p mov.u32 a, 3; st.global.u32 [%o], a;""",
)

# --- flow -----------------------------------------------------------------------------------------------

case(
    "brx.idx",
    lambda t: [11, 22, 33, 22][t & 3],
    """
    .reg .u32 a, v;
    table: .branchtargets A, B, C, B;
    and.b32 a, %t, 3; brx.idx a, table;
    A: mov.u32 v, 11; bra END;
    B: mov.u32 v, 22; bra END;
    C: mov.u32 v, 33;
    END: st.global.u32 [%o], v;""",
)
case(
    "a loop entered in its middle",
    lambda t: sum(range(t, 20, 2)) + (1000 if t & 1 else 0),
    """
    .reg .u32 i, s, a; .reg .pred p;
    mov.u32 i, %t; mov.u32 s, 0; and.b32 a, %t, 1; setp.eq.u32 p, a, 0; @p bra B;
    A0: add.u32 s, s, 1000; bra B;
    A: setp.ge.u32 p, i, 20; @p bra END;
    B: setp.ge.u32 p, i, 20; @p bra END; add.u32 s, s, i; add.u32 i, i, 2; bra A;
    END: st.global.u32 [%o], s;""",
)
case(
    "irreducible flow",
    lambda t: irreducible(t),
    """
    .reg .u32 n, x, a; .reg .pred p;
    mov.u32 n, 0; mov.u32 x, %t; and.b32 a, %t, 1; setp.eq.u32 p, a, 0; @p bra Y;
    X: add.u32 x, x, 3; add.u32 n, n, 1; setp.gt.u32 p, n, 6; @p bra END; bra Y;
    Y: mul.lo.u32 x, x, 2; add.u32 n, n, 1; setp.gt.u32 p, n, 5; @p bra END; and.b32 a, x, 4; setp.eq.u32 p, a, 0;
    @p bra Y; bra X;
    END: st.global.u32 [%o], x;""",
)
case(
    "code that is never reached",
    lambda t: t,
    """
    .reg .u32 a; mov.u32 a, %t; bra END;
    DEAD: add.u32 a, a, undefined; bra DEAD2; DEAD2: bra DEAD;
    END: st.global.u32 [%o], a; ret; mov.u32 a, 3; st.global.u32 [%o], a;""".replace("undefined", "a"),
)
case(
    "a label at the end",
    lambda t: 1 if t < 3 else 77,
    ".reg .pred p; setp.ge.u32 p, %t, 3; @p bra END; st.global.u32 [%o], 1; END:",
)
case(
    "a branch backwards to the first instruction",
    lambda t: 12 + t,
    """
    START: { .reg .pred q; setp.ne.u32 q, again, 0; @q bra GO; mov.u32 count, 0; }
    GO: mov.u32 again, 1; add.u32 count, count, 4; .reg .pred p; setp.lt.u32 p, count, 12; @p bra START;
    add.u32 count, count, %t; st.global.u32 [%o], count;""",
)
case(
    "swapping in a loop",
    lambda t: fibonacci(12) + t,
    """
    .reg .u32 a, b, c, i; .reg .pred p;
    mov.u32 a, 0; mov.u32 b, 1; mov.u32 i, 0;
    L: setp.ge.u32 p, i, 12; @p bra END; add.u32 c, a, b; mov.u32 a, b; mov.u32 b, c; add.u32 i, i, 1; bra L;
    END: add.u32 a, a, %t; st.global.u32 [%o], a;""",
)

# --- moves ----------------------------------------------------------------------------------------------

case(
    "packing and unpacking",
    lambda t: ((t + 1) << 16 | t) ^ 0x00FF0000,
    """
    .reg .b16 h<4>; .reg .b32 a, b; .reg .b64 w; .reg .u32 x;
    cvt.u16.u32 h0, %t; add.u16 h1, h0, 1; mov.b32 a, {h0, h1}; mov.b64 w, {a, 16711680}; mov.b64 {x, b}, w;
    mov.b32 {_, h2}, a; mov.b32 {h3, _}, a; mov.b32 a, {h3, h2}; xor.b32 a, a, b; st.global.u32 [%o], a;""",
)
case(
    "float bits in untyped registers",
    lambda t: int(np.float32(t * 1.5 + 2.0).view(np.uint32)),
    """
    .reg .b32 a; .reg .f32 f;
    cvt.rn.f32.u32 f, %t; mov.b32 a, f; mul.f32 a, a, 0f3FC00000; mov.f32 f, a; add.f32 f, f, 2.0;
    st.global.b32 [%o], f;""",
)
case(
    "floats in a slot of integers",
    lambda t: int(np.float32(t).view(np.uint32)) if t > 3 else 7,
    """
    .reg .b32 a; .reg .pred p; .reg .f32 f;
    cvt.rn.f32.u32 f, %t; mov.b32 a, 7; setp.gt.u32 p, %t, 3; @!p bra END; mov.f32 a, f;
    END: st.global.b32 [%o], a;""",
)

# --- calls ----------------------------------------------------------------------------------------------

TWO_RESULTS = """
.func (.param .u32 sum, .param .b64 product) both(.param .u32 a, .param .u32 b)
{ .reg .u32 x, y, z; .reg .u64 w; ld.param.u32 x, [a]; ld.param.u32 y, [b]; add.u32 z, x, y; st.param.u32 [sum], z;
  mul.wide.u32 w, x, y; st.param.u64 [product], w; ret; }
"""
case(
    "two results",
    lambda t: (t + 5) * 1000 + t * 5,
    """
    .reg .u32 a, b; .reg .u64 w;
    { .param .u32 p; .param .u32 q; .param .u32 s; .param .b64 m; st.param.u32 [p], %t; st.param.u32 [q], 5;
    call (s, m), both, (p, q); ld.param.u32 a, [s]; ld.param.u64 w, [m]; }
    cvt.u32.u64 b, w; mad.lo.u32 a, a, 1000, b; st.global.u32 [%o], a;""",
    TWO_RESULTS,
)
case(
    "parameters in registers",
    lambda t: t * 2 + 9,
    ".reg .u32 a; call (a), twice, (%t, 9); st.global.u32 [%o], a;",
    """.func (.reg .u32 r) twice(.reg .u32 a, .reg .u32 b) { add.u32 r, a, a; add.u32 r, r, b; }
    """,
)
case(
    "an aggregate there and back",
    lambda t: t + 3 * 100 + 2 * 10000,
    """
    .reg .u32 a, b, c;
    { .param .align 4 .b8 in[12]; .param .align 4 .b8 out[12]; st.param.v2.u32 [in], {%t, 2}; st.param.u32 [in+8], 3;
    call (out), turned, (in); ld.param.u32 a, [out]; ld.param.u32 b, [out+4]; ld.param.u32 c, [out+8]; }
    mad.lo.u32 b, b, 100, a; mad.lo.u32 b, c, 10000, b; st.global.u32 [%o], b;""",
    """.func (.param .align 4 .b8 r[12]) turned(.param .align 4 .b8 a[12])
    { .reg .u32 x; ld.param.u32 x, [a]; st.param.u32 [r], x; ld.param.u32 x, [a+8]; st.param.u32 [r+4], x;
      ld.param.u32 x, [a+4]; st.param.u32 [r+8], x; ret; }
    """,
)
case(
    "parts of a scalar parameter",
    lambda t: (t + 256 * 7) + 3,
    """
    .reg .u32 a; .reg .u16 h;
    { .param .b32 p; .param .b32 s; cvt.u16.u32 h, %t; st.param.b8 [p], h; st.param.b8 [p+1], 7; st.param.b16 [p+2], 0;
    call (s), parts, (p); ld.param.u32 a, [s]; } st.global.u32 [%o], a;""",
    """.func (.param .b32 r) parts(.param .b32 a)
    { .reg .u32 x, y; ld.param.u16 x, [a]; ld.param.u8 y, [a+2]; add.u32 x, x, y; add.u32 x, x, 3;
      st.param.b32 [r], x; ret; }
    """,
)
case(
    "a function that ends the thread",
    lambda t: 77 if t == 3 else t,
    """
    .reg .u32 a;
    { .param .b32 p; .param .b32 s; st.param.b32 [p], %t; call (s), outer, (p); ld.param.b32 a, [s]; }
    st.global.u32 [%o], a;""",
    """.func (.param .b32 r) inner(.param .b32 a)
    { .reg .u32 x; .reg .pred p; ld.param.u32 x, [a]; setp.eq.u32 p, x, 3; @p exit; st.param.b32 [r], x; ret; }
    .func (.param .b32 r) outer(.param .b32 a)
    { .reg .u32 x; ld.param.u32 x, [a]; { .param .b32 p; .param .b32 s; st.param.b32 [p], x; call (s), inner, (p);
      ld.param.b32 x, [s]; } st.param.b32 [r], x; ret; }
    """,
)
case(
    "a guarded call",
    lambda t: t * 2 + 1 if t > 7 else 0,
    """
    .reg .u32 a; .reg .pred p; mov.u32 a, 0; setp.gt.u32 p, %t, 7; @p call (a), twice1, (%t); st.global.u32 [%o], a;""",
    ".func (.reg .u32 r) twice1(.reg .u32 a) { mad.lo.u32 r, a, 2, 1; }\n",
)
case(
    "address of a parameter inside a function",
    lambda t: [5, 6, 7, 8][t & 3],
    """
    .reg .u32 a;
    { .param .align 16 .b8 in[16]; .param .b32 i; .param .b32 s; st.param.v4.u32 [in], {5, 6, 7, 8};
    st.param.b32 [i], %t; call (s), picked, (in, i); ld.param.b32 a, [s]; } st.global.u32 [%o], a;""",
    """.func (.param .b32 r) picked(.param .align 16 .b8 a[16], .param .b32 i)
    { .reg .u32 x; .reg .u64 w, z; ld.param.u32 x, [i]; and.b32 x, x, 3; mul.wide.u32 w, x, 4; mov.b64 z, a;
      add.u64 z, z, w; ld.param.u32 x, [z]; st.param.b32 [r], x; ret; }
    """,
)
case(
    "an alias",
    lambda t: t + 1,
    """
    .reg .u32 a; { .param .b32 p; .param .b32 s; st.param.b32 [p], %t; call (s), other_name, (p); ld.param.b32 a, [s]; }
    st.global.u32 [%o], a;""",
    """.visible .func (.param .b32 r) one_name(.param .b32 a)
    { .reg .u32 x; ld.param.u32 x, [a]; add.u32 x, x, 1; st.param.b32 [r], x; ret; }
    .visible .func (.param .b32 r) other_name(.param .b32 a);
    .alias other_name, one_name;
    """,
)

# --- addresses ------------------------------------------------------------------------------------------

case(
    "shared memory by name and by number",
    lambda t: (15 - t) * 3 + 40,
    """
    .reg .u32 a, b; .shared .align 4 .b8 pad[12]; .shared .u32 words[16];
    mov.u32 a, words; mul.lo.u32 b, %t, 4; add.u32 a, a, b; mul.lo.u32 b, %t, 3; st.shared.u32 [a], b;
    st.shared.u32 [pad+4], 40; bar.sync 0;
    sub.u32 b, 15, %t; shl.b32 b, b, 2; mov.u32 a, words; add.u32 a, a, b; ld.shared.u32 a, [a];
    mov.u32 b, pad; ld.shared.u32 b, [b+4]; add.u32 a, a, b; st.global.u32 [%o], a;""",
)
case(
    "shared addresses that start below the block",
    lambda t: (t + 1) % 16,
    """
    .reg .u32 a, b; .shared .u32 ring[20];
    mov.u32 a, ring; mad.lo.u32 a, %t, 4, a; st.shared.u32 [a+16], %t; bar.sync 0;
    add.u32 b, %t, 1; and.b32 b, b, 15; shl.b32 b, b, 2; mov.u32 a, ring; add.u32 a, a, b; sub.u32 a, a, 1048576;
    ld.shared.u32 a, [a+1048592]; st.global.u32 [%o], a;""",
)
case(
    "high bits of an index that the address loses",
    lambda t: t * 5,
    """
    .reg .u32 a, b; .shared .u32 lost[16];
    mov.u32 a, lost; mad.lo.u32 a, %t, 4, a; mul.lo.u32 b, %t, 5; st.shared.u32 [a], b; bar.sync 0;
    ld.global.u32 b, [%o]; or.b32 b, %t, -1073741824; shl.b32 b, b, 2; mov.u32 a, lost; add.u32 a, a, b;
    ld.shared.u32 a, [a]; st.global.u32 [%o], a;""",
)
case(
    "generic addresses of shared memory that pass through numbers",
    lambda t: t + 100 + (t ^ 1),
    """
    .reg .u32 a, b; .reg .u64 g, h; .shared .u64 cells[16]; .shared .u32 vals[16];
    mov.u64 g, vals; cvta.shared.u64 g, g; mul.wide.u32 h, %t, 4; add.u64 g, g, h; add.u32 a, %t, 100; st.u32 [g], a;
    mov.u32 b, cells; mad.lo.u32 b, %t, 8, b; st.shared.u64 [b], g; bar.sync 0;
    xor.b32 a, %t, 1; mov.u32 b, cells; mad.lo.u32 b, a, 8, b; ld.shared.u64 h, [b]; ld.u32 a, [h];
    cvta.to.shared.u64 h, h; cvt.u32.u64 b, h; ld.shared.u32 b, [b]; sub.u32 b, b, a; add.u32 a, a, b;
    xor.b32 b, %t, 1; sub.u32 a, a, b; add.u32 a, a, b; add.u32 a, a, %t; st.global.u32 [%o], a;""",
)
case(
    "a pointer that is now shared, now global",
    lambda t: 4 if t & 1 else 9,
    """
    .reg .u32 a; .reg .u64 g, h; .reg .pred p; .shared .u32 cell;
    st.shared.u32 [cell], 4; bar.sync 0; mov.u64 g, cell; cvta.shared.u64 g, g; mov.u64 h, nine; cvta.global.u64 h, h;
    and.b32 a, %t, 1; setp.eq.u32 p, a, 1; selp.b64 g, g, h, p; ld.u32 a, [g]; st.global.u32 [%o], a;""",
    ".global .u32 nine = 9;\n",
)
case(
    "a null pointer",
    lambda t: 1 if t & 1 else 9,
    """
    .reg .u32 a; .reg .u64 g; .reg .pred p; .shared .u32 start;
    st.shared.u32 [start], 9; bar.sync 0; and.b32 a, %t, 1; setp.eq.u32 p, a, 1; mov.u64 g, 0; @p bra L;
    mov.u64 g, start; cvta.shared.u64 g, g; L: setp.eq.u64 p, g, 0; mov.u32 a, 1; @!p ld.u32 a, [g];
    st.global.u32 [%o], a;""",
)
case(
    "local arrays",
    lambda t: t * t + 3,
    """
    .reg .u32 a, b, i; .reg .u64 w, z; .reg .pred p; .local .align 8 .b8 store[64];
    mov.u64 w, store; cvta.local.u64 w, w; mov.u32 i, 0;
    L: mul.wide.u32 z, i, 4; add.u64 z, w, z; mul.lo.u32 a, i, i; st.u32 [z], a; add.u32 i, i, 1;
    setp.lt.u32 p, i, 16; @p bra L;
    mul.wide.u32 z, %t, 4; mov.u64 w, store; add.u64 z, z, w; ld.local.u32 a, [z]; add.u32 a, a, 3;
    st.global.u32 [%o], a;""",
)
case(
    "narrow loads extend by their type",
    lambda t: (-100 + 156 + 200) & M32,
    """
    .reg .s32 a, b; .reg .u32 c;
    ld.global.s8 a, [bytes]; ld.global.u8 b, [bytes]; add.s32 a, a, b; ld.const.u8 c, [bytes2+1]; add.s32 a, a, c;
    st.global.u32 [%o], a;""",
    ".global .b8 bytes[2] = {156, 1};\n.const .align 2 .b8 bytes2[4] = {1, 200, 3, 4};\n",
)
case(
    "arrays with a subscript",
    lambda t: [10, 20, 30, 40][t & 3] + 30,
    """
    .reg .u32 a, b; and.b32 a, %t, 3; ld.global.u32 a, table[a]; ld.global.u32 b, table[2]; add.u32 a, a, b;
    st.global.u32 [%o], a;""",
    ".global .u32 table[4] = {10, 20, 30, 40};\n",
)
case(
    "addresses in initialisers",
    lambda t: 222,
    """
    .reg .u32 a; .reg .u64 p; ld.global.u64 p, [where+8]; ld.u32 a, [p]; st.global.u32 [%o], a;""",
    """.global .u32 pair[2] = {111, 222};
    .global .u64 where[2] = {0, generic(pair)+4};
    """,
)
case(
    "vectors of eight",
    lambda t: 36 * (t + 1),
    """
    .reg .u32 a<9>; .reg .u64 w; .local .align 32 .b8 eight[32]; mov.u64 w, eight; add.u32 a8, %t, 1;
    mul.lo.u32 a0, a8, 1; mul.lo.u32 a1, a8, 2; mul.lo.u32 a2, a8, 3; mul.lo.u32 a3, a8, 4;
    mul.lo.u32 a4, a8, 5; mul.lo.u32 a5, a8, 6; mul.lo.u32 a6, a8, 7; mul.lo.u32 a7, a8, 8;
    st.local.v4.b32 [w], {a0, a1, a2, a3}; st.local.v4.b32 [w+16], {a4, a5, a6, a7};
    ld.local.v8.b32 {a7, a6, a5, a4, a3, a2, a1, a0}, [w];
    add.u32 a0, a0, a1; add.u32 a0, a0, a2; add.u32 a0, a0, a3; add.u32 a0, a0, a4; add.u32 a0, a0, a5;
    add.u32 a0, a0, a6; add.u32 a0, a0, a7; st.global.u32 [%o], a0;""",
)
case(
    "ordered and volatile accesses",
    lambda t: t + 6,
    """
    .reg .u32 a; .reg .u16 h; st.relaxed.gpu.global.u32 [%o], %t; ld.acquire.gpu.global.u32 a, [%o]; add.u32 a, a, 1;
    st.release.sys.global.u32 [%o], a; ld.volatile.global.u32 a, [%o]; add.u32 a, a, 2; st.volatile.global.u32 [%o], a;
    ld.acquire.cta.global.u16 h, [%o]; add.u16 h, h, 3; cvt.u32.u16 a, h; st.global.u32 [%o], a;""",
)
case(
    "a pointer of which a part is masked away",
    lambda t: 77,
    """
    .reg .u32 a; .reg .u64 w; and.b64 w, %o, -64; ld.global.u32 a, [w]; mov.u32 a, 77; st.global.u32 [%o], a;""",
)
case(
    "hints",
    lambda t: t,
    ".reg .u32 a; prefetch.global.L2 [%o]; prefetchu.L1 [%o]; mov.u32 a, %t; st.global.u32 [%o], a;",
)
case(
    "isspacep where it is known",
    lambda t: 0b101,
    """
    .reg .u32 a, b; .reg .u64 g, h; .reg .pred p; .shared .u32 here; mov.u64 h, here; cvta.shared.u64 g, h;
    isspacep.shared p, g; selp.u32 a, 1, 0, p; isspacep.global p, g; selp.u32 b, 2, 0, p; or.b32 a, a, b;
    isspacep.global p, %o; selp.u32 b, 4, 0, p; or.b32 a, a, b; ld.u32 b, [g]; st.global.u32 [%o], a;""",
)


def irreducible(t: int) -> int:
    n, x, at = 0, t, "X" if t & 1 else "Y"
    while True:
        n += 1
        if at == "X":
            x = (x + 3) & M32
            if n > 6:
                return x
            at = "Y"
        else:
            x = x * 2 & M32
            if n > 5:
                return x
            at = "X" if x & 4 else "Y"


def fibonacci(n: int) -> int:
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


def ptx() -> str:
    parts = [rig.HEADER]
    for number, item in enumerate(CASES.values()):
        extra = ".reg .u32 again, count; mov.u32 again, 0;" if "again" in item.body else ""
        parts.append(
            f"{item.before}.visible .entry k{number}(.param .u64 out)\n{{\n.reg .u64 %o, %z; .reg .u32 %t; {extra}\n"
            "ld.param.u64 %o, [out]; mov.u32 %t, %tid.x; mul.wide.u32 %z, %t, 4; add.u64 %o, %o, %z;\n"
            f"{item.body}\n}}\n"
        )
    return "\n".join(parts)


@pytest.fixture(scope="module")
def module() -> rig.Module:
    return rig.Module(ptx())


@pytest.mark.parametrize("name", CASES)
def test_structure(module: rig.Module, name: str) -> None:
    number = list(CASES).index(name)
    o = rig.poisoned(THREADS, dtype=np.uint32)
    module.launch(f"k{number}", (1,), (THREADS,), [o])
    assert o.tolist() == [CASES[name].expect(t) & M32 for t in range(THREADS)]
