/* CUDA arrays: what can be made, what they say of themselves, copies of one row, levels, planes, and their end. */
#include "check.h"

static CUDA_ARRAY3D_DESCRIPTOR describe(size_t width, size_t height, size_t depth, CUarray_format format, unsigned channels,
                                        unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {0};
    d.Width = width;
    d.Height = height;
    d.Depth = depth;
    d.Format = format;
    d.NumChannels = channels;
    d.Flags = flags;
    return d;
}

static CUresult try(size_t width, size_t height, size_t depth, unsigned flags)
{
    CUDA_ARRAY3D_DESCRIPTOR d = describe(width, height, depth, CU_AD_FORMAT_UNSIGNED_INT8, 1, flags), said;
    CUarray array;
    CUresult result = cuArray3DCreate(&array, &d);
    if (result == CUDA_SUCCESS) {
        OK(cuArray3DGetDescriptor(&said, array));
        TRUE(!memcmp(&said, &d, sizeof d));
        OK(cuArrayDestroy(array));
    }
    return result;
}

/* The manual's table of shapes, at its edges; the numbers are the programming guide's for compute capability 8.0. */
static void shapes(void)
{
    enum { LAYERED = CUDA_ARRAY3D_LAYERED, SURFACE = CUDA_ARRAY3D_SURFACE_LDST, CUBE = CUDA_ARRAY3D_CUBEMAP,
           GATHER = CUDA_ARRAY3D_TEXTURE_GATHER };
    static const struct {
        size_t width, height, depth;
        unsigned flags;
        CUresult result;
    } cases[] = {
        {1, 0, 0, 0, CUDA_SUCCESS},
        {131072, 0, 0, 0, CUDA_SUCCESS},
        {131073, 0, 0, 0, CUDA_ERROR_INVALID_VALUE},
        {0, 0, 0, 0, CUDA_ERROR_INVALID_VALUE},
        {0, 4, 4, 0, CUDA_ERROR_INVALID_VALUE},
        {SIZE_MAX, SIZE_MAX, SIZE_MAX, 0, CUDA_ERROR_INVALID_VALUE},
        {32768, 0, 0, SURFACE, CUDA_SUCCESS},
        {32769, 0, 0, SURFACE, CUDA_ERROR_INVALID_VALUE},
        {131072, 2, 0, 0, CUDA_SUCCESS},
        {2, 65536, 0, SURFACE, CUDA_SUCCESS},
        {2, 65537, 0, 0, CUDA_ERROR_INVALID_VALUE},
        {131072, 65536, 0, 0, CUDA_ERROR_OUT_OF_MEMORY},
        {16384, 2, 2, 0, CUDA_SUCCESS},
        {16385, 2, 2, 0, CUDA_ERROR_INVALID_VALUE},
        {2, 2, 32768, 0, CUDA_SUCCESS},
        {8193, 2, 32768, 0, CUDA_ERROR_INVALID_VALUE},
        {2, 2, 32768, SURFACE, CUDA_ERROR_INVALID_VALUE},
        {4, 0, 4, 0, CUDA_ERROR_INVALID_VALUE},
        {4, 0, 2048, LAYERED, CUDA_SUCCESS},
        {4, 0, 2049, LAYERED, CUDA_ERROR_INVALID_VALUE},
        {4, 0, 0, LAYERED, CUDA_ERROR_INVALID_VALUE},
        {32768, 1, 3, LAYERED, CUDA_SUCCESS},
        {32769, 1, 3, LAYERED, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 6, CUBE, CUDA_SUCCESS},
        {8, 8, 12, CUBE, CUDA_ERROR_INVALID_VALUE},
        {8, 4, 6, CUBE, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 12, CUBE | LAYERED, CUDA_SUCCESS},
        {8, 8, 13, CUBE | LAYERED, CUDA_ERROR_INVALID_VALUE},
        {1, 1, 2046, CUBE | LAYERED, CUDA_SUCCESS},
        {1, 1, 2052, CUBE | LAYERED, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 0, GATHER, CUDA_SUCCESS},
        {8, 0, 0, GATHER, CUDA_ERROR_INVALID_VALUE},
        {32769, 1, 0, GATHER, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 0, CUDA_ARRAY3D_SPARSE, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 0, CUDA_ARRAY3D_DEFERRED_MAPPING, CUDA_ERROR_INVALID_VALUE},
        {8, 8, 0, 0x8000, CUDA_ERROR_INVALID_VALUE},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        CUresult result = try(cases[i].width, cases[i].height, cases[i].depth, cases[i].flags);
        if (result != cases[i].result)
            fprintf(stderr, "case %zu gives %d\n", i, (int)result);
        TRUE(result == cases[i].result);
    }
}

