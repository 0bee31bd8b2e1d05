"""Each construct of the lint's table is found in a small piece of real IR; what is allowed has no findings."""

from __future__ import annotations

import pytest

from zluda.compiler import lint
from zluda.compiler.emitter import parsed
from zluda.compiler.errors import CompileError

HEAD = 'target triple = "spirv64-unknown-unknown"\n'


def body(text: str, declarations: str = "", parameters: str = "ptr addrspace(1) %p") -> str:
    lines = "\n".join("  " + line.strip() for line in text.strip().splitlines())
    return f"{HEAD}{declarations}\ndefine spir_kernel void @k({parameters}) {{\n{lines}\n  ret void\n}}\n"


def unary(name: str, type: str = "float", extra: str = "") -> str:
    return body(
        f"""%v = load {type}, ptr addrspace(1) %p
        %r = call {type} @llvm.{name}({type} %v{extra})
        store {type} %r, ptr addrspace(1) %p""",
        f"declare {type} @llvm.{name}({type}{', i32' if extra else ''})",
    )


def binary(name: str, type: str) -> str:
    return body(
        f"""%v = load {type}, ptr addrspace(1) %p
        %r = call {type} @llvm.{name}({type} %v, {type} %v)
        store {type} %r, ptr addrspace(1) %p""",
        f"declare {type} @llvm.{name}({type}, {type})",
    )


def overflow(name: str) -> str:
    return body(
        f"""%v = load i32, ptr addrspace(1) %p
        %r = call {{ i32, i1 }} @llvm.{name}.with.overflow.i32(i32 %v, i32 3)
        %x = extractvalue {{ i32, i1 }} %r, 0
        store i32 %x, ptr addrspace(1) %p""",
        f"declare {{ i32, i1 }} @llvm.{name}.with.overflow.i32(i32, i32)",
    )


TOWARD_ZERO = 'metadata !"round.towardzero", metadata !"fpexcept.ignore"'
SHARED = "@shared = internal addrspace(3) global [64 x i8] undef"

