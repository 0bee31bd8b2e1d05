/* Measurements through the CUDA driver API. Each mode prints JSON objects, one a line.
   driver_bench posted N | drain N | roundtrip N | calls N | copies | load FILE KERNEL | kernel FILE NAME vector_add|matmul SIZE REPEATS */
#define _GNU_SOURCE
#include <cuda.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void check(CUresult result, const char *call, int line)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return;
    cuGetErrorName(result, &name);
    fprintf(stderr, "driver_bench.c:%d: %s: %s\n", line, call, name ? name : "unknown error");
    exit(1);
}
#define CHECK(call) check(call, #call, __LINE__)

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static char *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    fseek(file, 0, SEEK_END);
    long size = ftell(file);
    rewind(file);
    char *text = calloc(1, (size_t)size + 1);
    if (!text || fread(text, 1, (size_t)size, file) != (size_t)size)
        exit(1);
    fclose(file);
    return text;
}

static CUfunction load(const char *path, const char *name)
{
    CUmodule module;
    CUfunction function;
    char *text = read_file(path);
    CHECK(cuModuleLoadData(&module, text));
    CHECK(cuModuleGetFunction(&function, module, name));
    free(text);
    return function;
}

static void posted(const char *path, long n)
{
    CUfunction f = load(path, "tiny");
    CUdeviceptr p;
    int value = 1;
    double *cost = malloc((size_t)n * sizeof *cost), total = 0, waiting = 0;
    long waits = 0;
    CHECK(cuMemAlloc(&p, 4096));
    void *args[] = {&p, &value, &value};
    for (int i = 0; i < 100; i++)
        CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    CHECK(cuCtxSynchronize());
    double begin = now();
    for (long i = 0; i < n; i++) {
        double t = now();
        CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
        cost[i] = now() - t;
    }
    double after_posting = now();
    CHECK(cuCtxSynchronize());
    double end = now();
    for (long i = 0; i < n; i++) {
        total += cost[i];
        if (cost[i] > 100e-6) {
            waiting += cost[i];
            waits++;
        }
    }
    qsort(cost, (size_t)n, sizeof *cost, compare);
    printf("{\"launches\": %ld, \"median_us\": %.3f, \"p99_us\": %.3f, \"mean_us\": %.3f, \"mean_without_waits_us\": %.3f, "
           "\"waits\": %ld, \"waiting_s\": %.3f, \"posting_s\": %.3f, \"total_s\": %.3f}\n",
           n, cost[n / 2] * 1e6, cost[(long)((double)n * 0.99)] * 1e6, total / (double)n * 1e6,
           (total - waiting) / (double)(n - waits) * 1e6, waits, waiting, after_posting - begin, end - begin);
    free(cost);
}

static void drain(const char *path, long n)
{
    CUfunction f = load(path, "tiny");
    CUdeviceptr p;
    int value = 1;
    CHECK(cuMemAlloc(&p, 4096));
    void *args[] = {&p, &value, &value};
    for (int i = 0; i < 100; i++)
        CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    CHECK(cuCtxSynchronize());
    double begin = now();
    for (long i = 0; i < n; i++)
        CHECK(cuLaunchKernel(f, 1, 1, 1, 1, 1, 1, 0, NULL, args, NULL));
    CHECK(cuCtxSynchronize());
    printf("{\"launches\": %ld, \"per_second\": %.1f}\n", n, (double)n / (now() - begin));
}

static void roundtrip(long n)
{
    double *cost = malloc((size_t)n * sizeof *cost);
    size_t free_bytes, total_bytes;
    for (long i = 0; i < n; i++) {
        double t = now();
        CHECK(cuMemGetInfo(&free_bytes, &total_bytes));
        cost[i] = now() - t;
    }
    qsort(cost, (size_t)n, sizeof *cost, compare);
    printf("{\"calls\": %ld, \"median_us\": %.2f, \"p99_us\": %.2f}\n", n, cost[n / 2] * 1e6, cost[(long)((double)n * 0.99)] * 1e6);
    free(cost);
}

/* A call that the client answers by itself: the best of twenty rounds. */
static void calls(long n)
{
    double best = 1e9;
    int count;
    for (int round = 0; round < 20; round++) {
        double begin = now();
        for (long i = 0; i < n; i++)
            CHECK(cuDeviceGetCount(&count));
        double each = (now() - begin) / (double)n;
        if (each < best)
            best = each;
    }
    printf("{\"calls\": %ld, \"best_ns\": %.1f}\n", n, best * 1e9);
}

