/* Tries to leave the sandbox of `wincimg try`, and prints each attempt with its result as one JSON
 * object: 0 or more for success, a negative error of Linux otherwise. C:\ask.txt has an outside folder,
 * the process to end, and the port to connect to, one per line.
 *
 * A program for Windows can call Linux directly: wine does not prevent it.
 */
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CALL_OPEN = 2, CALL_CLOSE = 3, CALL_SOCKET = 41, CALL_CONNECT = 42, CALL_KILL = 62,
    CALL_PTRACE = 101, CALL_UNSHARE = 272, CALL_PRLIMIT = 302
};
enum { O_RDONLY_ = 0, O_WRONLY_ = 1, O_WRONLY_CREAT = 0101, AF_UNIX_ = 1, AF_INET_ = 2, STREAM = 1 };

#define CALL(number, one, two, three, four) \
    call(number, (long long)(one), (long long)(two), (long long)(three), (long long)(four))

/* A long of Windows has 32 bits. */
static int call(long long number, long long one, long long two, long long three,
                long long four)
{
    long long result;
    register long long fourth __asm__("r10") = four;
    register long long fifth __asm__("r8") = 0;
    __asm__ volatile("syscall" : "=a"(result)
                     : "a"(number), "D"(one), "S"(two), "d"(three), "r"(fourth), "r"(fifth)
                     : "rcx", "r11", "memory");
    return (int)result;
}

static const char *comma = "{";

static void report(const char *attempt, int result)
{
    printf("%s\"%s\":%d", comma, attempt, result);
    comma = ",";
}

static int opens(const char *folder, const char *name, int flags)
{
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = CALL(CALL_OPEN, path, flags, 0600, 0);
    if (file >= 0)
        CALL(CALL_CLOSE, file, 0, 0, 0);
    return file;
}

static int connects_to_port(int port)
{
    unsigned char address[16] = {AF_INET_, 0, port >> 8, port & 255, 127, 0, 0, 1};
    int socket = CALL(CALL_SOCKET, AF_INET_, STREAM, 0, 0);
    return socket < 0 ? socket : CALL(CALL_CONNECT, socket, address, sizeof address, 0);
}

static int connects_to_path(const char *folder, const char *name)
{
    char address[110] = {AF_UNIX_, 0};
    snprintf(address + 2, sizeof address - 2, "%s/%s", folder, name);
    int socket = CALL(CALL_SOCKET, AF_UNIX_, STREAM, 0, 0);
    return socket < 0 ? socket : CALL(CALL_CONNECT, socket, address, sizeof address, 0);
}

/* Opens a file as a Windows program. */
static int finds(const char *path)
{
    HANDLE file = CreateFileA(path, GENERIC_READ, FILE_SHARE_READ, NULL, OPEN_EXISTING, 0, NULL);
    if (file == INVALID_HANDLE_VALUE)
        return -(int)GetLastError();
    CloseHandle(file);
    return 0;
}

int main(void)
{
    char folder[256] = "", path[512], process[32] = "", port[32] = "";
    FILE *ask = fopen("C:\\ask.txt", "r");
    if (!ask || fscanf(ask, "%255s %31s %31s", folder, process, port) != 3)
        return 1;
    report("read", opens(folder, "secret", O_RDONLY_));
    report("write", opens(folder, "written", O_WRONLY_CREAT));
    report("users", opens("/etc", "passwd", O_RDONLY_));
    /* Opened and not written, as without a sandbox these succeed. */
    report("system", opens("/etc", "ld.so.cache", O_WRONLY_));
    report("disk", opens("/dev", "kmsg", O_RDONLY_));
    snprintf(path, sizeof path, "/proc/%s", process);
    report("environment", opens(path, "environ", O_RDONLY_));
    report("ask", CALL(CALL_KILL, atoi(process), 0, 0, 0));
    report("trace", CALL(CALL_PTRACE, 16, atoi(process), 0, 0));
    report("port", connects_to_port(atoi(port)));
    report("socket", connects_to_path(folder, "socket"));
    report("mounts", CALL(CALL_UNSHARE, 0x00020000, 0, 0, 0));
    report("users-of-its-own", CALL(CALL_UNSHARE, 0x10000000, 0, 0, 0));
    report("drive", finds("Z:\\etc\\passwd"));
    snprintf(path, sizeof path, "\\\\?\\unix%s\\secret", folder);
    for (char *at = path; *at; at++)
        if (*at == '/')
            *at = '\\';
    report("unix-path", finds(path));
    unsigned long long limit[2] = {0, 0};
    CALL(CALL_PRLIMIT, 0, 2, 0, limit);
    report("memory-limited", limit[0] <= 8ULL << 30);
    CALL(CALL_PRLIMIT, 0, 6, 0, limit);
    report("processes-limited", limit[0] <= 1024);
    printf("}\n");
    return 0;
}
