/* Stream memory operations: values written and waited for, and what is refused. */
#include "check.h"

/* The first forms by their plain names, the second ones by theirs. */
#undef cuStreamBatchMemOp
#undef cuStreamWriteValue32
#undef cuStreamWriteValue32_ptsz
#undef cuStreamWriteValue64
#undef cuStreamWaitValue32
#undef cuStreamWaitValue64

static volatile uint32_t *host;

static void *write_later(void *argument)
{
    usleep(100000);
    *(volatile uint32_t *)argument = 0x80000010;
    return NULL;
}

static void finish(CUstream stream)
{
    for (double until = seconds() + 5; cuStreamQuery(stream) == CUDA_ERROR_NOT_READY && seconds() < until;)
        usleep(1000);
    OK(cuStreamQuery(stream));
}

/* A wait that holds `before` up and not `after`. */
static void check_condition(CUstream stream, unsigned condition, uint32_t value, uint32_t before, uint32_t after)
{
    host[0] = before;
    OK(cuStreamWaitValue32(stream, (CUdeviceptr)(uintptr_t)host, value, condition));
    cuStreamQuery(stream); /* a point behind the wait; it would be reached soon */
    usleep(20000);
    EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    host[0] = after;
    finish(stream);
}

static void check_condition_64(CUstream stream, unsigned condition, uint64_t value, uint64_t before, uint64_t after)
{
    volatile uint64_t *wide = (volatile uint64_t *)host;
    wide[1] = before;
    OK(cuStreamWaitValue64(stream, (CUdeviceptr)(uintptr_t)&wide[1], value, condition));
    cuStreamQuery(stream); /* a point behind the wait; it would be reached soon */
    usleep(20000);
    EXPECT(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    wide[1] = after;
    finish(stream);
}

int main(int count, char **arguments)
{
    CUcontext context = start(), other;
    CUstream a, b, gone;
    CUdeviceptr data, at;
    uint32_t words[4] = {0};
    uint64_t wide;
    int value;
    pthread_t thread;
    CUstreamBatchMemOpParams operations[256];
    void *foreign;
    double started;

    OK(cuMemHostAlloc((void **)&host, 64, CU_MEMHOSTALLOC_DEVICEMAP));
    memset((void *)host, 0, 64);
    at = (CUdeviceptr)(uintptr_t)host;
    OK(cuMemAlloc(&data, 16));
    OK(cuMemsetD32(data, 0, 4));
    OK(cuCtxSynchronize());
    OK(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    OK(cuStreamDestroy(gone));
    for (int i = 0; i < 5; i++) {
        static const CUdevice_attribute can[] = {
            CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_MEM_OPS_V1, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS_V1,
            CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
            CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR_V1};
        OK(cuDeviceGetAttribute(&value, can[i], 0));
        TRUE(value == 1);
    }

    /* Writes, to memory of either kind; the other half of a word stays as it is. */
    OK(cuStreamWriteValue32(a, data + 4, 0xDEADBEEF, CU_STREAM_WRITE_VALUE_DEFAULT));
    OK(cuStreamWriteValue64(a, data + 8, 0x123456789ABCDEF0, 0));
    OK(cuStreamWriteValue32_v2(a, at + 8, 77, 0));
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(words, data, 16));
    TRUE(words[0] == 0 && words[1] == 0xDEADBEEF && words[2] == 0x9ABCDEF0 && words[3] == 0x12345678);
    TRUE(host[1] == 0 && host[2] == 77 && host[3] == 0);
    OK(cuStreamWriteValue64_v2(NULL, at + 8, UINT64_MAX, 0));
    OK(cuStreamWriteValue32_ptsz(NULL, at + 20, 5, 0));
    OK(cuCtxSynchronize());
    TRUE(host[2] == UINT32_MAX && host[3] == UINT32_MAX && host[5] == 5);

    /* Each condition, from one side and the other. Greater is meant cyclically. */
    check_condition(a, CU_STREAM_WAIT_VALUE_GEQ, 10, 9, 10);
    check_condition(a, CU_STREAM_WAIT_VALUE_GEQ, 10, 0x8000000A, 0x80000009);
    check_condition(a, CU_STREAM_WAIT_VALUE_GEQ, 0xFFFFFFFF, 0xFFFFFFFE, 3);
    check_condition(a, CU_STREAM_WAIT_VALUE_EQ, 10, 11, 10);
    check_condition(a, CU_STREAM_WAIT_VALUE_AND, 6, 9, 4);
    check_condition(a, CU_STREAM_WAIT_VALUE_NOR, 0xFFFF0000, 0x0000FFFF, 0x0000FFFE);
    check_condition_64(a, CU_STREAM_WAIT_VALUE_GEQ, 1ull << 40, 1ull << 39, 1ull << 41);
    check_condition_64(a, CU_STREAM_WAIT_VALUE_EQ, 1ull << 40, 0, 1ull << 40);
    check_condition_64(a, CU_STREAM_WAIT_VALUE_AND, 1ull << 63, ~(1ull << 63), 1ull << 63);
    check_condition_64(a, CU_STREAM_WAIT_VALUE_NOR, 1, ~1ull, ~3ull);

    /* Work behind a wait waits, other streams and calls do not. */
    host[0] = 0;
    pthread_create(&thread, NULL, write_later, (void *)host);
    OK(cuStreamWaitValue32_v2(a, at, 0x80000010, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamWriteValue32(a, data, 1, 0));
    OK(cuStreamWriteValue32(b, data + 4, 2, 0));
    OK(cuStreamSynchronize(b));
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    OK(cuMemcpyDtoHAsync(words, data, 8, b));
    OK(cuStreamSynchronize(b));
    TRUE(words[0] == 0 && words[1] == 2);
    OK(cuStreamSynchronize(a));
    pthread_join(thread, NULL);
    OK(cuMemcpyDtoH(words, data, 4));
    TRUE(words[0] == 1);

    /* Two streams that wait for each other's values. */
    OK(cuMemsetD32(data, 0, 4));
    OK(cuCtxSynchronize());
    for (uint32_t i = 1; i <= 50; i++) {
        OK(cuStreamWaitValue64_v2(a, data + 8, i - 1, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuStreamWriteValue32(a, data, i, 0));
        OK(cuStreamWaitValue32(b, data, i, CU_STREAM_WAIT_VALUE_EQ));
        OK(cuStreamWriteValue64(b, data + 8, i, 0));
    }
    OK(cuStreamSynchronize(b));
    OK(cuMemcpyDtoH(&wide, data + 8, 8));
    TRUE(wide == 50);

    /* A batch runs in its order. */
    memset(operations, 0, sizeof operations);
    OK(cuMemsetD32(data, 0, 4));
    OK(cuCtxSynchronize());
    operations[0].waitValue.operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[0].waitValue.address = at;
    operations[0].waitValue.value = 1;
    operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
    operations[1].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[1].writeValue.address = data;
    operations[1].writeValue.value64 = 0x500000004;
    operations[2].memoryBarrier.operation = CU_STREAM_MEM_OP_BARRIER;
    operations[2].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_GPU;
    operations[3].writeValue.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[3].writeValue.address = data;
    operations[3].writeValue.value64 = 0xFFFFFFFF00000006; /* 32 bits of it count */
    host[0] = 0;
    OK(cuStreamBatchMemOp_v2(a, 4, operations, 0));
    usleep(20000);
    EXPECT(cuStreamQuery(a), CUDA_ERROR_NOT_READY);
    host[0] = 1;
    OK(cuStreamSynchronize(a));
    OK(cuMemcpyDtoH(words, data, 16));
    TRUE(words[0] == 6 && words[1] == 5 && words[2] == 0);
    OK(cuStreamBatchMemOp(a, 0, NULL, 0));
    EXPECT(cuStreamBatchMemOp(a, 4, operations, 0), CUDA_ERROR_INVALID_VALUE); /* barriers came with the second form */
    EXPECT(cuStreamBatchMemOp(a, 2, operations, 1), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamBatchMemOp(a, 1, NULL, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamBatchMemOp_v2(a, 256, operations, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamBatchMemOp_v2(gone, 4, operations, 0), CUDA_ERROR_INVALID_HANDLE);
    operations[3].operation = 77;
    EXPECT(cuStreamBatchMemOp_v2(a, 4, operations, 0), CUDA_ERROR_INVALID_VALUE);
    operations[3].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
    operations[3].flushRemoteWrites.flags = 0;
    EXPECT(cuStreamBatchMemOp_v2(a, 4, operations, 0), CUDA_ERROR_NOT_SUPPORTED);
    operations[3].operation = CU_STREAM_MEM_OP_ATOMIC_REDUCTION;
    EXPECT(cuStreamBatchMemOp_v2(a, 4, operations, 0), CUDA_ERROR_NOT_SUPPORTED);
    OK(cuDeviceGetAttribute(&value, CU_DEVICE_ATTRIBUTE_ATOMIC_REDUCTION_SUPPORTED, 0));
    TRUE(value == 0);
    host[0] = 0;
    OK(cuMemsetD32(data, 0, 4));
    OK(cuCtxSynchronize()); /* nothing of a refused batch is done */
    OK(cuMemcpyDtoH(words, data, 4));
    TRUE(words[0] == 0);

    /* Bad addresses, flags, handles. */
    foreign = malloc(8);
    EXPECT(cuStreamWriteValue32(a, data + 2, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWriteValue64(a, data + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue64(a, data + 4, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWriteValue32(a, data + 16, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWriteValue32(a, 0, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue32(a, (CUdeviceptr)(uintptr_t)foreign, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue32(a, UINT64_MAX - 3, 1, 0), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue32(a, data, 1, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue32(a, data, 0, CU_STREAM_WAIT_VALUE_FLUSH), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT(cuStreamWriteValue32(a, data, 1, 2), CUDA_ERROR_INVALID_VALUE);
    OK(cuStreamWriteValue32(a, data, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER));
    EXPECT(cuStreamWriteValue32_v2(a, data, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER), CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuStreamWaitValue32(gone, data, 1, 0), CUDA_ERROR_INVALID_HANDLE);
    EXPECT(cuStreamWriteValue32((CUstream)context, data, 1, 0), CUDA_ERROR_INVALID_HANDLE);

    /* A wait that never ends ends with its context, or with the process. */
    OK(cuCtxCreate(&other, NULL, 0, 0));
    OK(cuStreamCreate(&gone, CU_STREAM_NON_BLOCKING));
    OK(cuStreamWaitValue32(gone, at + 32, 1, CU_STREAM_WAIT_VALUE_EQ));
    OK(cuStreamDestroy(gone));
    started = seconds();
    OK(cuCtxDestroy(other));
    TRUE(seconds() - started < 4);
    OK(cuStreamWaitValue32(a, at + 32, 1, CU_STREAM_WAIT_VALUE_EQ));
    if (count > 1 && !strcmp(arguments[1], "exit"))
        return 0;
    OK(cuDevicePrimaryCtxReset(0));
    TRUE(seconds() - started < 8);
    OK(cuMemAlloc(&data, 16));
    OK(cuStreamCreate(&a, 0));
    OK(cuStreamWriteValue32(a, data, 9, 0));
    OK(cuStreamWaitValue32(a, data, 9, 0));
    OK(cuStreamSynchronize(a));
    return 0;
}
