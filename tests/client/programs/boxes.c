/* 2D and 3D copies between ordinary, pinned and device memory and arrays, against a model; fills of all widths. */
#include "check.h"

enum { PITCH = 48, ROWS = 7, SLICES = 5, SIZE = PITCH * ROWS * SLICES };
enum place { HOST, PINNED, DEVICE, UNIFIED_HOST, UNIFIED_DEVICE, ARRAY, PLACES };

static unsigned char model[SIZE], host[2][SIZE], *pinned[2], out[SIZE];
static CUdeviceptr device[2];
static CUarray array[2];
static uint32_t seed = 1;

static uint32_t draw(uint32_t below)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % below;
}

static CUDA_MEMCPY3D whole(CUmemorytype from, CUmemorytype to)
{
    CUDA_MEMCPY3D c = {0};
    c.srcMemoryType = from;
    c.dstMemoryType = to;
    c.srcPitch = c.dstPitch = PITCH;
    c.srcHeight = c.dstHeight = ROWS;
    c.WidthInBytes = PITCH;
    c.Height = ROWS;
    c.Depth = SLICES;
    return c;
}

/* Puts all of `data` into a place, or takes it out. */
static void move(enum place place, int which, unsigned char *data, int in)
{
    CUDA_MEMCPY3D c = whole(in ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY, in ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST);
    unsigned char *mine = place == PINNED ? pinned[which] : host[which];

    switch (place) {
    case HOST:
    case UNIFIED_HOST:
    case PINNED:
        memcpy(in ? mine : data, in ? data : mine, SIZE);
        break;
    case DEVICE:
    case UNIFIED_DEVICE:
        OK(in ? cuMemcpyHtoD(device[which], data, SIZE) : cuMemcpyDtoH(data, device[which], SIZE));
        break;
    default:
        c.srcArray = c.dstArray = array[which];
        c.srcHost = c.dstHost = data;
        OK(cuMemcpy3D(&c));
    }
}

static CUmemorytype type_of(enum place place)
{
    return place == ARRAY                  ? CU_MEMORYTYPE_ARRAY
           : place == DEVICE               ? CU_MEMORYTYPE_DEVICE
           : place == HOST || place == PINNED ? CU_MEMORYTYPE_HOST
                                           : CU_MEMORYTYPE_UNIFIED;
}

static void copy_some(enum place from, enum place to, CUstream stream, int async, int flat)
{
    static unsigned char source[SIZE], target[SIZE];
    CUDA_MEMCPY3D c = {0};
    size_t sx = draw(8) * 4, sy = draw(3), sz = draw(2), dx = draw(8) * 4, dy = draw(3), dz = draw(2);

    for (int i = 0; i < SIZE; i++) {
        source[i] = (unsigned char)draw(256);
        model[i] = target[i] = (unsigned char)draw(256);
    }
    c.WidthInBytes = (1 + draw(4)) * 4;
    c.Height = 1 + draw(4);
    c.Depth = flat ? 1 : 1 + draw(3);
    if (flat)
        sz = dz = 0;
    for (size_t z = 0; z < c.Depth; z++)
        for (size_t y = 0; y < c.Height; y++)
            for (size_t x = 0; x < c.WidthInBytes; x++)
                model[((dz + z) * ROWS + dy + y) * PITCH + dx + x] = source[((sz + z) * ROWS + sy + y) * PITCH + sx + x];
    move(from, 0, source, 1);
    move(to, 1, target, 1);
    c.srcMemoryType = type_of(from);
    c.srcHost = from == PINNED ? pinned[0] : host[0];
    c.srcDevice = from == UNIFIED_HOST ? (CUdeviceptr)(uintptr_t)host[0] : device[0];
    c.srcArray = array[0];
    c.srcXInBytes = sx;
    c.srcY = sy;
    c.srcZ = sz;
    c.dstMemoryType = type_of(to);
    c.dstHost = to == PINNED ? pinned[1] : host[1];
    c.dstDevice = to == UNIFIED_HOST ? (CUdeviceptr)(uintptr_t)host[1] : device[1];
    c.dstArray = array[1];
    c.dstXInBytes = dx;
    c.dstY = dy;
    c.dstZ = dz;
    c.srcPitch = from == ARRAY ? 3 : PITCH;        /* ignored of arrays */
    c.dstPitch = to == ARRAY ? 3 : PITCH;
    c.srcHeight = from == ARRAY ? 1 : ROWS;
    c.dstHeight = to == ARRAY ? 1 : ROWS;
    if (flat) {
        CUDA_MEMCPY2D f = {.srcXInBytes = sx, .srcY = sy, .srcMemoryType = c.srcMemoryType, .srcHost = c.srcHost,
                           .srcDevice = c.srcDevice, .srcArray = c.srcArray, .srcPitch = c.srcPitch, .dstXInBytes = dx, .dstY = dy,
                           .dstMemoryType = c.dstMemoryType, .dstHost = c.dstHost, .dstDevice = c.dstDevice,
                           .dstArray = c.dstArray, .dstPitch = c.dstPitch, .WidthInBytes = c.WidthInBytes, .Height = c.Height};
        OK(async ? cuMemcpy2DAsync(&f, stream) : draw(2) ? cuMemcpy2D(&f) : cuMemcpy2DUnaligned(&f));
    } else {
        OK(async ? cuMemcpy3DAsync(&c, stream) : cuMemcpy3D(&c));
    }
    if (async)
        OK(cuStreamSynchronize(stream));
    move(to, 1, out, 0);
    TRUE(!memcmp(out, model, SIZE));
}

