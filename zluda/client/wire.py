"""zl_protocol.h: the structures and commands of the ring as C sees them."""

from __future__ import annotations

from zluda.spec.protocol import Layout, protocol

_C_TYPES = {
    "u8": "uint8_t",
    "char": "char",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "f32": "float",
}


def _struct(layout: Layout, header: bool) -> str:
    """A structure with an assertion per field that C lays it out as the driver process expects."""
    shift = protocol().structures["header"].size if header else 0
    name = f"zl_{'cmd_' if header else ''}{layout.name}"
    lines = [f"struct {name} {{"]
    if header:
        lines.append("    struct zl_header header;")
    at = 0
    for number, field in enumerate(layout.fields):
        if field.offset - at >= 8:
            lines.append(f"    uint8_t gap{number}[{field.offset - at}];")
        array = f"[{field.length}]" if field.length > 1 else ""
        lines.append(f"    {_C_TYPES[field.type]} {field.name}{array};")
        at = field.offset + field.size
    if layout.size - at >= 8:
        lines.append(f"    uint8_t gap_end[{layout.size - at}];")
    lines.append("};")
    if layout.fields or header:
        lines += [
            f'_Static_assert(offsetof(struct {name}, {f.name}) == {f.offset + shift}, "{name}.{f.name}");'
            for f in layout.fields
        ]
        lines.append(f'_Static_assert(sizeof(struct {name}) <= {-(-(layout.size + shift) // 8) * 8}, "{name}");')
    return "\n".join(lines) + "\n"


def protocol_header() -> str:
    """The whole header."""
    spec = protocol()
    parts = [
        "/* Shared with the driver process. Generated from spec/; do not edit. */",
        "#ifndef ZL_PROTOCOL_H",
        "#define ZL_PROTOCOL_H",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "",
        "#define ZL_PROTOCOL_IDENTITY {" + ", ".join(f"0x{b:02x}" for b in spec.identity) + "}",
    ]
    parts += [f"#define ZL_{name} {value:#x}ULL" for name, value in spec.constants.items()]
    parts.append("")
    parts += [_struct(layout, False) for layout in spec.structures.values()]
    parts += ["enum zl_opcode {", *(f"    ZL_OP_{c.name} = {c.opcode}," for c in spec.commands), "};", ""]
    for command in spec.commands:
        parts.append(_struct(command.fields, True))
        if command.tail:
            parts.append(f"#define ZL_TAIL_{command.name} {spec.structures['header'].size + command.fields.size}\n")
        if command.reply.fields:
            parts.append(_struct(command.reply, False))
    parts += ["#endif", ""]
    return "\n".join(parts)