/* Best of several, alternating with memcpy over the same kind of memory, so that drift hits both. */
static void copies(void)
{
    static const size_t sizes[] = {1 << 20, 16 << 20, 64 << 20, 256 << 20};
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t size = sizes[s];
        CUdeviceptr d, e;
        void *pinned;
        char *a = malloc(size), *b = malloc(size);
        double best[5] = {1e9, 1e9, 1e9, 1e9, 1e9};
        memset(a, 1, size);
        memset(b, 2, size);
        CHECK(cuMemAlloc(&d, size));
        CHECK(cuMemAlloc(&e, size));
        CHECK(cuMemAllocHost(&pinned, size));
        memset(pinned, 3, size);
        for (int i = 0; i < 12; i++) {
            double t[6];
            t[0] = now();
            memcpy(b, a, size);
            __asm__ volatile("" ::: "memory");
            t[1] = now();
            CHECK(cuMemcpyHtoD(d, a, size));
            t[2] = now();
            CHECK(cuMemcpyDtoH(b, d, size));
            t[3] = now();
            CHECK(cuMemcpyHtoDAsync(e, pinned, size, NULL));
            CHECK(cuStreamSynchronize(NULL));
            t[4] = now();
            CHECK(cuMemcpyDtoD(d, e, size));
            CHECK(cuStreamSynchronize(NULL));
            t[5] = now();
            if (i < 2)
                continue;
            for (int k = 0; k < 5; k++)
                if (t[k + 1] - t[k] < best[k])
                    best[k] = t[k + 1] - t[k];
        }
        printf("{\"bytes\": %zu, \"memcpy_gb_s\": %.2f, \"htod_ordinary\": %.3f, \"dtoh_ordinary\": %.3f, \"htod_pinned\": %.3f, "
               "\"dtod\": %.3f}\n",
               size, (double)size / best[0] * 1e-9, best[0] / best[1], best[0] / best[2], best[0] / best[3], best[0] / best[4]);
        CHECK(cuMemFree(d));
        CHECK(cuMemFree(e));
        CHECK(cuMemFreeHost(pinned));
        free(a);
        free(b);
    }
}

static void load_time(const char *path, const char *name)
{
    double begin = now();
    load(path, name);
    printf("{\"load_ms\": %.2f}\n", (now() - begin) * 1e3);
}

static void kernel_time(const char *path, const char *name, const char *shape, int size, int repeats)
{
    CUfunction f = load(path, name);
    int matmul = strcmp(shape, "matmul") == 0;
    size_t count = matmul ? (size_t)size * (size_t)size : (size_t)size;
    CUdeviceptr d[3];
    float *host = malloc(count * sizeof *host);
    double best = 1e9, sum = 0;
    for (size_t i = 0; i < count; i++)
        host[i] = (float)(i % 7) - 3.0f;
    for (int i = 0; i < 3; i++) {
        CHECK(cuMemAlloc(&d[i], count * sizeof *host));
        CHECK(cuMemcpyHtoD(d[i], host, count * sizeof *host));
    }
    void *args[] = {&d[0], &d[1], &d[2], &size};
    for (int i = 0; i < repeats + 2; i++) {
        double t = now();
        if (matmul)
            CHECK(cuLaunchKernel(f, (unsigned)size / 16, (unsigned)size / 16, 1, 16, 16, 1, 0, NULL, args, NULL));
        else
            CHECK(cuLaunchKernel(f, ((unsigned)size + 255) / 256, 1, 1, 256, 1, 1, 0, NULL, args, NULL));
        CHECK(cuCtxSynchronize());
        t = now() - t;
        if (i >= 2) {
            sum += t;
            if (t < best)
                best = t;
        }
    }
    CHECK(cuMemcpyDtoH(host, d[2], count * sizeof *host));
    double checksum = 0;
    for (size_t i = 0; i < count; i++)
        checksum += host[i] * (double)(i % 11);
    printf("{\"best_ms\": %.4f, \"mean_ms\": %.4f, \"checksum\": %.6g}\n", best * 1e3, sum / repeats * 1e3, checksum);
    free(host);
}

int main(int argc, char **argv)
{
    CUdevice device;
    CUcontext context;
    const char *mode = argc > 1 ? argv[1] : "";
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    if (!strcmp(mode, "posted") && argc == 4)
        posted(argv[2], atol(argv[3]));
    else if (!strcmp(mode, "drain") && argc == 4)
        drain(argv[2], atol(argv[3]));
    else if (!strcmp(mode, "roundtrip") && argc == 3)
        roundtrip(atol(argv[2]));
    else if (!strcmp(mode, "calls") && argc == 3)
        calls(atol(argv[2]));
    else if (!strcmp(mode, "copies") && argc == 2)
        copies();
    else if (!strcmp(mode, "load") && argc == 4)
        load_time(argv[2], argv[3]);
    else if (!strcmp(mode, "kernel") && argc == 7)
        kernel_time(argv[2], argv[3], argv[4], atoi(argv[5]), atoi(argv[6]));
    else {
        fprintf(stderr, "usage: see the head of driver_bench.c\n");
        return 2;
    }
    return 0;
}
