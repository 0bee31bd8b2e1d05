/* The window's first place is taken, here (with an argument) or in the driver process: it goes elsewhere in both. */
#include "check.h"
#include <sys/mman.h>

int main(int argc, char **argv)
{
    void *place = (void *)0x600000100000;
    CUdeviceptr memory;
    uint32_t value = 0;
    char *taken = NULL;

    (void)argv;
    if (argc > 1) {
        taken = mmap(place, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
        TRUE(taken == place);
        strcpy(taken, "mine");
    }
    start();
    OK(cuMemAlloc(&memory, 1 << 20));
    TRUE(memory < 0x600000000000 || memory >= 0x610000000000);
    OK(cuMemsetD32(memory, 1234, 10));
    OK(cuMemcpyDtoH(&value, memory + 36, 4));
    TRUE(value == 1234);
    TRUE(!taken || !strcmp(taken, "mine"));
    return 0;
}
