/* The same measurements in C on OpenCL itself, with kernels in OpenCL C: what driver_bench.c is compared with.
   opencl_bench LIBRARY drain FILE N | LIBRARY kernel FILE NAME vector_add|matmul SIZE REPEATS
   Declares what it uses of OpenCL 1.2 (Khronos specification), so that no headers need to be installed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void *handle;
enum { CL_DEVICE_TYPE_CPU = 2, CL_MEM_READ_WRITE = 1, CL_TRUE = 1 };

static int (*clGetPlatformIDs)(uint32_t, handle *, uint32_t *);
static int (*clGetDeviceIDs)(handle, uint64_t, uint32_t, handle *, uint32_t *);
static handle (*clCreateContext)(const intptr_t *, uint32_t, const handle *, void *, void *, int *);
static handle (*clCreateCommandQueue)(handle, handle, uint64_t, int *);
static handle (*clCreateProgramWithSource)(handle, uint32_t, const char **, const size_t *, int *);
static int (*clBuildProgram)(handle, uint32_t, const handle *, const char *, void *, void *);
static handle (*clCreateKernel)(handle, const char *, int *);
static handle (*clCreateBuffer)(handle, uint64_t, size_t, void *, int *);
static int (*clSetKernelArg)(handle, uint32_t, size_t, const void *);
static int (*clEnqueueNDRangeKernel)(handle, handle, uint32_t, const size_t *, const size_t *, const size_t *, uint32_t, const handle *,
                                     handle *);
static int (*clEnqueueWriteBuffer)(handle, handle, uint32_t, size_t, size_t, const void *, uint32_t, const handle *, handle *);
static int (*clEnqueueReadBuffer)(handle, handle, uint32_t, size_t, size_t, void *, uint32_t, const handle *, handle *);
static int (*clFinish)(handle);

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(int result, const char *call, int line)
{
    if (result == 0)
        return;
    fprintf(stderr, "opencl_bench.c:%d: %s: OpenCL error %d\n", line, call, result);
    exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

static void bind(void *library)
{
#define BIND(name) \
    if (!(*(void **)&name = dlsym(library, #name))) { \
        fprintf(stderr, "opencl_bench: no %s in the OpenCL library\n", #name); \
        exit(1); \
    }
    BIND(clGetPlatformIDs)
    BIND(clGetDeviceIDs)
    BIND(clCreateContext)
    BIND(clCreateCommandQueue)
    BIND(clCreateProgramWithSource)
    BIND(clBuildProgram)
    BIND(clCreateKernel)
    BIND(clCreateBuffer)
    BIND(clSetKernelArg)
    BIND(clEnqueueNDRangeKernel)
    BIND(clEnqueueWriteBuffer)
    BIND(clEnqueueReadBuffer)
    BIND(clFinish)
}

static handle context, device, queue;

static handle load(const char *path, const char *name)
{
    int error;
    char *text = calloc(1, 1 << 20);
    const char *source = text;
    FILE *file = fopen(path, "rb");
    if (!text || !file || fread(text, 1, (1 << 20) - 1, file) == 0) {
        perror(path);
        exit(1);
    }
    fclose(file);
    handle program = clCreateProgramWithSource(context, 1, &source, NULL, &error);
    CHECK(error);
    CHECK(clBuildProgram(program, 1, &device, "", NULL, NULL));
    handle kernel = clCreateKernel(program, name, &error);
    CHECK(error);
    free(text);
    return kernel;
}

static void drain(const char *path, long n)
{
    handle kernel = load(path, "tiny");
    int error, value = 1;
    size_t one = 1;
    handle buffer = clCreateBuffer(context, CL_MEM_READ_WRITE, 4096, NULL, &error);
    CHECK(error);
    for (long i = -100; i < n; i++) {
        static double begin;
        if (i == 0) {
            CHECK(clFinish(queue));
            begin = now();
        }
        CHECK(clSetKernelArg(kernel, 0, sizeof buffer, &buffer));
        CHECK(clSetKernelArg(kernel, 1, sizeof value, &value));
        CHECK(clSetKernelArg(kernel, 2, sizeof value, &value));
        CHECK(clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &one, &one, 0, NULL, NULL));
        if (i == n - 1) {
            CHECK(clFinish(queue));
            printf("{\"launches\": %ld, \"per_second\": %.1f}\n", n, (double)n / (now() - begin));
        }
    }
}

static void kernel_time(const char *path, const char *name, const char *shape, int size, int repeats)
{
    handle kernel = load(path, name), buffer[3];
    int matmul = strcmp(shape, "matmul") == 0, error;
    size_t count = matmul ? (size_t)size * (size_t)size : (size_t)size;
    float *host = malloc(count * sizeof *host);
    double best = 1e9, sum = 0, checksum = 0;
    for (size_t i = 0; i < count; i++)
        host[i] = (float)(i % 7) - 3.0f;
    for (uint32_t i = 0; i < 3; i++) {
        buffer[i] = clCreateBuffer(context, CL_MEM_READ_WRITE, count * sizeof *host, NULL, &error);
        CHECK(error);
        CHECK(clEnqueueWriteBuffer(queue, buffer[i], CL_TRUE, 0, count * sizeof *host, host, 0, NULL, NULL));
        CHECK(clSetKernelArg(kernel, i, sizeof buffer[i], &buffer[i]));
    }
    CHECK(clSetKernelArg(kernel, 3, sizeof size, &size));
    size_t global[2] = {matmul ? (size_t)size : ((size_t)size + 255) / 256 * 256, (size_t)size};
    size_t local[2] = {matmul ? 16 : 256, 16};
    for (int i = 0; i < repeats + 2; i++) {
        double t = now();
        CHECK(clEnqueueNDRangeKernel(queue, kernel, matmul ? 2 : 1, NULL, global, local, 0, NULL, NULL));
        CHECK(clFinish(queue));
        t = now() - t;
        if (i >= 2) {
            sum += t;
            if (t < best)
                best = t;
        }
    }
    CHECK(clEnqueueReadBuffer(queue, buffer[2], CL_TRUE, 0, count * sizeof *host, host, 0, NULL, NULL));
    for (size_t i = 0; i < count; i++)
        checksum += host[i] * (double)(i % 11);
    printf("{\"best_ms\": %.4f, \"mean_ms\": %.4f, \"checksum\": %.6g}\n", best * 1e3, sum / repeats * 1e3, checksum);
    free(host);
}

int main(int argc, char **argv)
{
    handle platforms[16];
    uint32_t count = 0, found = 0;
    int error;
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
    if (!library) {
        fprintf(stderr, "opencl_bench: %s\n", argc > 1 ? dlerror() : "usage: see the head of opencl_bench.c");
        return 2;
    }
    bind(library);
    CHECK(clGetPlatformIDs(16, platforms, &count));
    for (uint32_t i = 0; i < count && !found; i++)
        if (clGetDeviceIDs(platforms[i], CL_DEVICE_TYPE_CPU, 1, &device, &found) != 0)
            found = 0;
    if (!found) {
        fprintf(stderr, "opencl_bench: no OpenCL CPU device\n");
        return 1;
    }
    context = clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    CHECK(error);
    queue = clCreateCommandQueue(context, device, 0, &error);
    CHECK(error);
    if (argc == 5 && !strcmp(argv[2], "drain"))
        drain(argv[3], atol(argv[4]));
    else if (argc == 8 && !strcmp(argv[2], "kernel"))
        kernel_time(argv[3], argv[4], argv[5], atoi(argv[6]), atoi(argv[7]));
    else {
        fprintf(stderr, "opencl_bench: usage: see the head of opencl_bench.c\n");
        return 2;
    }
    return 0;
}