SAMPLES: list[tuple[str, str]] = [
    ("llvm.minimum/maximum", binary("minimum.f32", "float")),
    ("llvm.minimum/maximum", binary("maximum.f64", "double")),
    (
        "constrained floating point",
        body(
            f"""%v = load float, ptr addrspace(1) %p
            %r = call float @llvm.experimental.constrained.fadd.f32(float %v, float %v, {TOWARD_ZERO})
            store float %r, ptr addrspace(1) %p""",
            "declare float @llvm.experimental.constrained.fadd.f32(float, float, metadata, metadata)",
        ),
    ),
    (
        "constrained floating point",
        body(
            """%v = load double, ptr addrspace(1) %p
            %r = call float @llvm.fptrunc.round.f32.f64(double %v, metadata !"round.upward")
            store float %r, ptr addrspace(1) %p""",
            "declare float @llvm.fptrunc.round.f32.f64(double, metadata)",
        ),
    ),
    ("integer type of another width than 1, 8, 16, 32, 64, 128", body("%v = load i24, ptr addrspace(1) %p")),
    ("integer type of another width than 1, 8, 16, 32, 64, 128", body("%w = trunc i64 %v to i33", parameters="i64 %v")),
    (
        "integer type of another width than 1, 8, 16, 32, 64, 128",
        body("%w = add <4 x i7> %v, %v", parameters="<4 x i7> %v"),
    ),
    (
        "llvm.memmove",
        body(
            "call void @llvm.memmove.p1.p1.i64(ptr addrspace(1) %p, ptr addrspace(1) %p, i64 8, i1 false)",
            "declare void @llvm.memmove.p1.p1.i64(ptr addrspace(1), ptr addrspace(1), i64, i1)",
        ),
    ),
    (
        "initialiser of global+offset",
        HEAD
        + "@a = addrspace(1) global [4 x i32] zeroinitializer\n"
        + "@b = addrspace(1) global ptr addrspace(1) getelementptr (i8, ptr addrspace(1) @a, i64 4)\n",
    ),
    (
        "initialiser of global+offset",
        HEAD
        + "@a = addrspace(1) global [4 x i32] zeroinitializer\n"
        + "@b = addrspace(1) global i64 add (i64 ptrtoint (ptr addrspace(1) @a to i64), i64 4)\n",
    ),
    (
        "llvm.fptoui.sat",
        body(
            "%r = call i32 @llvm.fptoui.sat.i32.f32(float %v)",
            "declare i32 @llvm.fptoui.sat.i32.f32(float)",
            "float %v",
        ),
    ),
    (
        "call of a barrier or subgroup operation that is not convergent",
        body("call spir_func void @_Z7barrierj(i32 1)", "declare spir_func void @_Z7barrierj(i32)"),
    ),
    (
        "call of a barrier or subgroup operation that is not convergent",
        body(
            "%r = call spir_func i32 @_Z17sub_group_shuffleij(i32 %v, i32 0) #0",
            "declare spir_func i32 @_Z17sub_group_shuffleij(i32, i32)\nattributes #0 = { nounwind }",
            "i32 %v",
        ),
    ),
    (
        "call of a barrier or subgroup operation that is not convergent",
        body(
            "call spir_func void @f()",
            "declare spir_func void @_Z7barrierj(i32) convergent\n"
            "define spir_func void @f() {\n  call spir_func void @_Z7barrierj(i32 1)\n  ret void\n}",
        ),
    ),
    (
        "getelementptr and inttoptr of the shared block in one kernel",
        body(
            """%g = getelementptr i8, ptr addrspace(3) @shared, i32 4
            store i32 1, ptr addrspace(3) %g
            %i = ptrtoint ptr addrspace(3) @shared to i64
            %j = add i64 %i, 8
            %q = inttoptr i64 %j to ptr addrspace(3)
            store i32 2, ptr addrspace(3) %q""",
            SHARED,
        ),
    ),
    (
        "getelementptr and inttoptr of the shared block in one kernel",
        body(
            """%g = getelementptr i8, ptr addrspace(3) %s, i32 4
            call spir_func void @f(ptr addrspace(3) %g)""",
            "define spir_func void @f(ptr addrspace(3) %a) {\n  %i = ptrtoint ptr addrspace(3) %a to i64\n"
            "  %q = inttoptr i64 %i to ptr addrspace(3)\n  store i32 2, ptr addrspace(3) %q\n  ret void\n}",
            "ptr addrspace(3) %s",
        ),
    ),
    *(("*.with.overflow", overflow(name)) for name in ("sadd", "ssub", "smul", "uadd", "usub", "umul")),
    ("llvm.minimumnum/maximumnum", binary("minimumnum.f32", "float")),
    ("llvm.minimumnum/maximumnum", binary("maximumnum.f32", "float")),
    ("llvm.canonicalize", unary("canonicalize.f32")),
    ("llvm.ldexp", unary("ldexp.f32.i32", extra=", i32 3")),
    *(
        (
            "atomicrmw uinc_wrap/udec_wrap/usub_cond/usub_sat/nand",
            body(f"%o = atomicrmw {op} ptr addrspace(1) %p, i32 7 monotonic"),
        )
        for op in ("uinc_wrap", "udec_wrap", "usub_cond", "usub_sat", "nand")
    ),
    (
        "atomicrmw on floats other than fadd and fsub",
        body("%o = atomicrmw fmin ptr addrspace(1) %p, float 1.0 monotonic"),
    ),
    (
        "atomicrmw on floats other than fadd and fsub",
        body("%o = atomicrmw fmaximum ptr addrspace(1) %p, float 1.0 monotonic"),
    ),
    (
        "unsized or external shared memory",
        body("store i32 1, ptr addrspace(3) @s", "@s = external addrspace(3) global [0 x i8]"),
    ),
    (
        "unsized or external shared memory",
        body("store i32 1, ptr addrspace(3) @s", "@s = internal addrspace(3) global [0 x i8] undef"),
    ),
    (
        "indirectbr",
        body("indirectbr ptr %t, [label %a]\na:", parameters="ptr %t").replace("  a:", "a:"),
    ),
    ("llvm.readcyclecounter", body("%c = call i64 @llvm.readcyclecounter()", "declare i64 @llvm.readcyclecounter()")),
    (
        "llvm.prefetch",
        body(
            "call void @llvm.prefetch.p1(ptr addrspace(1) %p, i32 0, i32 3, i32 1)",
            "declare void @llvm.prefetch.p1(ptr addrspace(1), i32, i32, i32)",
        ),
    ),
    ("128-bit cmpxchg", body("%o = cmpxchg ptr addrspace(1) %p, i128 0, i128 1 monotonic monotonic")),
    ("8 or 16-bit atomic", body("%o = cmpxchg ptr addrspace(1) %p, i16 0, i16 1 monotonic monotonic")),
    ("8 or 16-bit atomic", body("%o = atomicrmw add ptr addrspace(1) %p, i8 1 monotonic")),
    ("8 or 16-bit atomic", body("%o = atomicrmw fadd ptr addrspace(1) %p, half 1.0 monotonic")),
    ("8 or 16-bit atomic", body("%o = load atomic i16, ptr addrspace(1) %p monotonic, align 2")),
    ("8 or 16-bit atomic", body("store atomic i8 1, ptr addrspace(1) %p monotonic, align 1")),
    ("bfloat", body("%v = load bfloat, ptr addrspace(1) %p")),
    ("i128", body("%v = load i128, ptr addrspace(1) %p")),
    ("fp128, x86_fp80 or ppc_fp128", body("%v = load fp128, ptr addrspace(1) %p")),
    ("call through a pointer", body("call spir_func void %f(i32 1)", parameters="ptr %f")),
    ("call through a pointer", body("%r = call spir_func { i32, i1 } %f(i32 1)", parameters="ptr %f")),
    ("structure or array by value", body("", parameters="{ i32, float } %s")),
    ("structure or array by value", body("", parameters="i32 %n, [4 x i32] %s")),
    ("structure or array by value", body("", "%struct.s = type { i32, float }", "%struct.s %s")),
    ("structure or array by value", body("", parameters="ptr byval({ i32, float }) %s")),
    ("inline assembly", body('call void asm sideeffect "nop", ""()')),
    ("inline assembly", HEAD + 'module asm "nop"\n'),
    (
        "zext of a trunc",
        body(
            "%a = trunc i64 %v to i32\n%b = trunc i32 %a to i16\n%c = zext i16 %b to i32\nstore i32 %c, ptr %p",
            parameters="i64 %v, ptr %p",
        ),
    ),
    ("vector of another length than 2, 3, 4, 8, 16", body("%v = load <5 x i32>, ptr addrspace(1) %p")),
    (
        "vector of i1 in memory",
        body("store <4 x i1> %v, ptr addrspace(1) %p", parameters="ptr addrspace(1) %p, <4 x i1> %v"),
    ),
]


