/* Entry points by name and version. */
#include "client.h"

#include <string.h>

static const struct symbol {
    const char *name, *symbol;
    int since;
    void *plain, *per_thread;
} symbols[] = {
#include "zl_symbols.inc"
};

/* Variants for the per-thread default stream came with CUDA 7.0; before that only the plain forms are there. */
enum { PER_THREAD_SINCE = 7000 };

CUresult zl_cuGetProcAddress_v2(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags,
                                CUdriverProcAddressQueryResult *symbolStatus)
{
    const cuuint64_t known = CU_GET_PROC_ADDRESS_LEGACY_STREAM | CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
    CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;

    *pfn = NULL;
    if (!symbol || !*symbol || (flags & ~known) || flags == known || cudaVersion > CUDA_VERSION)
        return CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < sizeof symbols / sizeof *symbols && !*pfn; i++) { /* newest first within a name */
        const struct symbol *s = &symbols[i];
        bool per_thread = (flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && cudaVersion >= PER_THREAD_SINCE;
        if (strcmp(s->name, symbol))
            continue;
        status = CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT;
        if (cudaVersion >= s->since)
            *pfn = per_thread && s->per_thread ? s->per_thread : s->plain;
    }
    if (symbolStatus)
        *symbolStatus = *pfn ? CU_GET_PROC_ADDRESS_SUCCESS : status;
    return CUDA_SUCCESS;                 /* what is not there is told by a null pointer, says the manual */
}

CUresult zl_cuGetProcAddress(const char *symbol, void **pfn, int cudaVersion, cuuint64_t flags)
{
    CUresult result = zl_cuGetProcAddress_v2(symbol, pfn, cudaVersion, flags, NULL);
    return result == CUDA_SUCCESS && !*pfn ? CUDA_ERROR_NOT_FOUND : result; /* the form of CUDA 11 */
}

CUresult zl_cuGetExportTable(const void **ppExportTable, const CUuuid *pExportTableId)
{
    *ppExportTable = NULL;
    /* Undocumented tables of NVIDIA's driver; none of them is imitated. */
    return pExportTableId ? CUDA_ERROR_NOT_FOUND : CUDA_ERROR_INVALID_VALUE;
}
