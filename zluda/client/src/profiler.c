/* cudaProfiler.h. No profiling tool is attached to a program here: there is nothing to start, to stop or to configure. */
#include "client.h"

CUresult zl_cuProfilerStart(zl_context *context)
{
    (void)context;                       /* "by the active profiling tool for the current context" */
    return CUDA_SUCCESS;
}

CUresult zl_cuProfilerStop(zl_context *context)
{
    (void)context;
    return CUDA_SUCCESS;
}

CUresult zl_cuProfilerInitialize(zl_context *context, const char *configFile, const char *outputFile, CUoutput_mode outputMode)
{
    (void)context;
    (void)outputMode;
    return configFile && outputFile ? CUDA_ERROR_PROFILER_DISABLED : CUDA_ERROR_INVALID_VALUE;
}
