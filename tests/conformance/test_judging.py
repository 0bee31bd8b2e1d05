"""The judge sees what is wrong: planted expectations, changed results, poison left, guards touched."""

from __future__ import annotations

import dataclasses
import struct
from collections.abc import Callable
from typing import Any

import pytest

from zluda.testing import Case, CoreExecutor, Unsupported, Verdict, load_cases, run_case
from zluda.testing.portable import GUARD, Argument, Buffer, Launch, decode, encode, judge, plan
from zluda.testing.portable.bits import BitsError, Pointer
from zluda.testing.portable.launch import GUARD_BYTE, POISON, with_addresses

PTX = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry double_it(.param .u64 in, .param .u64 out, .param .u32 extra)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [in];
    ld.param.u64 %rd2, [out];
    ld.param.u32 %r3, [extra];
    cvta.to.global.u64 %rd1, %rd1;
    cvta.to.global.u64 %rd2, %rd2;
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    ld.global.u32 %r2, [%rd4];
    shl.b32 %r2, %r2, 1;
    add.u32 %r1, %r1, %r3;
    mul.wide.s32 %rd3, %r1, 4;
    add.s64 %rd5, %rd2, %rd3;
    st.global.u32 [%rd5], %r2;
    ret;
}
"""


def doubling(expected: tuple[int, ...] = (2, 4, 6, 8), shift: int = 0, **changes: Any) -> Case:
    """Four numbers, doubled; `shift` moves the results within the output buffer."""
    arguments = (
        Argument("in", "u32", "in", 4, bits=(1, 2, 3, 4)),
        dataclasses.replace(Argument("out", "u32", "out", 4, expected=expected), **changes),
        Argument("value", "u32", "extra", 4, bits=(shift & 0xFFFFFFFF,)),
    )
    return Case("test.double", "integer", "smoke", "9.7.8.8", (), PTX, "test.ptx", "double_it", (1, 1, 1), (4, 1, 1), 0,
                arguments)  # fmt: skip


def images(case: Case, results: bytes, inputs: bytes = struct.pack("<4I", 1, 2, 3, 4)) -> list[bytes]:
    guard = bytes([GUARD_BYTE]) * GUARD
    return [guard + inputs + guard, guard + results + guard]


def judged(case: Case, *results: int) -> Verdict:
    return judge(case, images(case, struct.pack(f"<{len(results)}I", *results)))


def test_the_right_result_is_right() -> None:
    assert judged(doubling(), 2, 4, 6, 8).status == "right"


def test_a_wrong_element_is_told_with_its_inputs() -> None:
    verdict = judged(doubling(), 2, 4, 7, 8)
    assert verdict.status == "wrong"
    (difference,) = verdict.differences
    assert (difference.index, difference.expected, difference.got) == (2, "00000006", "00000007")
    assert difference.inputs == "in=00000003"
    assert "argument 1 (out)[2]: expected 00000006, got 00000007; inputs in=00000003" in verdict.details


def test_poison_that_was_left_is_wrong() -> None:
    verdict = judged(doubling(), 2, 4, 6, POISON * 0x01010101)
    assert verdict.status == "wrong"
    assert "a5a5a5a5" in verdict.details


@pytest.mark.parametrize("place, told", [(0, "before"), (GUARD - 1, "before"), (GUARD + 16, "after"), (-1, "after")])
def test_a_touched_guard_is_wrong(place: int, told: str) -> None:
    touched = [bytearray(image) for image in images(doubling(), struct.pack("<4I", 2, 4, 6, 8))]
    touched[1][place] ^= 1
    verdict = judge(doubling(), [bytes(image) for image in touched])
    assert verdict.status == "wrong"
    assert told in verdict.details


def test_a_changed_input_is_wrong() -> None:
    case = doubling()
    changed = images(case, struct.pack("<4I", 2, 4, 6, 8), struct.pack("<4I", 1, 2, 3, 5))
    assert judge(case, changed).status == "wrong"


def test_a_mask_hides_just_its_bits() -> None:
    case = doubling(mask=(0xFFFFFFFF, 0xFFFFFFF0, 0, 0xFFFFFFFF))
    assert judged(case, 2, 7, 99, 8).status == "right"
    assert judged(case, 2, 20, 99, 8).status == "wrong"


def test_an_element_that_may_be_anything() -> None:
    case = doubling(expected=(2, None, 6, 8))  # type: ignore[arg-type]
    assert judged(case, 2, 12345, 6, 8).status == "right"


def test_any_order_is_of_the_same_elements() -> None:
    case = doubling(any_order=True)
    assert judged(case, 8, 2, 6, 4).status == "right"
    assert judged(case, 8, 2, 6, 6).status == "wrong"


def floats(expected: float, got: float, **bounds: Any) -> str:
    want, have = (struct.unpack("<I", struct.pack("<f", x))[0] for x in (expected, got))
    case = doubling(expected=(want,) * 4, type="f32", **bounds)
    return judged(case, *[have] * 4).status


@pytest.mark.parametrize(
    "expected, got, bounds, status",
    [
        (1.0, 1.0, {}, "right"),
        (1.0, 1.0 + 2**-23, {}, "wrong"),
        (1.0, 1.0 + 2**-23, {"ulp": 1}, "right"),
        (1.0, 1.0 + 2**-22, {"ulp": 1}, "wrong"),
        (1.0, 1.0 - 2**-23, {"ulp": 2}, "right"),
        (0.0, 2**-20, {"absolute": 2**-20}, "right"),
        (0.0, 2**-19, {"absolute": 2**-20}, "wrong"),
        (100.0, 100.0 + 2**-10, {"relative": 2**-16}, "right"),
        (100.0, 100.0 + 2**-8, {"relative": 2**-16}, "wrong"),
        (float("nan"), float("nan"), {}, "right"),
        (float("nan"), 1.0, {"ulp": 5}, "wrong"),
        (1.0, float("nan"), {"ulp": 5, "absolute": 9.0}, "wrong"),
        (float("inf"), 3e38, {"absolute": 1.0, "relative": 1.0}, "wrong"),
        (0.0, -0.0, {}, "wrong"),
    ],
)
def test_tolerances(expected: float, got: float, bounds: dict[str, float], status: str) -> None:
    assert floats(expected, got, **bounds) == status


def test_any_nan_will_do_in_a_floating_point_type_only() -> None:
    one, other = 0x7FC00000, 0xFFC00001
    assert judged(doubling(expected=(one,) * 4, type="f32"), *[other] * 4).status == "right"
    assert judged(doubling(expected=(one,) * 4, type="b32"), *[other] * 4).status == "wrong"


def test_what_a_launch_starts_from() -> None:
    first, second, extra = plan(doubling()).arguments
    assert isinstance(first, Buffer) and isinstance(second, Buffer)
    assert first.image[GUARD:-GUARD] == struct.pack("<4I", 1, 2, 3, 4)
    assert second.image[GUARD:-GUARD] == bytes([POISON]) * 16
    assert set(second.image[:GUARD] + second.image[-GUARD:]) == {GUARD_BYTE}
    assert not isinstance(extra, Buffer) and extra.data == bytes(4)


def test_addresses_in_values_and_buffers() -> None:
    argument = Argument("in", "b64", "links", 8, bits=(Pointer(1, 16), 5))
    case = dataclasses.replace(doubling(), arguments=(argument, *doubling().arguments[1:]))
    buffer = plan(case).arguments[0]
    image = with_addresses(buffer.image, buffer.fixups, [0x1000, 0x2000, 0])  # type: ignore[union-attr]
    assert struct.unpack("<2Q", image[GUARD:-GUARD]) == (0x2010, 5)


def test_the_notation() -> None:
    text = "00000001*4 - -*5 00000002 00000002"
    assert encode(decode(text, 4), 4) == "00000001*4 -*6 00000002 00000002"
    assert decode("&2 &3+16", 8) == [Pointer(2), Pointer(3, 16)]
    for bad in ("1", "0000000g", "00000001*0", "&2"):
        with pytest.raises(BitsError):
            decode(bad, 4)


# --- on the device ----------------------------------------------------------------------------------------


def test_a_planted_expectation_fails_on_the_device(executor: CoreExecutor) -> None:
    assert run_case(doubling(), executor).status == "right"
    verdict = run_case(doubling(expected=(2, 4, 7, 8)), executor)
    assert [d.index for d in verdict.differences] == [2]


@pytest.mark.parametrize("shift, place", [(1, "after"), (-1, "before")])
def test_a_store_past_the_buffer_is_seen_on_the_device(executor: CoreExecutor, shift: int, place: str) -> None:
    verdict = run_case(doubling(shift=shift), executor)
    assert f"4 guard bytes {place} the buffer were written" in verdict.details
    assert any(d.got == "a5a5a5a5" for d in verdict.differences), "the element that was not written is poison still"


class Mutating:
    """Passes a launch on and changes one byte of what comes back."""

    def __init__(self, executor: CoreExecutor, pick: Callable[[list[bytearray]], None]) -> None:
        self._executor = executor
        self._pick = pick

    def run(self, case: Case, launch: Launch) -> list[bytes]:
        back = [bytearray(image) for image in self._executor.run(case, launch)]
        self._pick(back)
        return [bytes(image) for image in back]


@pytest.mark.parametrize("group", ["integer", "shared", "warp", "atomics"])
def test_a_changed_byte_of_a_result_is_found(executor: CoreExecutor, group: str) -> None:
    for case in load_cases("smoke", [group])[:12]:
        outputs = [
            (place, argument)
            for place, argument in enumerate(a for a in case.arguments if a.is_buffer)
            if argument.kind != "in" and argument.expected[0] is not None and not argument.mask
        ]
        if not outputs or run_case(case, executor).status != "right":
            continue
        for place, _ in outputs:

            def flip(back: list[bytearray], place: int = place) -> None:
                back[place][GUARD] ^= 0x40

            assert run_case(case, Mutating(executor, flip)).status == "wrong", case.id


def test_what_an_executor_raises_is_a_verdict() -> None:
    class Lacking:
        def run(self, case: Case, launch: Launch) -> list[bytes]:
            raise Unsupported("no such thing here")

    class Failing:
        def run(self, case: Case, launch: Launch) -> list[bytes]:
            raise OSError("the device is gone")

    assert run_case(doubling(), Lacking()).status == "unsupported"
    verdict = run_case(doubling(), Failing())
    assert verdict.status == "wrong" and "the device is gone" in verdict.details


def test_a_kernel_that_cannot_be_compiled_is_told_from_a_wrong_one(executor: CoreExecutor) -> None:
    broken = dataclasses.replace(
        doubling(), ptx=PTX.replace("ld.param.u64 %rd1, [in]", "ld.param.u64 %rd1 [in"), ptx_name="broken.ptx"
    )
    assert run_case(broken, executor).status == "wrong"