/* The bytes of an element: the last one of a row can be copied, one more cannot. */
static void element(CUarray_format format, unsigned channels, size_t bytes)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 5, .Format = format, .NumChannels = channels};
    unsigned char data[80] = {0};
    CUarray array;

    OK(cuArrayCreate(&array, &d));
    OK(cuMemcpyHtoA(array, 4 * bytes, data, bytes));
    EXPECT(cuMemcpyHtoA(array, 4 * bytes, data, 2 * bytes), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoA(array, 5 * bytes, data, bytes), CUDA_ERROR_INVALID_VALUE);
    if (bytes > 1) {
        EXPECT(cuMemcpyHtoA(array, bytes / 2, data, bytes), CUDA_ERROR_INVALID_VALUE);
        EXPECT(cuMemcpyHtoA(array, 0, data, bytes / 2), CUDA_ERROR_INVALID_VALUE);
    }
    OK(cuArrayDestroy(array));
}

static void formats(void)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 8, .Height = 8, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 3};
    CUarray array;

    element(CU_AD_FORMAT_UNSIGNED_INT8, 1, 1);
    element(CU_AD_FORMAT_SIGNED_INT8, 4, 4);
    element(CU_AD_FORMAT_UNSIGNED_INT16, 2, 4);
    element(CU_AD_FORMAT_SIGNED_INT16, 1, 2);
    element(CU_AD_FORMAT_UNSIGNED_INT32, 4, 16);
    element(CU_AD_FORMAT_SIGNED_INT32, 1, 4);
    element(CU_AD_FORMAT_HALF, 4, 8);
    element(CU_AD_FORMAT_FLOAT, 2, 8);
    element(CU_AD_FORMAT_UNORM_INT8X4, 4, 4);
    element(CU_AD_FORMAT_SNORM_INT16X2, 2, 4);
    element(CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4);
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_INVALID_VALUE); /* 3 channels */
    d.NumChannels = 0;
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_INVALID_VALUE);
    d.NumChannels = 1;
    d.Format = (CUarray_format)0x77;
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_INVALID_VALUE);
    d.Format = CU_AD_FORMAT_UNORM_INT8X4; /* has 4 */
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_INVALID_VALUE);
    d.Format = CU_AD_FORMAT_BC1_UNORM;
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuArrayCreate(&array, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayCreate(NULL, &d), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArray3DCreate(&array, NULL), CUDA_ERROR_INVALID_VALUE);
}

