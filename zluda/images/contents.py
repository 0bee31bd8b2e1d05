"""What an image holds, and which of its PTX a device gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class ImageError(Exception):
    """Bytes that are no CUDA image, or a damaged one; the message says what is wrong."""


@dataclass(frozen=True, slots=True)
class Ptx:
    """PTX text of an image. `sm` is 0 where the container does not tell; `specific` for `sm_90a`, `sm_100f` …."""

    text: str
    sm: int = 0
    specific: bool = False
    name: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """Something in an image that cannot be used: SASS, or PTX in a form that is not read. `why` and `remedy` say it."""

    sm: int
    why: str
    remedy: str
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Contents:
    """All entries of an image in their order."""

    ptx: tuple[Ptx, ...] = ()
    unusable: tuple[Code, ...] = ()

    def explain(self) -> str:
        """Why there is no PTX to use, in one paragraph."""
        if not self.unusable:
            return "the image is empty"
        lines = []
        for code in self.unusable:
            arch = f" for sm_{code.sm}" if code.sm else ""
            what = f" of {', '.join(code.kernels[:4])}{' …' if len(code.kernels) > 4 else ''}" if code.kernels else ""
            lines.append(f"{code.why}{what}{arch}")
        remedies = dict.fromkeys(code.remedy for code in self.unusable)
        return "no usable PTX: the image holds " + "; ".join(lines) + ". " + " ".join(remedies)


def choose(entries: Sequence[Ptx], capability: tuple[int, int]) -> Ptx:
    """The PTX for a compute capability: the newest that does not ask for more, else the one that asks for least.

    Any PTX can be translated, so the second case is no error: device PTX is often only that of the newest GPU.
    Architecture-specific PTX comes last.
    """
    sm = capability[0] * 10 + capability[1]
    fitting = [entry for entry in entries if entry.sm <= sm and not entry.specific]
    if fitting:
        return max(fitting, key=lambda entry: entry.sm)
    return min(entries, key=lambda entry: (entry.specific, entry.sm))
