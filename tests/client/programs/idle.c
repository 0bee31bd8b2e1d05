/* Start, say so, and wait to be ended: by a signal, or by a line (then exec's another program, or exits). */
#include "check.h"

int main(int argc, char **argv)
{
    char line[16];
    CUcontext context = start();
    CUdeviceptr memory;

    OK(cuMemAlloc(&memory, 1 << 20));
    printf("ready\n");
    fflush(stdout);
    TRUE(context && fgets(line, sizeof line, stdin));
    if (argc > 1)
        execvp(argv[1], argv + 1);
    return 0;
}