/* One-dimensional arrays, each way. */
static void rows(void)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 100, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1}, said;
    uint32_t in[100], out[100] = {0}, *pinned;
    CUarray a, b, plane, bytes;
    CUdeviceptr p;
    CUstream stream;

    for (uint32_t i = 0; i < 100; i++)
        in[i] = i * 2654435761u;
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 400));
    OK(cuArrayCreate(&a, &d));
    OK(cuArrayCreate(&b, &d));
    OK(cuArrayGetDescriptor(&said, a));
    TRUE(!memcmp(&said, &d, sizeof d));
    OK(cuMemcpyHtoA(a, 0, in, 400));
    OK(cuMemcpyAtoA(b, 40, a, 80, 200));           /* b[10..59] = in[20..69] */
    OK(cuMemcpyAtoD(p, b, 40, 200));               /* p[0..49] */
    OK(cuMemcpyDtoA(b, 0, p + 4, 8));              /* b[0..1] = in[21..22] */
    OK(cuMemcpyAtoH(out, b, 0, 240));
    TRUE(out[0] == in[21] && out[1] == in[22] && !memcmp(out + 10, in + 20, 200));
    OK(cuMemcpyDtoH(out, p, 200));
    TRUE(!memcmp(out, in + 20, 200));

    OK(cuMemHostAlloc((void **)&pinned, 400, 0));
    memcpy(pinned, in, 400);
    OK(cuMemcpyHtoAAsync(b, 0, pinned, 400, stream));
    OK(cuMemcpyAtoHAsync(pinned, b, 4, 396, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(!memcmp(pinned, in + 1, 396) && pinned[99] == in[99]);
    in[0] = 77;
    OK(cuMemcpyHtoAAsync(b, 0, in, 400, stream));
    in[0] = 78;                                    /* ordinary memory is taken at the call */
    memset(out, 0, sizeof out);
    OK(cuMemcpyAtoHAsync(out, b, 0, 400, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(out[0] == 77 && !memcmp(out + 1, in + 1, 396));

    OK(cuMemcpyHtoA(a, 0, in, 0));
    EXPECT(cuMemcpyHtoA(a, 0, NULL, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoA(a, SIZE_MAX - 3, in, 8), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyAtoH(NULL, a, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyAtoD(p + 2, a, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyAtoD(0x1000, a, 0, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoA(a, 0, p + 398, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoA((CUarray)p, 0, p, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyDtoA(NULL, 0, p, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpyHtoAAsync(a, 0, in, 4, (CUstream)p), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemcpyAtoHAsync(out, a, 0, 404, stream), CUDA_ERROR_INVALID_VALUE);
    d.Height = 2;                                  /* these copies are for one row */
    OK(cuArrayCreate(&plane, &d));
    EXPECT(cuMemcpyHtoA(plane, 0, in, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(plane));
    d = (CUDA_ARRAY_DESCRIPTOR){.Width = 400, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    OK(cuArrayCreate(&bytes, &d));                 /* elements of another size */
    EXPECT(cuMemcpyAtoA(a, 0, bytes, 0, 4), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(bytes));
    OK(cuArrayDestroy(a));
    EXPECT(cuArrayDestroy(a), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemcpyHtoA(a, 0, in, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayGetDescriptor(&said, a), CUDA_ERROR_INVALID_HANDLE);
    OK(cuArrayDestroy(b));
    OK(cuMemFree(p));
    OK(cuMemFreeHost(pinned));
    OK(cuStreamDestroy(stream));
}

static void levels(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = describe(20, 9, 0, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0), said;
    CUmipmappedArray mipmap, bad;
    CUarray level[5], other;
    uint16_t in[9][20], out[9][20];

    OK(cuMipmappedArrayCreate(&mipmap, &d, 100)); /* clamped to 1 + floor(log2(20)) */
    EXPECT(cuMipmappedArrayGetLevel(&other, mipmap, 5), CUDA_ERROR_INVALID_VALUE);
    for (unsigned i = 0; i < 5; i++) {
        CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_HOST, .srcHost = in, .srcPitch = sizeof *in,
                           .dstMemoryType = CU_MEMORYTYPE_ARRAY};
        size_t width = (size_t)20 >> i, height = 9 >> i ? 9 >> i : 1;
        OK(cuMipmappedArrayGetLevel(&level[i], mipmap, i));
        OK(cuMipmappedArrayGetLevel(&other, mipmap, i));
        TRUE(other == level[i]);
        OK(cuArray3DGetDescriptor(&said, level[i]));
        TRUE(said.Width == width && said.Height == height && said.Depth == 0 && said.Format == d.Format);
        for (int y = 0; y < 9; y++)
            for (int x = 0; x < 20; x++)
                in[y][x] = (uint16_t)(i * 1000 + y * 20 + x);
        c.dstArray = level[i];
        c.WidthInBytes = 2 * width;
        c.Height = height;
        OK(cuMemcpy2D(&c));
        c.WidthInBytes = 2 * width + 2;
        EXPECT(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
        EXPECT(cuArrayDestroy(level[i]), CUDA_ERROR_INVALID_HANDLE); /* goes with the whole */
    }
    for (unsigned i = 0; i < 5; i++) {             /* no level lies in another */
        CUDA_MEMCPY2D c = {.dstMemoryType = CU_MEMORYTYPE_HOST, .dstHost = out, .dstPitch = sizeof *out,
                           .srcMemoryType = CU_MEMORYTYPE_ARRAY, .srcArray = level[i]};
        size_t width = (size_t)20 >> i, height = 9 >> i ? 9 >> i : 1;
        c.WidthInBytes = 2 * width;
        c.Height = height;
        OK(cuMemcpy2D(&c));
        for (size_t y = 0; y < height; y++)
            for (size_t x = 0; x < width; x++)
                TRUE(out[y][x] == i * 1000 + y * 20 + x);
    }
    OK(cuMipmappedArrayDestroy(mipmap));
    EXPECT(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMipmappedArrayGetLevel(&other, mipmap, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuArray3DGetDescriptor(&said, level[0]), CUDA_ERROR_INVALID_HANDLE);

    d = describe(4, 4, 4, CU_AD_FORMAT_FLOAT, 1, 0); /* depth is halved too; layers are not */
    OK(cuMipmappedArrayCreate(&mipmap, &d, 0));      /* at least one level */
    EXPECT(cuMipmappedArrayGetLevel(&other, mipmap, 1), CUDA_ERROR_INVALID_VALUE);
    OK(cuMipmappedArrayDestroy(mipmap));
    for (unsigned flags = 0; flags <= CUDA_ARRAY3D_LAYERED; flags += CUDA_ARRAY3D_LAYERED) {
        d.Flags = flags;
        OK(cuMipmappedArrayCreate(&mipmap, &d, 3));
        OK(cuMipmappedArrayGetLevel(&other, mipmap, 2));
        OK(cuArray3DGetDescriptor(&said, other));
        TRUE(said.Width == 1 && said.Height == 1 && said.Depth == (flags ? 4 : 1) && said.Flags == flags);
        OK(cuMipmappedArrayDestroy(mipmap));
    }
    d = describe(32769, 1, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    EXPECT(cuMipmappedArrayCreate(&bad, &d, 1), CUDA_ERROR_INVALID_VALUE);
    d = describe(32768, 32768, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    EXPECT(cuMipmappedArrayCreate(&bad, &d, 1), CUDA_ERROR_OUT_OF_MEMORY);
    EXPECT(cuMipmappedArrayCreate(&bad, NULL, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMipmappedArrayCreate(NULL, &d, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMipmappedArrayGetLevel(&other, NULL, 0), CUDA_ERROR_INVALID_HANDLE);
}

static void planes(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = describe(16, 8, 0, CU_AD_FORMAT_NV12, 3, 0), said;
    CUarray picture, plane[3], none;
    unsigned char in[128], out[128];

    OK(cuArray3DCreate(&picture, &d));
    OK(cuArrayGetPlane(&plane[0], picture, 0));
    OK(cuArrayGetPlane(&plane[1], picture, 1));
    EXPECT(cuArrayGetPlane(&none, picture, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuArray3DGetDescriptor(&said, plane[0]));
    TRUE(said.Width == 16 && said.Height == 8 && said.NumChannels == 1 && said.Format == CU_AD_FORMAT_UNSIGNED_INT8);
    OK(cuArray3DGetDescriptor(&said, plane[1]));
    TRUE(said.Width == 8 && said.Height == 4 && said.NumChannels == 2 && said.Format == CU_AD_FORMAT_UNSIGNED_INT8);
    for (int way = 0; way < 2; way++)
        for (int i = 0; i < 2; i++) {              /* 16 bytes a row both */
            CUDA_MEMCPY2D c = {.WidthInBytes = 16, .Height = i ? 4 : 8};
            for (int k = 0; k < 128; k++)
                in[k] = (unsigned char)(k + 100 * i);
            c.srcMemoryType = way ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
            c.dstMemoryType = way ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
            c.srcArray = c.dstArray = plane[i];
            c.srcHost = in;
            c.dstHost = out;
            OK(cuMemcpy2D(&c));
            TRUE(!way || !memcmp(in, out, 16 * c.Height));
        }
    EXPECT(cuArrayDestroy(plane[1]), CUDA_ERROR_INVALID_HANDLE);
    OK(cuArrayDestroy(picture));
    EXPECT(cuArrayGetPlane(&none, picture, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuArray3DGetDescriptor(&said, plane[0]), CUDA_ERROR_INVALID_HANDLE);

    d = describe(6, 4, 0, CU_AD_FORMAT_Y444_PLANAR10, 3, 0);
    OK(cuArray3DCreate(&picture, &d));
    for (unsigned i = 0; i < 3; i++) {
        OK(cuArrayGetPlane(&plane[i], picture, i));
        OK(cuArray3DGetDescriptor(&said, plane[i]));
        TRUE(said.Width == 6 && said.Height == 4 && said.NumChannels == 1 && said.Format == CU_AD_FORMAT_UNSIGNED_INT16);
    }
    OK(cuArrayDestroy(picture));
    d = describe(6, 4, 0, CU_AD_FORMAT_P210, 3, 0); /* 4:2:2: half as wide */
    OK(cuArray3DCreate(&picture, &d));
    OK(cuArrayGetPlane(&plane[1], picture, 1));
    OK(cuArray3DGetDescriptor(&said, plane[1]));
    TRUE(said.Width == 3 && said.Height == 4 && said.NumChannels == 2 && said.Format == CU_AD_FORMAT_UNSIGNED_INT16);
    OK(cuArrayDestroy(picture));
    d = describe(7, 4, 0, CU_AD_FORMAT_NV12, 3, 0);
    EXPECT(cuArray3DCreate(&picture, &d), CUDA_ERROR_INVALID_VALUE);
    d = describe(8, 4, 2, CU_AD_FORMAT_NV12, 3, 0);
    EXPECT(cuArray3DCreate(&picture, &d), CUDA_ERROR_INVALID_VALUE);
    d = describe(8, 4, 0, CU_AD_FORMAT_FLOAT, 1, 0);
    OK(cuArray3DCreate(&picture, &d));
    EXPECT(cuArrayGetPlane(&none, picture, 0), CUDA_ERROR_INVALID_VALUE);
    OK(cuArrayDestroy(picture));
}

/* Of arrays that are neither sparse nor mapped later: an error, whatever they are. */
static void properties(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = describe(8, 8, 4, CU_AD_FORMAT_FLOAT, 1, 0);
    CUDA_ARRAY_DESCRIPTOR flat;
    CUDA_ARRAY_MEMORY_REQUIREMENTS requirements;
    CUDA_ARRAY_SPARSE_PROPERTIES sparse;
    CUmipmappedArray mipmap;
    CUarray array;

    OK(cuArray3DCreate(&array, &d));
    OK(cuMipmappedArrayCreate(&mipmap, &d, 2));
    EXPECT(cuArrayGetMemoryRequirements(&requirements, array, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayGetMemoryRequirements(NULL, array, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayGetSparseProperties(&sparse, array), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMipmappedArrayGetMemoryRequirements(&requirements, mipmap, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMipmappedArrayGetSparseProperties(&sparse, mipmap), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMipmappedArrayGetSparseProperties(NULL, mipmap), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayGetDescriptor(&flat, array), CUDA_ERROR_INVALID_VALUE); /* it has a depth */
    EXPECT(cuArrayGetDescriptor(NULL, array), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArray3DGetDescriptor(NULL, array), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArray3DGetDescriptor(&d, NULL), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMipmappedArrayDestroy(mipmap));
    OK(cuArrayDestroy(array));
}

/* Freed while work that uses it is in flight, and with its context. */
static void ends(void)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 1 << 16, .Format = CU_AD_FORMAT_UNSIGNED_INT8, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR picture = describe(64, 64, 0, CU_AD_FORMAT_NV12, 3, 0);
    CUarray array, lost[2];
    CUmipmappedArray mipmap;
    CUdeviceptr p;
    CUcontext other;
    CUstream stream;
    double before;
    unsigned char byte = 0;

    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuMemAlloc(&p, 16));
    OK(cuArrayCreate(&array, &d));
    OK(cuMemsetD8(p, 5, 16));
    OK(cuCtxSynchronize());
    before = seconds();
    OK(launch_nap(kernel("nap"), stream, 200));
    {
        CUDA_MEMCPY2D c = {.srcMemoryType = CU_MEMORYTYPE_DEVICE, .srcDevice = p, .dstMemoryType = CU_MEMORYTYPE_ARRAY,
                           .dstArray = array, .WidthInBytes = 16, .Height = 1};
        OK(cuMemcpy2DAsync(&c, stream));
    }
    OK(cuArrayDestroy(array));
    TRUE(seconds() - before > 0.19);
    OK(cuMemcpyDtoH(&byte, p, 1));
    TRUE(byte == 5);
    OK(cuMemFree(p));
    OK(cuStreamDestroy(stream));

    OK(cuCtxCreate_v2(&other, 0, 0));
    OK(cuArrayCreate(&lost[0], &d));
    OK(cuArray3DCreate(&lost[1], &picture));
    picture.Format = CU_AD_FORMAT_FLOAT;
    picture.NumChannels = 4;
    OK(cuMipmappedArrayCreate(&mipmap, &picture, 7));
    OK(cuCtxDestroy(other));
    EXPECT(cuArrayDestroy(lost[0]), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuArrayDestroy(lost[1]), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMipmappedArrayDestroy(mipmap), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuMemcpyHtoA(lost[0], 0, &byte, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuArrayDestroy(NULL), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuArrayDestroy((CUarray)stream), CUDA_ERROR_INVALID_HANDLE);
}

/* Each thread makes, fills, reads and destroys its own. */
static void *work(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument;
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 64, .Format = CU_AD_FORMAT_UNSIGNED_INT32, .NumChannels = 1};
    CUDA_ARRAY3D_DESCRIPTOR picture = describe(16, 16, 0, CU_AD_FORMAT_NV12, 3, 0);
    CUcontext context;
    CUstream stream;

    OK(cuDevicePrimaryCtxRetain(&context, 0));
    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (unsigned round = 0; round < 40; round++) {
        uint32_t in[64], out[64];
        CUarray array, two;
        for (unsigned i = 0; i < 64; i++)
            in[i] = number << 24 | round << 8 | i;
        OK(cuArrayCreate(&array, &d));
        OK(cuArray3DCreate(&two, &picture));
        OK(cuMemcpyHtoAAsync(array, 0, in, sizeof in, stream));
        OK(cuMemcpyAtoHAsync(out, array, 0, sizeof out, stream));
        OK(cuStreamSynchronize(stream));
        TRUE(!memcmp(in, out, sizeof in));
        OK(cuArrayDestroy(two));
        OK(cuArrayDestroy(array));
    }
    OK(cuStreamDestroy(stream));
    OK(cuDevicePrimaryCtxRelease(0));
    return NULL;
}

static void threads(void)
{
    pthread_t thread[8];

    for (uintptr_t i = 0; i < 8; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    for (int i = 0; i < 8; i++)
        pthread_join(thread[i], NULL);
}

int main(void)
{
    CUDA_ARRAY_DESCRIPTOR d = {.Width = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUcontext context;
    CUarray array;
    size_t before, after, total;

    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_NOT_INITIALIZED);
    OK(cuInit(0));
    EXPECT(cuArrayCreate(&array, &d), CUDA_ERROR_INVALID_CONTEXT);
    context = start();
    (void)kernel("nap");
    OK(cuMemGetInfo(&before, &total));
    shapes();
    formats();
    rows();
    levels();
    planes();
    properties();
    ends();
    threads();
    OK(cuMemGetInfo(&after, &total));
    TRUE(before == after);
    OK(cuDevicePrimaryCtxReset(0));
    (void)context;
    return 0;
}