@pytest.mark.parametrize(("construct", "ir"), SAMPLES, ids=[f"{i}-{name}" for i, (name, _) in enumerate(SAMPLES)])
def test_construct_is_found(construct: str, ir: str) -> None:
    assert construct in {finding.construct.name for finding in lint.lint(ir)}
    # LLVM's own printer writes the same thing a little differently; the lint must see it there too.
    with parsed(ir) as module:
        printed = str(module)
    assert construct in {finding.construct.name for finding in lint.lint(printed)}


def test_every_construct_has_a_sample() -> None:
    names = [construct.name for construct in lint.REFUSED]
    assert len(names) == len(set(names))
    assert set(names) == {name for name, _ in SAMPLES}


ALLOWED = [
    body(
        """%i3 = add i32 1, 2
        br label %i5
        i5:
        %c = zext i1 true to i64
        %h = load <3 x half>, ptr addrspace(1) %p
        %m = call float @llvm.minnum.f32(float 1.0, float 2.0)
        %s = call i32 @llvm.fptosi.sat.i32.f32(float %m)
        %o = atomicrmw fadd ptr addrspace(1) %p, float 1.0 monotonic
        %x = cmpxchg ptr addrspace(1) %p, i64 0, i64 1 seq_cst seq_cst ; cmpxchg ptr %p, i128 in a comment
        %n = call <2 x i32> @"i24 asm bfloat"(<2 x i32> zeroinitializer)""",
        "declare float @llvm.minnum.f32(float, float)\ndeclare i32 @llvm.fptosi.sat.i32.f32(float)\n"
        'declare <2 x i32> @"i24 asm bfloat"(<2 x i32>)\n@d = addrspace(1) constant [9 x i8] c"i128;i7\\22 "\n',
    ).replace("  i5:", "i5:"),
    # One form of shared addressing, twice.
    body(
        """%g = getelementptr i8, ptr addrspace(3) @shared, i32 4
        %h = getelementptr i8, ptr addrspace(3) %g, i32 4
        store i32 1, ptr addrspace(3) %h
        %i = ptrtoint ptr addrspace(3) %h to i64
        store i64 %i, ptr addrspace(1) %p""",
        SHARED,
    ),
    body(
        """%i = ptrtoint ptr addrspace(3) @shared to i64
        %q = inttoptr i64 %i to ptr addrspace(3)
        %g = getelementptr i8, ptr addrspace(3) %q, i32 4
        store i32 1, ptr addrspace(3) %g""",
        SHARED,
    ),
    # Convergent at the declaration, through a group, at the call.
    body(
        """call spir_func void @_Z7barrierj(i32 1)
        call spir_func void @f()
        call spir_func void @_Z7barrierj(i32 noundef 1) convergent willreturn memory(none)
        %l = call spir_func i32 @_Z22get_sub_group_local_idv()
        %b = call spir_func <4 x i32> @_Z16sub_group_balloti(i32 1) #1""",
        "declare spir_func void @_Z7barrierj(i32) #0\ndeclare spir_func <4 x i32> @_Z16sub_group_balloti(i32)\n"
        "declare spir_func i32 @_Z22get_sub_group_local_idv()\n"
        "define spir_func void @f() #1 {\n  call spir_func void @_Z7barrierj(i32 1)\n  ret void\n}\n"
        "declare spir_func void @g(ptr dereferenceable(4)) convergent nounwind memory(none)\n"
        "attributes #0 = { convergent nounwind }\nattributes #1 = { nounwind convergent }",
    ),
    body(
        "%r = call spir_func { i32, i1 } @f(ptr byval(%struct.s) %q)",
        "%struct.s = type { i32, float }\ndeclare spir_func { i32, i1 } @f(ptr byval(%struct.s))",
        "ptr byval(%struct.s) %q",
    ),
]


@pytest.mark.parametrize("ir", ALLOWED)
def test_allowed_text_has_no_findings(ir: str) -> None:
    assert lint.lint(ir) == []
    with parsed(ir) as module:
        printed = str(module)
    assert lint.lint(printed) == []
    lint.check(ir)


def test_the_message_names_construct_function_line_and_what_to_report() -> None:
    ir = body("%a = add i32 1, 2\n%v = load i24, ptr addrspace(1) %p")
    number = next(n for n, line in enumerate(ir.split("\n"), 1) if "i24" in line)
    with pytest.raises(CompileError) as raised:
        lint.check(ir)
    error = raised.value
    assert error.kind == "internal" and error.function == "k"
    assert f"@k, IR line {number}" in str(error) and "integer type of another width" in str(error)
    assert "%v = load i24, ptr addrspace(1) %p" in str(error) and "report it" in str(error)
