/* Leave a child behind that outlives this program. */
#include "check.h"

int main(void)
{
    start();
    if (!fork()) {
        sleep(5);
        _exit(0);
    }
    printf("ready\n");
    fflush(stdout);
    pause();
    return 0;
}
