/* Eight threads capture, build, change and launch graphs of their own at once; results are checked. */
#include "check.h"

enum { THREADS = 8, TURNS = 40 };

static CUcontext context;
static CUfunction scale;
static CUdeviceptr data;

static void work(CUstream stream, CUdeviceptr address, uint32_t factor, uint32_t shift)
{
    void *arguments[] = {&address, &factor, &shift};
    OK(cuLaunchKernel(scale, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

static void *run(void *number)
{
    CUdeviceptr mine = data + 64 * (uintptr_t)number;
    CUstream stream, side;
    CUevent fork, join;
    uint32_t got, expected = (uint32_t)(uintptr_t)number;

    OK(cuCtxSetCurrent(context));
    OK(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    OK(cuStreamCreate(&side, CU_STREAM_NON_BLOCKING));
    OK(cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
    OK(cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
    OK(cuMemsetD32Async(mine, expected, 1, stream));
    for (uint32_t turn = 0; turn < TURNS; turn++) {
        CUgraph graph, copy;
        CUgraphExec exec;
        CUgraphExecUpdateResultInfo info;
        OK(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
        work(stream, mine, 3, turn);
        OK(cuEventRecord(fork, stream));
        OK(cuStreamWaitEvent(side, fork, 0));
        work(side, mine + 4, 0, turn);
        OK(cuEventRecord(join, side));
        OK(cuStreamWaitEvent(stream, join, 0));
        work(stream, mine, 1, 1);
        OK(cuStreamEndCapture(stream, &graph));
        OK(cuGraphClone(&copy, graph));
        OK(cuGraphInstantiate(&exec, graph, 0));
        OK(cuGraphLaunch(exec, stream));
        OK(cuGraphExecUpdate(exec, copy, &info));
        OK(cuGraphLaunch(exec, stream));
        expected = (expected * 3 + turn + 1) * 3 + turn + 1;
        OK(cuGraphExecDestroy(exec));
        OK(cuGraphDestroy(copy));
        OK(cuGraphDestroy(graph));
    }
    OK(cuMemcpyDtoHAsync(&got, mine, 4, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(got == expected);
    OK(cuMemcpyDtoHAsync(&got, mine + 4, 4, stream));
    OK(cuStreamSynchronize(stream));
    TRUE(got == TURNS - 1);
    OK(cuEventDestroy(fork));
    OK(cuEventDestroy(join));
    OK(cuStreamDestroy(stream));
    OK(cuStreamDestroy(side));
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];

    context = start();
    scale = kernel("scale");
    OK(cuMemAlloc(&data, 4096));
    for (uintptr_t i = 0; i < THREADS; i++)
        TRUE(!pthread_create(&threads[i], NULL, run, (void *)i));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return 0;
}
