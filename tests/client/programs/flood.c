/* Post without end, to be found in a full ring when the driver process is killed. */
#include "check.h"

int main(void)
{
    CUresult result;
    CUfunction nap;

    start();
    nap = kernel("nap");
    puts("posting");
    fflush(stdout);
    while ((result = launch_nap(nap, NULL, 1000)) == CUDA_SUCCESS)
        ;
    EXPECT(result, CUDA_ERROR_LAUNCH_FAILED);
    return 0;
}
