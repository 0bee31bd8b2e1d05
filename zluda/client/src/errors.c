/* Names and texts of results. */
#include "client.h"

static const struct {
    int code;
    const char *name, *text;
} results[] = {
#include "zl_errors.inc"
};

static int find(CUresult error)
{
    for (unsigned i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].code == (int)error)
            return (int)i;
    return -1;
}

CUresult zl_cuGetErrorName(CUresult error, const char **pStr)
{
    int at = find(error);
    *pStr = at < 0 ? NULL : results[at].name;
    return at < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult zl_cuGetErrorString(CUresult error, const char **pStr)
{
    int at = find(error);
    *pStr = at < 0 ? NULL : results[at].text;
    return at < 0 ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
