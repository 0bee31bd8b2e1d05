"""The SPIR-V target: OpenCL's execution model, for OpenCL and Level Zero devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from zluda.compiler.target.base import Target

if TYPE_CHECKING:
    from zluda.compiler.lower.context import Context

_SPACES = {"global": 1, "const": 1, "local": 0, "shared": 3, "generic": 4}
"""Const banks lie in the module's data block, which is ordinary global memory."""

_SYNC_SCOPES = {"cta": "workgroup", "cluster": "device", "gpu": "device", "sys": "", "warp": "subgroup"}

_SCOPES = {"sys": 0, "gpu": 1, "cluster": 1, "cta": 2, "warp": 3}
"""SPIR-V 3.27, Scope: CrossDevice, Device, Workgroup, Subgroup."""

_SEMANTICS = {"acquire": 0x2, "release": 0x4, "acq_rel": 0x8, "seq_cst": 0x10}
"""SPIR-V 3.25, Memory Semantics."""

_ALL_MEMORY = 0x100 | 0x200
"""WorkgroupMemory and CrossWorkgroupMemory; a barrier without storage classes orders nothing."""

_WORKGROUP, _SUBGROUP = 2, 3

_INTRINSICS = frozenset({"sqrt", "sin", "cos", "exp2", "log2"})
_BUILTINS = frozenset({"tanh"})
_MANGLED = {"float": "f", "double": "d"}


