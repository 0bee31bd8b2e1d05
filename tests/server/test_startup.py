"""The hand-shake's answers."""

from __future__ import annotations

import socket

import pytest

from zluda.server.startup import refuse
from zluda.spec.protocol import protocol


@pytest.mark.parametrize("lines", [1, 40])
def test_a_long_refusal_keeps_whole_lines_and_says_where_the_rest_is(lines: int) -> None:
    message = "\n".join(["no usable device", *(f"  stack {number}: it is not there" for number in range(lines))])
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        refuse(ours, 100, message)
        *_, text = protocol().structures["answer"].compiled().unpack(theirs.recv(4096))
    got = text.rstrip(b"\0").decode().splitlines()
    if lines == 1:
        assert got == message.splitlines()
    else:
        assert got[-1] == "  and more: `zluda devices` shows all"
        assert len(got) > 20 and got[:-1] == message.splitlines()[: len(got) - 1]
