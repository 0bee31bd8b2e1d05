/* Print what cuInit returns, twice. */
#include "check.h"

int main(void)
{
    int first = cuInit(0);
    printf("%d %d\n", first, cuInit(0));
    return 0;
}
