/* Loaded into a server by LD_PRELOAD: every sync of a file takes so many nanoseconds longer. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static void wait_longer(void)
{
    const char *text = getenv("WINDROW_SLOW_FSYNC_NS");
    long long nanos = text ? atoll(text) : 0;
    struct timespec left = {nanos / 1000000000, nanos % 1000000000};
    /* A signal is no reason to be done sooner. */
    while (nanosleep(&left, &left) != 0)
        ;
}

int fsync(int fd)
{
    wait_longer();
    return (int) syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_longer();
    return (int) syscall(SYS_fdatasync, fd);
}
