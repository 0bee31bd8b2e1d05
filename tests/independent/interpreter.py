"""A small PTX interpreter on the oracle: threads in turn, lanes and blocks meeting where PTX says so."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Generator, Iterable, Sequence
from dataclasses import dataclass, field

import oracle
from oracle import TYPES, mask, number

Meeting = tuple[object, ...]
Thread = Generator[Meeting, object, None]

_WIDTH = {**TYPES, "b128": 128}
_STATEMENT = re.compile(r"\s*(?:[\w$]+:|[^;{}]+(?:\{[^{}]*\}[^;{}]*)*;|[{}])")


OPEN = 0x0BADF00D
"""What a shuffle takes from a lane that is not there."""


class Unsupported(Exception):
    """Something this interpreter does not know."""


class Memory:
    """Blocks of bytes at addresses far apart."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, bytearray]] = []
        self._next = 0x7F_0000_0000

    def place(self, data: bytes | bytearray, address: int | None = None) -> tuple[int, bytearray]:
        if address is None:
            address = self._next
            self._next += (len(data) + 0x1FFFF) & ~0xFFFF
        block = data if isinstance(data, bytearray) else bytearray(data)
        self.blocks.append((address, block))
        return address, block

    def at(self, address: int, size: int) -> tuple[bytearray, int]:
        for base, block in self.blocks:
            if base <= address and address + size <= base + len(block):
                return block, address - base
        raise IndexError(f"{size} bytes at {address:#x} lie outside all buffers")

    def load(self, address: int, size: int) -> int:
        block, offset = self.at(address, size)
        return int.from_bytes(block[offset : offset + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        block, offset = self.at(address, size)
        block[offset : offset + size] = mask(value, 8 * size).to_bytes(size, "little")


@dataclass
class Statement:
    guard: str
    op: str
    operands: list[str]
    text: str


@dataclass
class Kernel:
    parameters: list[tuple[str, int]]
    registers: dict[str, int]
    variables: dict[str, tuple[str, int]]
    code: list[Statement]
    labels: dict[str, int] = field(default_factory=dict)
    dynamic: list[str] = field(default_factory=list)


def split(text: str) -> list[str]:
    """Operands between commas, vectors in braces and addresses in brackets kept whole."""
    out, depth, current = [], 0, ""
    for c in text:
        depth += (c in "{[(") - (c in "}])")
        if c == "," and not depth:
            out.append(current.strip())
            current = ""
        else:
            current += c
    return [*out, current.strip()] if current.strip() else out


def parse(ptx: str, name: str) -> Kernel:
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx, flags=re.S)
    found = re.search(rf"\.entry\s+{re.escape(name)}\s*\(([^)]*)\)[^{{]*\{{", text)
    if not found:
        raise Unsupported(f"no kernel {name}")
    parameters = []
    for declaration in split(found[1]):
        m = re.match(
            r"\.param\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+(?:\.ptr[.\w\s]*?)?([\w$]+)(?:\[(\d+)\])?$", declaration
        )
        if not m:
            raise Unsupported(declaration)
        parameters.append((m[2], TYPES[m[1]] // 8 * int(m[3] or 1)))
    kernel = Kernel(parameters, {}, {}, [])
    depth, end = 1, found.end()
    while depth:
        depth += {"{": 1, "}": -1}.get(text[end], 0)
        end += 1
    for m in re.finditer(r"\.(shared|global|const)\s+(?:\.align\s+\d+\s+)?\.(\w+)\s+([\w$]+)(?:\[(\d+)\])?\s*;", text):
        kernel.variables[m[3]] = (m[1], TYPES[m[2]] // 8 * int(m[4] or 1))
    kernel.dynamic = re.findall(r"\.extern\s+\.shared[^;]*?([\w$]+)\[\]\s*;", text)
    for m in _STATEMENT.finditer(text[found.end() : end - 1]):
        statement = " ".join(m[0].split())
        if statement in "{}":
            raise Unsupported("blocks within a function")
        if statement.endswith(":"):
            kernel.labels[statement[:-1]] = len(kernel.code)
            continue
        statement = statement[:-1].strip()
        if statement.startswith(".reg"):
            kind, rest = statement[4:].strip().split(None, 1)
            for register in split(rest):
                many = re.match(r"(.+)<(\d+)>$", register)
                for each in [f"{many[1]}{i}" for i in range(int(many[2]))] if many else [register]:
                    kernel.registers[each] = _WIDTH[kind[1:]]
            continue
        if statement.startswith((".shared", ".pragma", ".loc")):
            continue
        if statement.startswith("."):
            raise Unsupported(statement)
        guard = ""
        if statement.startswith("@"):
            guard, statement = statement[1:].split(None, 1)
        op, _, rest = statement.partition(" ")
        kernel.code.append(Statement(guard, op, split(rest), statement))
    return kernel


def constant(text: str, bits: int) -> int | None:
    """An immediate operand's pattern."""
    t = text.strip()
    if m := re.match(r"(-?)0[fF]([0-9a-fA-F]{8})$", t):
        return int(m[2], 16) ^ (0x80000000 if m[1] else 0)
    if m := re.match(r"(-?)0[dD]([0-9a-fA-F]{16})$", t):
        double = int(m[2], 16) ^ (1 << 63 if m[1] else 0)
        return double if bits == 64 else oracle.F32.round(oracle.F64.value(double), "rn", zero=double >> 63)
    if m := re.match(r"(-?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uU]?$", t):
        digits = m[2]
        octal = len(digits) > 1 and digits[0] == "0" and digits.isdigit()
        value = int(digits, 8) if octal else int(digits, 0)
        return mask(-value if m[1] else value, bits)
    if re.match(r"-?\d+\.\d*([eE][-+]?\d+)?$", t):
        return int.from_bytes(struct.pack("<d", float(t)) if bits == 64 else struct.pack("<f", float(t)), "little")
    return None


class Run:
    """One launch."""

    def __init__(
        self,
        kernel: Kernel,
        memory: Memory,
        arguments: Sequence[bytes],
        grid: Sequence[int],
        block: Sequence[int],
        shared: int = 0,
    ):
        self.kernel, self.memory = kernel, memory
        self.grid, self.block = [*grid, 1, 1][:3], [*block, 1, 1][:3]
        self.parameters = {name: bytes(data) for (name, _), data in zip(kernel.parameters, arguments, strict=True)}
        self.symbols: dict[str, int] = {}
        offset = 0
        for name, (space, size) in kernel.variables.items():
            if space == "shared":
                offset = -(-offset // 16) * 16
                self.symbols[name] = 0x1000 + offset
                offset += size
            else:
                self.symbols[name] = memory.place(bytes(size))[0]
        for name in kernel.dynamic:
            offset = -(-offset // 16) * 16
            self.symbols[name] = 0x1000 + offset
        self.shared_bytes = offset + shared

    def launch(self) -> None:
        for z in range(self.grid[2]):
            for y in range(self.grid[1]):
                for x in range(self.grid[0]):
                    self._block((x, y, z))

    def alone(self, thread: int) -> None:
        """Run one thread of a 1-D grid by its global number; it must meet no other."""
        block, t = divmod(thread, self.block[0])
        for _ in self._thread(t, (t, 0, 0), (block, 0, 0)):
            raise Unsupported("a thread that meets others")

    def _block(self, ctaid: tuple[int, int, int]) -> None:
        x, y, z = self.block
        entry = self.memory.place(bytearray(self.shared_bytes + 16), 0x1000)
        threads: dict[int, Thread] = {}
        waiting: dict[int, Meeting] = {}
        for t in range(x * y * z):
            threads[t] = self._thread(t, (t % x, t // x % y, t // (x * y)), ctaid)
        self._resume(threads, waiting, dict.fromkeys(threads))
        while threads:
            ready = self._meet(threads, waiting)
            if not ready:
                raise RuntimeError(f"all threads wait: {list(waiting.values())[:3]}")
            self._resume(threads, waiting, ready)
        self.memory.blocks.remove(entry)

    def _resume(self, threads: dict[int, Thread], waiting: dict[int, Meeting], answers: dict[int, object]) -> None:
        for t, answer in answers.items():
            waiting.pop(t, None)
            try:
                waiting[t] = threads[t].send(answer)
            except StopIteration:
                del threads[t]

    def _meet(self, threads: dict[int, Thread], waiting: dict[int, Meeting]) -> dict[int, object]:
        if all(m[0] == "bar" for m in waiting.values()):
            return dict.fromkeys(waiting)
        for first, meeting in waiting.items():
            if meeting[0] != "warp":
                continue
            base = first // 32 * 32
            members = [base + i for i in range(32) if int(meeting[2]) >> i & 1 and base + i in threads]  # type: ignore[call-overload]
            if all(waiting[t][:3] == meeting[:3] for t in members):
                handler = meeting[3]
                assert callable(handler)
                return dict(handler(base, {t - base: waiting[t][4] for t in members}))
        return {}

    def _thread(self, linear: int, tid: tuple[int, int, int], ctaid: tuple[int, int, int]) -> Thread:
        registers: dict[str, int] = {}
        carry = 0
        special = {"%laneid": linear % 32, "%warpid": linear // 32, "%WARP_SZ": 32, "WARP_SZ": 32}
        for i, axis in enumerate("xyz"):
            special |= {f"%tid.{axis}": tid[i], f"%ntid.{axis}": self.block[i]}
            special |= {f"%ctaid.{axis}": ctaid[i], f"%nctaid.{axis}": self.grid[i]}
        lane = linear % 32
        special |= {
            "%lanemask_eq": 1 << lane,
            "%lanemask_lt": (1 << lane) - 1,
            "%lanemask_le": (2 << lane) - 1,
            "%lanemask_gt": mask(-(2 << lane), 32),
            "%lanemask_ge": mask(-(1 << lane), 32),
        }
        widths = self.kernel.registers

        def get(text: str, bits: int = 64) -> int:
            if text in registers:
                return registers[text]
            if text in special:
                return special[text]
            if text.startswith("!"):
                return 1 - get(text[1:])
            if text in self.symbols:
                return self.symbols[text]
            value = constant(text, bits)
            if value is None:
                raise Unsupported(f"operand {text}")
            return value

        def put(text: str, value: int, kind: str = "") -> None:
            if text == "_":
                return
            if kind and kind[0] == "s" and kind in TYPES:
                value = number(value, kind)
            registers[text] = mask(value, widths[text])

        def address(text: str) -> int:
            inner = text.strip("[]")
            base, _, offset = inner.partition("+")
            return mask(get(base.strip()) + (int(offset, 0) if offset else 0), 64)

        pc, steps, code = 0, 0, self.kernel.code
        while pc < len(code):
            s = code[pc]
            pc += 1
            steps += 1
            if steps > 2_000_000:
                raise RuntimeError("endless")
            if s.guard and not (get(s.guard)):
                continue
            op, operands = oracle.Op(s.op), s.operands
            root = op.name
            if root in ("ret", "exit"):
                return
            if root == "bra":
                pc = self.kernel.labels[operands[0]]
            elif root in ("bar", "barrier"):
                yield ("bar",)
            elif root in ("membar", "fence"):
                pass
            elif root == "mov":
                self._move(op, operands, get, put, widths)
            elif root in ("cvta",):
                put(operands[0], get(operands[1]))
            elif root == "ld":
                self._load(op, operands, address, put)
            elif root in ("st",):
                self._store(op, operands, address, get)
            elif root in ("atom", "red"):
                self._atomic(op, operands, address, get, put)
            elif root in ("shfl", "vote", "match", "redux", "activemask", "elect"):
                answer = yield self._warp(op, pc, operands, get, lane)
                assert isinstance(answer, list)
                for target, value in zip(operands[0].split("|"), answer, strict=False):
                    put(target, value)
            elif "cc" in op.mods or root in ("addc", "subc", "madc"):
                carry = self._carry(op, operands, get, put, carry)
            elif oracle.known(s.op):
                bits = 64 if op.bits == 64 or op.has("wide") else 32
                values = [get(o, bits) for o in operands[1:]]
                if root == "lop3" and op.has("BoolOp"):
                    raise Unsupported(s.text)
                result = oracle.evaluate(s.op, values)
                if isinstance(result, oracle.Halves) or result in (oracle.NAN, oracle.SKIP):
                    result = self.open_result(s.op, op, values, result)
                assert isinstance(result, int)
                targets = operands[0].split("|")
                kind = op.types[0] if root in ("cvt", "set") else ("" if root == "setp" else op.type)
                put(targets[0], result, "" if op.has("wide") or root in ("bfind", "popc", "clz") else kind)
                if len(targets) > 1:
                    truth = oracle.compare(op, op.type, values[0], values[1])
                    put(targets[1], int(oracle.combine(op, not truth, values[2:])))
            else:
                raise Unsupported(s.text)

    def open_result(self, text: str, op: oracle.Op, values: list[int], result: object) -> int:
        """A pattern for a result of which the ISA leaves bits open."""
        if result is oracle.SKIP:
            return 0xDEAD
        if isinstance(result, oracle.Halves):
            out = 0
            for i, part in enumerate(result.parts):
                out |= (0x7FFF if part == oracle.NAN else int(part)) << 16 * i  # type: ignore[arg-type]
            return out
        kind = op.types[0] if op.name in ("cvt", "set") else op.type
        return oracle.FORMATS.get(kind, oracle.F32).canonical_nan

    def _move(
        self,
        op: oracle.Op,
        operands: list[str],
        get: Callable[..., int],
        put: Callable[..., None],
        widths: dict[str, int],
    ) -> None:
        target, source = operands
        if target.startswith("{"):
            parts = split(target.strip("{} "))
            value = get(source)
            for i, part in enumerate(parts):
                put(part, value >> (op_bits(op) // len(parts) * i))
        elif source.startswith("{"):
            parts = split(source.strip("{} "))
            size = op_bits(op) // len(parts)
            put(target, sum(mask(get(part), size) << size * i for i, part in enumerate(parts)))
        else:
            put(target, get(source, 64 if op_bits(op) == 64 else 32))

    def _load(
        self, op: oracle.Op, operands: list[str], address: Callable[[str], int], put: Callable[..., None]
    ) -> None:
        size = op_bits(op) // 8
        targets = split(operands[0].strip("{} "))
        if op.mods[0] == "param":
            name, _, offset = operands[1].strip("[]").partition("+")
            data = self.parameters[name.strip()]
            start = int(offset or "0", 0)
            for i, target in enumerate(targets):
                put(target, int.from_bytes(data[start + i * size : start + (i + 1) * size], "little"), op.type)
            return
        base = address(operands[1])
        values = [self.memory.load(base + i * size, size) for i in range(len(targets))]
        for target, value in zip(targets, values, strict=True):
            put(target, value, op.type)

    def _store(
        self, op: oracle.Op, operands: list[str], address: Callable[[str], int], get: Callable[..., int]
    ) -> None:
        size = op_bits(op) // 8
        base = address(operands[0])
        for i, source in enumerate(split(operands[1].strip("{} "))):
            self.memory.store(base + i * size, size, get(source))

    def _atomic(
        self,
        op: oracle.Op,
        operands: list[str],
        address: Callable[[str], int],
        get: Callable[..., int],
        put: Callable[..., None],
    ) -> None:
        kind = op.type
        size = op_bits(op) // 8
        target, *operands = operands if op.name == "atom" else ["_", *operands]
        where = address(operands[0])
        old = self.memory.load(where, size)
        b, *more = [mask(get(o, 8 * size), 8 * size) for o in operands[1:]]
        verb = next(m for m in op.mods if m in ("add", "min", "max", "inc", "dec", "exch", "cas", "and", "or", "xor"))
        if verb == "add" and kind in oracle.FORMATS:
            new = oracle.evaluate(f"add.rn{'.ftz' if op.ftz else ''}.{kind}", [old, b])
        elif verb == "inc":
            new = 0 if old >= b else old + 1
        elif verb == "dec":
            new = b if old == 0 or old > b else old - 1
        elif verb == "exch":
            new = b
        elif verb == "cas":
            new = more[0] if old == b else old
        elif verb in ("and", "or", "xor"):
            new = oracle.evaluate(f"{verb}.b{8 * size}", [old, b])
        else:
            new = oracle.evaluate(f"{verb}.{kind}", [old, b])
        assert isinstance(new, int)
        self.memory.store(where, size, new)
        put(target, old)

    def _carry(
        self, op: oracle.Op, operands: list[str], get: Callable[..., int], put: Callable[..., None], carry: int
    ) -> int:
        n = op.bits
        target, *sources = operands
        a, b, *c = (mask(get(s, n), n) for s in sources)
        root = op.name.rstrip("c") if op.name in ("addc", "subc", "madc") else op.name
        used = carry if op.name in ("addc", "subc", "madc") else 0
        if root == "mad":
            product = number(a, op.type) * number(b, op.type)
            a, b = mask(product >> n if op.has("hi") else product, n), c[0]
        total = a - b - used if root == "sub" else a + b + used
        put(target, total)
        return int(not 0 <= total < 1 << n) if op.has("cc") else carry

    def _warp(self, op: oracle.Op, pc: int, operands: list[str], get: Callable[..., int], lane: int) -> Meeting:
        values = [get(o, 32) for o in operands[1:]]
        if op.name == "activemask":
            raise Unsupported("activemask")
        members = values[-1]
        return ("warp", pc, members, lambda base, lanes: warp(op, members, base, lanes), values)


def op_bits(op: oracle.Op) -> int:
    return 32 if op.type == "pred" else op.bits


def warp(op: oracle.Op, members: int, base: int, lanes: dict[int, list[int]]) -> Iterable[tuple[int, list[int]]]:
    """What each lane of a warp-wide operation gets: 9.7.9.6 (shfl), 9.7.13 (vote, match, redux, elect)."""
    for lane, values in lanes.items():
        if op.name == "shfl":
            _, b, c, _ = values
            bval, cval, segment = b & 31, c & 31, c >> 8 & 31
            most = (lane & segment) | (cval & ~segment & 31)
            least = lane & segment
            if op.has("up"):
                j = lane - bval
                fine = j >= most
            elif op.has("down"):
                j = lane + bval
                fine = j <= most
            elif op.has("bfly"):
                j = lane ^ bval
                fine = j <= most
            else:
                j = least | (bval & ~segment & 31)
                fine = j <= most
            source = j if fine else lane
            yield base + lane, [lanes[source][0] if source in lanes else OPEN, int(fine)]
        elif op.name == "vote":
            truths = [bool(v[0]) for v in lanes.values()]
            if op.has("ballot"):
                yield base + lane, [sum(1 << i for i, v in lanes.items() if v[0])]
            elif op.has("uni"):
                yield base + lane, [int(all(truths) or not any(truths))]
            else:
                yield base + lane, [int(all(truths) if op.has("all") else any(truths))]
        elif op.name == "match":
            same = sum(1 << i for i, v in lanes.items() if v[0] == values[0])
            if op.has("any"):
                yield base + lane, [same]
            else:
                everyone = all(v[0] == values[0] for v in lanes.values())
                yield base + lane, [sum(1 << i for i in lanes) if everyone else 0, int(everyone)]
        elif op.name == "redux":
            numbers = [number(v[0], op.type) for v in lanes.values()]
            total = numbers[0]
            for n in numbers[1:]:
                verb = op.mods[1]
                total = (
                    total + n
                    if verb == "add"
                    else min(total, n)
                    if verb == "min"
                    else max(total, n)
                    if verb == "max"
                    else total & n
                    if verb == "and"
                    else total | n
                    if verb == "or"
                    else total ^ n
                )
            yield base + lane, [mask(total, 32)]
        else:
            raise Unsupported(op.text)
