/* What an array's elements are: bytes, and the planes of formats that have several. CUDA driver API, CUarray_format. */
#include "client.h"

struct format {
    CUarray_format format;
    unsigned channels, bytes;            /* of an element; no bytes: planar */
    unsigned count;
    zl_plane planes[ZL_PLANES];
};

#define U8 CU_AD_FORMAT_UNSIGNED_INT8
#define U16 CU_AD_FORMAT_UNSIGNED_INT16
/* Luminance, then both chrominances together, which are `narrower` and `lower` by these shifts. */
#define SEMIPLANAR(name, depth, narrower, lower) {name, 3, 0, 2, {{depth, 1, 0, 0}, {depth, 2, narrower, lower}}}
#define PLANAR(name, depth, narrower, lower)                                                                                 \
    {name, 3, 0, 3, {{depth, 1, 0, 0}, {depth, 1, narrower, lower}, {depth, 1, narrower, lower}}}
#define PACKED(name, channels, bytes) {name, channels, bytes, 0, {{0}}}

/* Those whose channels are not the program's to choose. */
static const struct format fixed[] = {
    PACKED(CU_AD_FORMAT_UNORM_INT8X1, 1, 1),
    PACKED(CU_AD_FORMAT_UNORM_INT8X2, 2, 2),
    PACKED(CU_AD_FORMAT_UNORM_INT8X4, 4, 4),
    PACKED(CU_AD_FORMAT_UNORM_INT16X1, 1, 2),
    PACKED(CU_AD_FORMAT_UNORM_INT16X2, 2, 4),
    PACKED(CU_AD_FORMAT_UNORM_INT16X4, 4, 8),
    PACKED(CU_AD_FORMAT_SNORM_INT8X1, 1, 1),
    PACKED(CU_AD_FORMAT_SNORM_INT8X2, 2, 2),
    PACKED(CU_AD_FORMAT_SNORM_INT8X4, 4, 4),
    PACKED(CU_AD_FORMAT_SNORM_INT16X1, 1, 2),
    PACKED(CU_AD_FORMAT_SNORM_INT16X2, 2, 4),
    PACKED(CU_AD_FORMAT_SNORM_INT16X4, 4, 8),
    PACKED(CU_AD_FORMAT_UNORM_INT_101010_2, 4, 4),
    PACKED(CU_AD_FORMAT_YUY2, 2, 2),
    PACKED(CU_AD_FORMAT_Y210, 2, 4),
    PACKED(CU_AD_FORMAT_Y216, 2, 4),
    PACKED(CU_AD_FORMAT_AYUV, 4, 4),
    PACKED(CU_AD_FORMAT_Y410, 4, 4),
    PACKED(CU_AD_FORMAT_Y416, 4, 8),
    SEMIPLANAR(CU_AD_FORMAT_NV12, U8, 1, 1),
    SEMIPLANAR(CU_AD_FORMAT_P010, U16, 1, 1),
    SEMIPLANAR(CU_AD_FORMAT_P016, U16, 1, 1),
    SEMIPLANAR(CU_AD_FORMAT_NV16, U8, 1, 0),
    SEMIPLANAR(CU_AD_FORMAT_P210, U16, 1, 0),
    SEMIPLANAR(CU_AD_FORMAT_P216, U16, 1, 0),
    SEMIPLANAR(CU_AD_FORMAT_YUV444_8bit_SemiPlanar, U8, 0, 0),
    SEMIPLANAR(CU_AD_FORMAT_YUV444_16bit_SemiPlanar, U16, 0, 0),
    SEMIPLANAR(CU_AD_FORMAT_UINT8_SEMIPLANAR_420, U8, 1, 1),
    SEMIPLANAR(CU_AD_FORMAT_UINT16_SEMIPLANAR_420, U16, 1, 1),
    SEMIPLANAR(CU_AD_FORMAT_UINT8_SEMIPLANAR_422, U8, 1, 0),
    SEMIPLANAR(CU_AD_FORMAT_UINT16_SEMIPLANAR_422, U16, 1, 0),
    SEMIPLANAR(CU_AD_FORMAT_UINT8_SEMIPLANAR_444, U8, 0, 0),
    SEMIPLANAR(CU_AD_FORMAT_UINT16_SEMIPLANAR_444, U16, 0, 0),
    PLANAR(CU_AD_FORMAT_Y444_PLANAR8, U8, 0, 0),
    PLANAR(CU_AD_FORMAT_Y444_PLANAR10, U16, 0, 0),
    PLANAR(CU_AD_FORMAT_UINT8_PLANAR_420, U8, 1, 1),
    PLANAR(CU_AD_FORMAT_UINT16_PLANAR_420, U16, 1, 1),
    PLANAR(CU_AD_FORMAT_UINT8_PLANAR_422, U8, 1, 0),
    PLANAR(CU_AD_FORMAT_UINT16_PLANAR_422, U16, 1, 0),
    PLANAR(CU_AD_FORMAT_UINT8_PLANAR_444, U8, 0, 0),
    PLANAR(CU_AD_FORMAT_UINT16_PLANAR_444, U16, 0, 0),
};

/* Bytes of a channel, or 0. */
static unsigned channel_bytes(CUarray_format format)
{
    switch (format) {
    case CU_AD_FORMAT_UNSIGNED_INT8:
    case CU_AD_FORMAT_SIGNED_INT8:
        return 1;
    case CU_AD_FORMAT_UNSIGNED_INT16:
    case CU_AD_FORMAT_SIGNED_INT16:
    case CU_AD_FORMAT_HALF:
        return 2;
    case CU_AD_FORMAT_UNSIGNED_INT32:
    case CU_AD_FORMAT_SIGNED_INT32:
    case CU_AD_FORMAT_FLOAT:
        return 4;
    default:
        return 0;
    }
}

static bool not_built(CUarray_format format)
{
    return (format >= CU_AD_FORMAT_BC1_UNORM && format <= CU_AD_FORMAT_BC7_UNORM_SRGB) ||
           format == CU_AD_FORMAT_UINT8_PACKED_422 || format == CU_AD_FORMAT_UINT8_PACKED_444;
}

CUresult zl_format_find(CUarray_format format, unsigned channels, unsigned *element, const zl_plane **planes, unsigned *count)
{
    unsigned bytes = channel_bytes(format);

    *planes = NULL;
    *count = 0;
    *element = bytes * channels;
    if (bytes)
        return channels == 1 || channels == 2 || channels == 4 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        if (fixed[i].format != format)
            continue;
        *element = fixed[i].bytes;
        *planes = fixed[i].planes;
        *count = fixed[i].count;
        return channels == fixed[i].channels ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (not_built(format))
        return zl_not_supported("cuArrayCreate", "block-compressed and packed YUV formats");
    return CUDA_ERROR_INVALID_VALUE;
}