class SpirvTarget(Target):
    """`spirv64`. Of TargetInfo.features it looks at `float-atomics` and `float64-atomics` (add) and `kernel-clock`."""

    name = "spirv64"
    triple = "spirv64-unknown-unknown"
    datalayout = "e-i64:64-v16:16-v24:32-v32:32-v48:64-v96:128-v192:256-v256:256-v512:512-v1024:1024-n8:16:32:64-G1"
    kernel_convention = "spir_kernel"
    function_convention = "spir_func"

    def space(self, name: str) -> int:
        return _SPACES[name]

    def kernel_metadata(
        self, *, subgroup_size: int | None, required_block: tuple[int, int, int] | None
    ) -> Mapping[str, str]:
        metadata = {}
        if subgroup_size is not None:
            metadata["intel_reqd_sub_group_size"] = f"!{{i32 {subgroup_size}}}"
        if required_block is not None:
            x, y, z = required_block
            metadata["reqd_work_group_size"] = f"!{{i32 {x}, i32 {y}, i32 {z}}}"
        return metadata

    def sync_scope(self, scope: str) -> str:
        name = _SYNC_SCOPES[scope]
        return f'syncscope("{name}") ' if name else ""

    # --- ids ---

    def _dimension(self, c: Context, builtin: str, dimension: int) -> str:
        value = c.builtin(f"_Z{len(builtin)}{builtin}j", "i64", ("i32", str(dimension)), pure=True)
        return c.op(f"trunc i64 {value} to i32")

    def thread_id(self, c: Context, dimension: int) -> str:
        return self._dimension(c, "get_local_id", dimension)

    def block_size(self, c: Context, dimension: int) -> str:
        return self._dimension(c, "get_local_size", dimension)

    def block_id(self, c: Context, dimension: int) -> str:
        return self._dimension(c, "get_group_id", dimension)

    def grid_size(self, c: Context, dimension: int) -> str:
        return self._dimension(c, "get_num_groups", dimension)

    def linear_id(self, c: Context) -> str:
        value = c.builtin("_Z19get_local_linear_idv", "i64", pure=True)
        return c.op(f"trunc i64 {value} to i32")

    def lane_id(self, c: Context) -> str:
        self._warp(c)
        return c.builtin("_Z22get_sub_group_local_idv", "i32", pure=True)

    def special(self, c: Context, name: str, component: str | None) -> tuple[str, str] | None:
        if name.startswith("%lanemask_"):
            return self._lanemask(c, name.removeprefix("%lanemask_"))
        match name:
            case "%warpid":
                self._warp(c)
                return "i32", c.builtin("_Z16get_sub_group_idv", "i32", pure=True)
            case "%nwarpid":
                self._warp(c)
                return "i32", c.builtin("_Z18get_num_sub_groupsv", "i32", pure=True)
            case "%clock" | "%clock_hi" | "%clock64" if self.has("kernel-clock"):
                now = c.builtin("_Z17clock_read_devicev", "i64")
                if name == "%clock64":
                    return "i64", now
                if name == "%clock_hi":
                    now = c.op(f"lshr i64 {now}, 32")
                return "i32", c.op(f"trunc i64 {now} to i32")
            # A launch without clusters is one of 1x1x1 clusters (section 10.12 and following).
            case "%clusterid":
                return "i32", self.block_id(c, "xyz".index(component or "x"))
            case "%nclusterid":
                return "i32", self.grid_size(c, "xyz".index(component or "x"))
            case "%cluster_ctaid" | "%cluster_ctarank":
                return "i32", "0"
            case "%cluster_nctaid" | "%cluster_nctarank":
                return "i32", "1"
            case "%is_explicit_cluster":
                return "i1", "false"
        return None

    def _lanemask(self, c: Context, relation: str) -> tuple[str, str] | None:
        if relation not in ("eq", "le", "lt", "ge", "gt"):
            return None
        lane = self.lane_id(c)
        if relation == "eq":
            return "i32", c.op(f"shl i32 1, {lane}")
        if relation in ("ge", "lt"):
            from_lane = c.op(f"shl i32 -1, {lane}")
            return "i32", from_lane if relation == "ge" else c.op(f"xor i32 {from_lane}, -1")
        above = c.op(f"shl i32 -2, {lane}")
        return "i32", above if relation == "gt" else c.op(f"xor i32 {above}, -1")

    # --- synchronisation ---

    def barrier(self, c: Context) -> None:
        c.kernel_needs("barrier")
        self._control_barrier(c, _WORKGROUP)

    def warp_barrier(self, c: Context) -> None:
        self._warp(c)
        self._control_barrier(c, _SUBGROUP)

    def _control_barrier(self, c: Context, scope: int) -> None:
        semantics = _SEMANTICS["seq_cst"] | _ALL_MEMORY
        c.builtin(
            "_Z22__spirv_ControlBarrierjjj",
            "void",
            ("i32", str(scope)),
            ("i32", str(scope)),
            ("i32", str(semantics)),
            convergent=True,
        )

    def fence(self, c: Context, scope: str, order: str) -> None:
        # LLVM's own fence instruction comes out without storage classes.
        semantics = _SEMANTICS[order] | _ALL_MEMORY
        c.builtin("_Z21__spirv_MemoryBarrierjj", "void", ("i32", str(_SCOPES[scope])), ("i32", str(semantics)))

    def block_reduce(self, c: Context, operation: str, predicate: str) -> str:
        c.kernel_needs("barrier")
        wide = c.op(f"zext i1 {predicate} to i32")
        if operation == "popc":
            return c.builtin("_Z21work_group_reduce_addj", "i32", ("i32", wide), convergent=True)
        builtin = {"and": "_Z14work_group_alli", "or": "_Z14work_group_anyi"}[operation]
        result = c.builtin(builtin, "i32", ("i32", wide), convergent=True)
        return c.op(f"icmp ne i32 {result}, 0")

    # --- warps ---

    def _warp(self, c: Context) -> None:
        c.kernel_needs("warp")

    def ballot(self, c: Context, predicate: str) -> str:
        self._warp(c)
        wide = c.op(f"zext i1 {predicate} to i32")
        mask = c.builtin("_Z16sub_group_balloti", "<4 x i32>", ("i32", wide), convergent=True)
        return c.op(f"extractelement <4 x i32> {mask}, i32 0")

    def shuffle(self, c: Context, value: str, lane: str) -> str:
        self._warp(c)
        return c.builtin("_Z17sub_group_shuffleij", "i32", ("i32", value), ("i32", lane), convergent=True)

    # --- arithmetic ---

    def math(self, c: Context, function: str, type: str, *arguments: str) -> str:
        typed = [(type, argument) for argument in arguments]
        if function in _INTRINSICS:
            suffix = {"float": "f32", "double": "f64"}[type]
            return c.intrinsic(f"llvm.{function}.{suffix}", type, *typed)
        if function in _BUILTINS:
            return c.builtin(f"_Z{len(function)}{function}{_MANGLED[type] * len(arguments)}", type, *typed, pure=True)
        raise KeyError(function)

    def divide(self, c: Context, type: str, a: str, b: str) -> str:
        return c.op(f"fdiv {type} {a}, {b}")

    def multiply_high(self, c: Context, sign: bool, a: str, b: str) -> str:
        return c.builtin(f"_Z6mul_hi{'ll' if sign else 'mm'}", "i64", ("i64", a), ("i64", b), pure=True)

    @property
    def float_atomics(self) -> Sequence[str]:
        kinds = {"float": "float-atomics", "double": "float64-atomics"}
        return [llvm for llvm, feature in kinds.items() if self.has(feature)]

    def trap(self, c: Context) -> None:
        # OpenCL has no trap: an access that faults ends the launch, as a fault of the kernel's own would.
        c.void("store volatile i32 0, ptr addrspace(1) inttoptr (i64 16 to ptr addrspace(1))")
