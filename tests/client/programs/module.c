/* Modules, functions, libraries. */
#include "check.h"

int main(void)
{
    CUcontext context = start();
    CUmodule module, again, from;
    CUfunction function, same, all[16];
    CUlibrary library, of;
    CUkernel kern, kernels[16];
    CUdeviceptr address;
    size_t size, offset, count_z;
    unsigned count;
    uint32_t value;
    int attribute;
    const char *name;
    char error[512] = "untouched", info[64] = "untouched";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL, CU_JIT_WALL_TIME};
    void *values[] = {error, (void *)sizeof error, info, (void *)sizeof info, (void *)3, NULL};
    static const char small[] = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry scale() { ret; }\n";
    static const char broken[] = ".version 7.8\n.target sm_75\n.address_size 64\n.visible .entry scale( { ret; }\n";
    CUfunctionLoadingState state;
    CUmoduleLoadingMode mode;
    char *padded;
    FILE *file;

    OK(cuModuleLoadData(&module, ptx));
    OK(cuModuleLoadData(&again, ptx));
    TRUE(module != again);
    EXPECT(cuModuleLoadData(&again, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleLoadData(&again, ""), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(cuModuleLoadData(&again, "this is no image"), CUDA_ERROR_INVALID_IMAGE);
    EXPECT(cuModuleLoadData(&again, broken), CUDA_ERROR_INVALID_PTX);

    OK(cuModuleGetFunction(&function, module, "scale"));
    OK(cuModuleGetFunction(&same, module, "scale"));
    TRUE(function == same);
    EXPECT(cuModuleGetFunction(&same, module, "nobody"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetFunction(&same, module, NULL), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleGetFunction(&same, (CUmodule)context, "scale"), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuModuleGetFunction(&same, module, "unlowered"), CUDA_ERROR_INVALID_PTX);
    OK(cuModuleGetFunctionCount(&count, module));
    TRUE(count == 9);
    OK(cuModuleEnumerateFunctions(all, 16, module));
    OK(cuFuncGetName(&name, all[0]));
    TRUE(!strcmp(name, "add_one"));
    OK(cuFuncIsLoaded(&state, all[2]));
    TRUE(state == CU_FUNCTION_LOADING_STATE_UNLOADED);
    OK(cuFuncLoad(all[2]));
    OK(cuFuncIsLoaded(&state, all[2]));
    TRUE(state == CU_FUNCTION_LOADING_STATE_LOADED);
    TRUE(all[1] == function);
    OK(cuFuncGetModule(&from, function));
    TRUE(from == module);
    OK(cuFuncGetParamInfo(function, 2, &offset, &size));
    TRUE(offset == 12 && size == 4);
    OK(cuFuncGetParamInfo(function, 0, &offset, NULL));
    TRUE(offset == 0);
    EXPECT(cuFuncGetParamInfo(function, 3, &offset, &size), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncGetParamCount(function, &count_z));
    TRUE(count_z == 3);
    OK(cuFuncGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    TRUE(attribute == 512);
    OK(cuFuncGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_PTX_VERSION, function));
    TRUE(attribute == 78);
    EXPECT(cuFuncGetAttribute(&attribute, (CUfunction_attribute)77, function), CUDA_ERROR_INVALID_VALUE);
    OK(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_SHARED));
    OK(cuModuleGetLoadingMode(&mode));
    TRUE(mode == CU_MODULE_LAZY_LOADING);

    /* Variables. */
    OK(cuModuleGetGlobal(&address, &size, module, "counter"));
    TRUE(size == 4 && address);
    OK(cuMemcpyDtoH(&value, address, 4));
    TRUE(value == 42);
    value = 43;
    OK(cuMemcpyHtoD(address, &value, 4));
    OK(cuModuleGetGlobal(NULL, &size, module, "counter"));
    EXPECT(cuModuleGetGlobal(&address, &size, module, "nothing"), CUDA_ERROR_NOT_FOUND);
    EXPECT(cuModuleGetGlobal(NULL, NULL, module, "counter"), CUDA_ERROR_INVALID_VALUE);

    /* Logs. */
    OK(cuModuleLoadDataEx(&again, small, 6, options, values));
    TRUE((size_t)values[1] == 0 && error[0] == 0);
    OK(cuModuleUnload(again));
    values[1] = (void *)sizeof error;
    values[3] = (void *)sizeof info;
    EXPECT(cuModuleLoadDataEx(&again, broken, 6, options, values), CUDA_ERROR_INVALID_PTX);
    TRUE((size_t)values[1] == strlen(error) + 1 && strstr(error, ":4:"));
    options[0] = (CUjit_option)1000;
    EXPECT(cuModuleLoadDataEx(&again, small, 6, options, values), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuModuleLoadDataEx(&again, small, 1, NULL, NULL), CUDA_ERROR_INVALID_VALUE);

    /* An image too large for the ring travels through the window. */
    padded = malloc((1 << 20) + sizeof ptx);
    strcpy(padded, ptx);
    memset(padded + strlen(ptx), '\n', 1 << 20);
    padded[strlen(ptx) + (1 << 20) - 1] = 0;
    OK(cuModuleLoadData(&again, padded));
    OK(cuModuleGetFunction(&same, again, "shape"));
    OK(cuModuleUnload(again));
    EXPECT(cuModuleUnload(again), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuFuncGetName(&name, same), CUDA_ERROR_INVALID_HANDLE);

    EXPECT(cuModuleLoad(&again, "/nonexistent"), CUDA_ERROR_FILE_NOT_FOUND);
    file = fopen("module.ptx", "w");
    fputs(small, file);
    fclose(file);
    OK(cuModuleLoad(&again, "module.ptx"));
    OK(cuModuleUnload(again));
    unlink("module.ptx");

    /* Libraries load themselves where they are used; a kernel may stand for its function. */
    OK(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0));
    EXPECT(cuLibraryLoadData(&of, broken, NULL, NULL, 0, NULL, NULL, 0), CUDA_ERROR_INVALID_PTX);
    OK(cuLibraryGetKernelCount(&count, library));
    TRUE(count == 9);
    OK(cuLibraryEnumerateKernels(kernels, 16, library));
    OK(cuLibraryGetKernel(&kern, library, "shape"));
    TRUE(kern == kernels[2]);
    EXPECT(cuLibraryGetKernel(&kern, library, "nobody"), CUDA_ERROR_NOT_FOUND);
    OK(cuKernelGetName(&name, kern));
    TRUE(!strcmp(name, "shape"));
    OK(cuKernelGetLibrary(&of, kern));
    TRUE(of == library);
    OK(cuKernelGetParamInfo(kern, 0, &offset, &size));
    TRUE(size == 8);
    OK(cuKernelGetParamCount(kern, &count_z));
    TRUE(count_z == 1);
    OK(cuKernelGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kern, 0));
    TRUE(attribute == 16);
    OK(cuKernelGetFunction(&function, kern));
    OK(cuLibraryGetModule(&from, library));
    OK(cuModuleGetFunction(&same, from, "shape"));
    TRUE(same == function);
    OK(cuLibraryGetGlobal(&address, &size, library, "counter"));
    TRUE(size == 4);
    {
        CUdeviceptr out;
        void *arguments[] = {&out};
        uint32_t extents[6];
        OK(cuMemAlloc(&out, 64));
        OK(cuLaunchKernel((CUfunction)kern, 9, 1, 1, 1, 1, 1, 0, NULL, arguments, NULL));
        OK(cuMemcpyDtoH(extents, out, sizeof extents));
        TRUE(extents[0] == 9);
    }
    OK(cuLibraryUnload(library));
    EXPECT(cuLibraryUnload(library), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuKernelGetFunction(&function, kern), CUDA_ERROR_INVALID_HANDLE);
    return 0;
}
