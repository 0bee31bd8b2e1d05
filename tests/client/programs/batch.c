/* Copies with attributes, alone and in batches. */
#include "check.h"

enum { SIZE = 4096 };

static unsigned char host[SIZE], back[SIZE];
static CUdeviceptr p, q;
static CUstream stream;

static CUdeviceptr at(void *address)
{
    return (CUdeviceptr)(uintptr_t)address;
}

static CUmemcpyAttributes attributes(CUmemcpySrcAccessOrder order, unsigned flags)
{
    CUmemcpyAttributes a = {0};
    a.srcAccessOrder = order;
    a.flags = flags;
    return a;
}

static void linear(unsigned char *pinned)
{
    CUmemcpyAttributes a[2] = {attributes(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 0),
                               attributes(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)};
    CUdeviceptr dsts[5] = {p, p + 1000, at(back), at(pinned), p + 3000}, srcs[5] = {at(host), at(host + 500), q + 7, q, at(pinned + 100)};
    CUresult (*older)(CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, size_t, size_t *, CUstream);
    size_t sizes[5] = {300, 1, 64, 100, 0}, first[2] = {0, 3}, failed = 99;

    OK(cuMemsetD8(p, 1, SIZE));
    OK(cuMemsetD8(q, 2, SIZE));
    memset(back, 0, SIZE);
    OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 2, stream));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < 100; i++)
        TRUE(pinned[i] == 2 && back[i] == (i < 64 ? 2 : 0));
    OK(cuMemcpyDtoH(back, p, SIZE));
    TRUE(!memcmp(back, host, 300) && back[300] == 1 && back[999] == 1 && back[1000] == host[500] && back[1001] == 1);

    a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID; /* the last two copies' */
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 2, stream), CUDA_ERROR_INVALID_VALUE);
    a[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_ANY;
    first[1] = 5;
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 2, stream), CUDA_ERROR_INVALID_VALUE);
    first[1] = 0;
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 2, stream), CUDA_ERROR_INVALID_VALUE);
    first[0] = 1;
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    first[0] = 0;
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 1, a, first, 2, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 0, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(NULL, srcs, sizes, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, NULL, sizes, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, NULL, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, NULL, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, NULL, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, CU_STREAM_LEGACY), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    a[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    a[0] = attributes(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, 2);
    EXPECT(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, a, first, 1, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyBatchAsync(dsts, srcs, sizes, 5, &a[1], first, 1, CU_STREAM_PER_THREAD));
    OK(cuMemcpyBatchAsync_v2_ptsz(dsts, srcs, sizes, 5, &a[1], first, 1, NULL));

    /* One that cannot be: none is done. The older form says which. */
    OK(cuCtxSynchronize());
    OK(cuMemsetD8(p, 1, SIZE));
    dsts[3] = p + SIZE - 99;
    OK(cuGetProcAddress("cuMemcpyBatchAsync", (void **)&older, 12080, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    EXPECT(older(dsts, srcs, sizes, 5, &a[1], first, 1, &failed, stream), CUDA_ERROR_INVALID_VALUE);
    TRUE(failed == 3);
    EXPECT(older(dsts, srcs, sizes, 5, &a[1], first, 1, &failed, NULL), CUDA_ERROR_INVALID_VALUE);
    TRUE(failed == SIZE_MAX);
    EXPECT(older(dsts, srcs, sizes, 5, &a[1], first, 1, NULL, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuMemcpyDtoH(back, p, SIZE));
    for (int i = 0; i < SIZE; i++)
        TRUE(back[i] == 1);
    OK(older(dsts, srcs, sizes, 3, &a[1], first, 1, &failed, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, p, 300));
    TRUE(!memcmp(back, host, 300));
}

/* When the source is read: behind a nap in the stream, or before the call returns. */
static void orders(unsigned char *pinned)
{
    CUmemcpyAttributes in_order = attributes(CU_MEMCPY_SRC_ACCESS_ORDER_STREAM, 0),
                       during = attributes(CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL, 0),
                       any = attributes(CU_MEMCPY_SRC_ACCESS_ORDER_ANY, 0);
    CUfunction nap = kernel("nap");
    unsigned char local[64];
    double before;

    /* Pinned memory that work before it in the stream fills. */
    memset(pinned, 1, 64);
    OK(launch_nap(nap, stream, 50));
    OK(cuMemsetD8Async(at(pinned), 2, 64, stream));
    OK(cuMemcpyWithAttributesAsync(p, at(pinned), 64, &in_order, stream));
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, p, 64));
    TRUE(back[0] == 2 && back[63] == 2);

    /* What is gone after the call. */
    for (int way = 0; way < 2; way++) {
        unsigned char *source = way ? pinned : local;
        memset(source, 3, 64);
        OK(launch_nap(nap, stream, 50));
        OK(cuMemcpyWithAttributesAsync(p, at(source), 64, &during, stream));
        memset(source, 4, 64);
        OK(cuStreamSynchronize(stream));
        OK(cuMemcpyDtoH(back, p, 64));
        TRUE(back[0] == 3 && back[63] == 3);
    }

    /* Without waiting where nothing asks for it. */
    before = seconds();
    OK(launch_nap(nap, stream, 100));
    OK(cuMemcpyWithAttributesAsync(p, q, 64, &in_order, stream));
    OK(cuMemcpyWithAttributesAsync(p + 64, at(host), 64, &any, stream));
    TRUE(seconds() - before < 0.09);
    OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(back, p, 128));
    TRUE(back[0] == 2 && !memcmp(back + 64, host, 64));

    OK(cuMemcpyWithAttributesAsync(p, at(host), 16, &any, NULL));
    OK(cuMemcpyWithAttributesAsync(p, at(host), 0, &any, stream));
    EXPECT(cuMemcpyWithAttributesAsync(p, at(host), 16, NULL, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyWithAttributesAsync(0, at(host), 16, &any, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyWithAttributesAsync(p, at(host), SIZE_MAX, &any, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyWithAttributesAsync(p + SIZE - 8, at(host), 16, &any, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyWithAttributesAsync(p, at(host), 16, &any, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    any.srcAccessOrder = (CUmemcpySrcAccessOrder)4;
    EXPECT(cuMemcpyWithAttributesAsync(p, at(host), 16, &any, stream), CUDA_ERROR_INVALID_VALUE);
}

static CUmemcpy3DOperand pointer(CUdeviceptr address, size_t row, size_t layer)
{
    CUmemcpy3DOperand o = {.type = CU_MEMCPY_OPERAND_TYPE_POINTER};
    o.op.ptr.ptr = address;
    o.op.ptr.rowLength = row;
    o.op.ptr.layerHeight = layer;
    return o;
}

static CUmemcpy3DOperand in_array(CUarray array, size_t x, size_t y, size_t z)
{
    CUmemcpy3DOperand o = {.type = CU_MEMCPY_OPERAND_TYPE_ARRAY};
    o.op.array.array = array;
    o.op.array.offset = (CUoffset3D){x, y, z};
    return o;
}

static CUDA_MEMCPY3D_BATCH_OP operation(CUmemcpy3DOperand dst, CUmemcpy3DOperand src, size_t width, size_t height, size_t depth)
{
    CUDA_MEMCPY3D_BATCH_OP o = {.src = src, .dst = dst, .srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM};
    o.extent = (CUextent3D){width, height, depth};
    return o;
}

static void boxes(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = 8, .Height = 6, .Depth = 4, .Format = CU_AD_FORMAT_UNSIGNED_INT16, .NumChannels = 1};
    uint16_t in[4][6][8], out[2][3][5], model[2][3][5];
    CUDA_MEMCPY3D_BATCH_OP o[3], bad;
    CUarray a, b, wide;
    size_t failed = 99;
    CUresult (*older)(size_t, CUDA_MEMCPY3D_BATCH_OP *, size_t *, unsigned long long, CUstream);

    for (int i = 0; i < 192; i++)
        (&in[0][0][0])[i] = (uint16_t)(i * 331);
    OK(cuArray3DCreate(&a, &d));
    OK(cuArray3DCreate(&b, &d));
    d.Format = CU_AD_FORMAT_FLOAT;
    OK(cuArray3DCreate(&wide, &d));
    /* All in; a box of 5 by 3 by 2 elements from (2, 1, 1) of one to (3, 2, 0) of the other; and out of there, packed. */
    o[0] = operation(in_array(a, 0, 0, 0), pointer(at(in), 0, 0), 8, 6, 4);
    o[1] = operation(in_array(b, 3, 2, 0), in_array(a, 2, 1, 1), 5, 3, 2);
    o[2] = operation(pointer(at(out), 0, 0), in_array(b, 3, 2, 0), 5, 3, 2);
    for (int i = 0; i < 3; i++)                    /* they depend on each other */
        OK(cuMemcpy3DWithAttributesAsync(&o[i], 0, stream));
    OK(cuStreamSynchronize(stream));
    for (int z = 0; z < 2; z++)
        for (int y = 0; y < 3; y++)
            for (int x = 0; x < 5; x++)
                model[z][y][x] = in[z + 1][y + 1][x + 2];
    TRUE(!memcmp(out, model, sizeof out));

    /* A batch: device memory with rows of 16 elements (bytes, between pointers) and layers of 5 rows. */
    OK(cuMemsetD8(p, 0, SIZE));
    OK(cuMemsetD8(q, 0, SIZE));
    o[0] = operation(pointer(q, 16, 5), pointer(at(host), 20, 7), 10, 4, 3);
    o[1] = operation(pointer(p, 8, 0), in_array(a, 0, 0, 3), 8, 6, 1);
    o[2] = operation(pointer(at(out), 5, 3), in_array(b, 3, 2, 0), 5, 3, 2);
    o[2].flags = CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE;
    memset(out, 0, sizeof out);
    OK(cuMemcpy3DBatchAsync(3, o, 0, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(!memcmp(out, model, sizeof out));
    OK(cuMemcpyDtoH(back, p, sizeof in[3]));
    TRUE(!memcmp(back, in[3], sizeof in[3]));
    OK(cuMemcpyDtoH(back, q, 256));
    for (int i = 0; i < 240; i++) {
        int z = i / 80, y = i / 16 % 5, x = i % 16;
        TRUE(back[i] == (y < 4 && x < 10 ? host[(z * 7 + y) * 20 + x] : 0));
    }

#define BAD(change)                                                                                                    \
    do {                                                                                                               \
        bad = o[1];                                                                                                    \
        change;                                                                                                        \
        EXPECT(cuMemcpy3DWithAttributesAsync(&bad, 0, stream), CUDA_ERROR_INVALID_VALUE);                              \
        EXPECT(cuMemcpy3DBatchAsync(1, &bad, 0, stream), CUDA_ERROR_INVALID_VALUE);                               \
    } while (0)
    BAD(bad.extent.width = 0);
    BAD(bad.extent.height = 0);
    BAD(bad.extent.depth = 0);
    BAD(bad.extent.width = 9);
    BAD(bad.extent.width = SIZE_MAX);
    BAD(bad.extent.depth = 2);
    BAD(bad.dst.op.ptr.rowLength = 7);
    BAD(bad.dst.op.ptr.rowLength = SIZE_MAX);
    BAD(bad.dst.op.ptr.layerHeight = 5);
    BAD(bad.dst.op.ptr.ptr = 0);
    BAD(bad.dst.type = (CUmemcpy3DOperandType)0);
    BAD(bad.src.type = (CUmemcpy3DOperandType)3);
    BAD(bad.src.op.array.array = NULL);
    BAD(bad.src.op.array.offset.x = 1);
    BAD(bad.src.op.array.offset.x = SIZE_MAX);
    BAD(bad.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID);
    BAD(bad.flags = 4);
    BAD(bad.dst = in_array(wide, 0, 0, 0));        /* elements of another size */
#undef BAD
    EXPECT(cuMemcpy3DWithAttributesAsync(NULL, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DWithAttributesAsync(&o[1], 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DWithAttributesAsync(&o[1], 0, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemcpy3DBatchAsync(0, o, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DBatchAsync(3, NULL, 0, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DBatchAsync(3, o, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DBatchAsync(3, o, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DBatchAsync(3, o, 0, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    OK(cuGetProcAddress("cuMemcpy3DBatchAsync", (void **)&older, 12080, CU_GET_PROC_ADDRESS_DEFAULT, NULL));
    OK(older(3, o, &failed, 0, stream));
    o[2].extent.width = 6;
    EXPECT(older(3, o, &failed, 0, stream), CUDA_ERROR_INVALID_VALUE);
    TRUE(failed == 2);
    EXPECT(older(3, o, &failed, 5, stream), CUDA_ERROR_INVALID_VALUE);
    TRUE(failed == SIZE_MAX);
    OK(cuArrayDestroy(a));
    OK(cuArrayDestroy(b));
    EXPECT(cuMemcpy3DWithAttributesAsync(&o[1], 0, stream), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(wide));
}

int main(void)
{
    unsigned char *pinned;

    start();
    for (int i = 0; i < SIZE; i++)
        host[i] = (unsigned char)(i * 13 + i / 256);
    OK(cuStreamCreate(&stream, CU_STREAM_DEFAULT));
    OK(cuMemAlloc(&p, SIZE));
    OK(cuMemAlloc(&q, SIZE));
    OK(cuMemHostAlloc((void **)&pinned, SIZE, 0));
    linear(pinned);
    orders(pinned);
    boxes();
    OK(cuCtxSynchronize());
    return 0;
}
