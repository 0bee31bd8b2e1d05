"""What random programs found, cut down by hand."""

from __future__ import annotations

import numpy as np
import rig


def test_shift_by_a_negative_constant() -> None:
    """Amounts are unsigned and clamped (9.7.8.7, shl): -1 shifts everything out. It once ended the compiler."""
    text = """.visible .entry k(.param .u64 p)
    {
        .reg .b32 %r<4>; .reg .b64 %d<4>;
        ld.param.u64 %d0, [p];
        ld.global.u32 %r0, [%d0];
        shl.b32 %r1, %r0, -1;
        cvt.u64.u32 %d1, %r1;
        add.u64 %d2, %d0, %d1;
        shr.s32 %r2, %r0, -3;
        st.global.v2.u32 [%d2+8], {%r1, %r2};
        ret;
    }
    """
    data = rig.gpu().array(np.array([0x80000005, 1, 2, 3], np.uint32))
    rig.gpu().load(rig.HEADER + text).function("k").launch(1, 1, data)
    assert data.numpy().tolist() == [0x80000005, 1, 0, 0xFFFFFFFF]