static void errors(void)
{
    CUDA_MEMCPY3D good = whole(CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE), c;

    good.srcHost = host[0];
    good.dstDevice = device[0];
    OK(cuMemcpy3D(&good));
#define BAD(change)                                                                                                    \
    do {                                                                                                               \
        c = good;                                                                                                      \
        change;                                                                                                        \
        EXPECT(cuMemcpy3D(&c), CUDA_ERROR_INVALID_VALUE);                                                              \
        EXPECT(cuMemcpy3DAsync(&c, NULL), CUDA_ERROR_INVALID_VALUE);                                                   \
    } while (0)
    BAD(c.srcLOD = 1);
    BAD(c.dstLOD = 1);
    BAD(c.reserved0 = &c);
    BAD(c.srcMemoryType = (CUmemorytype)0);
    BAD(c.dstMemoryType = (CUmemorytype)5);
    BAD(c.srcHost = NULL);
    BAD(c.dstDevice = 0);
    BAD(c.dstDevice = (CUdeviceptr)(uintptr_t)host[1]); /* not device memory */
    BAD(c.dstPitch = PITCH - 1);
    BAD(c.srcPitch = PITCH - 1);
    BAD(c.srcPitch = (size_t)1 << 31);             /* above CU_DEVICE_ATTRIBUTE_MAX_PITCH */
    BAD(c.dstHeight = ROWS - 1);
    BAD(c.srcHeight = ROWS - 1);
    BAD(c.dstXInBytes = 4);                        /* pitch < width + x */
    BAD(c.dstY = 1);
    BAD(c.dstZ = 1);                               /* beyond the allocation */
    BAD(c.Depth = SLICES + 1);
    BAD(c.Depth = SIZE_MAX);
    BAD(c.dstZ = SIZE_MAX / PITCH);
    BAD(c.WidthInBytes = SIZE_MAX - 8; c.srcPitch = c.dstPitch = 0);
    BAD(c.Height = SIZE_MAX / 4; c.srcHeight = c.dstHeight = 0);
    BAD(c.srcXInBytes = SIZE_MAX; c.srcPitch = 0);
    BAD(c.dstMemoryType = CU_MEMORYTYPE_ARRAY; c.dstArray = NULL);
    BAD(c.dstMemoryType = CU_MEMORYTYPE_ARRAY; c.dstArray = (CUarray)(uintptr_t)&c);
    good.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    good.dstArray = array[0];
    OK(cuMemcpy3D(&good));
    BAD(c.dstXInBytes = 2; c.WidthInBytes = 4);    /* elements have 4 bytes */
    BAD(c.WidthInBytes = 6);
    BAD(c.dstXInBytes = 4);
    BAD(c.dstY = 1);
    BAD(c.dstZ = 1);
    BAD(c.dstZ = SIZE_MAX);
    BAD(c.dstY = SIZE_MAX - 2);
#undef BAD
    EXPECT(cuMemcpy3D(NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DAsync(NULL, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemcpy3DAsync(&good, (CUstream)(uintptr_t)&c), CUDA_ERROR_INVALID_HANDLE);
    good.Depth = 0;                                /* nothing to copy */
    OK(cuMemcpy3D(&good));
    good.Depth = 1;
    good.srcHeight = 0;                            /* "may be 0 if Depth==1" */
    good.srcPitch = 0;
    OK(cuMemcpy3D(&good));
}

/* In the stream's order: a nap, then a copy, while the source changes after a synchronous copy in another stream. */
static void order(CUstream stream)
{
    CUDA_MEMCPY3D c = whole(CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_ARRAY);
    CUfunction nap = kernel("nap");
    double before;

    OK(cuMemsetD8(device[0], 1, SIZE));
    OK(cuCtxSynchronize());
    before = seconds();
    OK(launch_nap(nap, stream, 100));
    OK(cuMemsetD8Async(device[0], 2, SIZE, stream));
    c.srcDevice = device[0];
    c.dstArray = array[0];
    OK(cuMemcpy3DAsync(&c, stream));
    TRUE(seconds() - before < 0.09);               /* it does not wait */
    OK(cuMemsetD8Async(device[0], 3, SIZE, stream));
    c = whole(CU_MEMORYTYPE_ARRAY, CU_MEMORYTYPE_HOST);
    c.srcArray = array[0];
    c.dstHost = out;
    OK(cuMemcpy3DAsync(&c, stream));
    OK(cuStreamSynchronize(stream));
    for (int i = 0; i < SIZE; i++)
        TRUE(out[i] == 2);
}

/* One fill of `bytes` wide elements against a model. */
static void fill(unsigned bytes, size_t at, size_t pitch, size_t width, size_t height, int async, CUstream stream)
{
    uint32_t value = draw(0xFFFFFF) * 251u + draw(256);
    CUdeviceptr p = device[0] + at;

    for (int i = 0; i < SIZE; i++)
        model[i] = (unsigned char)draw(256);
    OK(cuMemcpyHtoD(device[0], model, SIZE));
    for (size_t y = 0; y < height; y++)
        for (size_t x = 0; x < width; x++)
            memcpy(model + at + y * pitch + x * bytes, &value, bytes);
    if (height == 1 && draw(2)) {
        switch (bytes) {
        case 1:
            OK(async ? cuMemsetD8Async(p, (unsigned char)value, width, stream) : cuMemsetD8(p, (unsigned char)value, width));
            break;
        case 2:
            OK(async ? cuMemsetD16Async(p, (unsigned short)value, width, stream) : cuMemsetD16(p, (unsigned short)value, width));
            break;
        default:
            OK(async ? cuMemsetD32Async(p, value, width, stream) : cuMemsetD32(p, value, width));
        }
    } else {
        switch (bytes) {
        case 1:
            OK(async ? cuMemsetD2D8Async(p, pitch, (unsigned char)value, width, height, stream)
                     : cuMemsetD2D8(p, pitch, (unsigned char)value, width, height));
            break;
        case 2:
            OK(async ? cuMemsetD2D16Async(p, pitch, (unsigned short)value, width, height, stream)
                     : cuMemsetD2D16(p, pitch, (unsigned short)value, width, height));
            break;
        default:
            OK(async ? cuMemsetD2D32Async(p, pitch, value, width, height, stream) : cuMemsetD2D32(p, pitch, value, width, height));
        }
    }
    if (async)
        OK(cuStreamSynchronize(stream));
    OK(cuMemcpyDtoH(out, device[0], SIZE));
    TRUE(!memcmp(out, model, SIZE));
}

static void bad_fills(CUstream stream)
{
    CUdeviceptr p = device[0];

    EXPECT(cuMemsetD16(p + 1, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD16Async(p + 1, 0, 1, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD32(p + 2, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D16(p, 7, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D32(p, 10, 0, 2, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D32Async(p + 2, 12, 0, 2, 2, stream), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D8(p, 3, 0, 4, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D8(p, (size_t)1 << 31, 0, 4, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D8(p, PITCH, 0, PITCH, SIZE / PITCH + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D32(p, 16, 0, SIZE_MAX / 2, 2), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD2D32(p, 16, 0, 4, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD16(p, 0, SIZE_MAX), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8(p, 0, SIZE + 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8(p + SIZE, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8(0, 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8((CUdeviceptr)(uintptr_t)host[0], 0, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuMemsetD8Async(p, 0, 1, (CUstream)(uintptr_t)p), CUDA_ERROR_INVALID_HANDLE);
    OK(cuMemsetD2D8(p, 0, 0, 0, 5));
    OK(cuMemsetD2D16Async(p, 0, 0, 5, 0, stream));
    OK(cuMemsetD2D32(p, 1, 0, 4, 1));              /* "unused if Height is 1" */
}

int main(void)
{
    CUDA_ARRAY3D_DESCRIPTOR d = {.Width = PITCH / 4, .Height = ROWS, .Depth = SLICES, .Format = CU_AD_FORMAT_UNSIGNED_INT8,
                                 .NumChannels = 4};
    CUstream stream;

    start();
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    for (int i = 0; i < 2; i++) {
        OK(cuMemAlloc(&device[i], SIZE));
        OK(cuMemHostAlloc((void **)&pinned[i], SIZE, 0));
        OK(cuArray3DCreate(&array[i], &d));
    }
    for (int from = 0; from < PLACES; from++)
        for (int to = 0; to < PLACES; to++)
            for (int round = 0; round < 4; round++)
                copy_some((enum place)from, (enum place)to, stream, round % 2, round / 2);
    errors();
    order(stream);
    for (int round = 0; round < 60; round++) {
        unsigned bytes = 1u << draw(3);
        size_t width = 1 + draw(8), height = 1 + draw(4), pitch = width * bytes + draw(3) * bytes;
        fill(bytes, draw(20) * bytes, pitch, width, height, round % 2, stream);
    }
    bad_fills(stream);
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH(out, device[0], SIZE));        /* nothing is broken */
    return 0;
}
