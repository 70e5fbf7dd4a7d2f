/* A named pipe that forwards to a local TCP port, like the pipe of the Docker daemon's API.
 *
 * pipe.exe NAME PORT    prints "listening" and serves clients in sequence until it is killed */
#include <winsock2.h>
#include <windows.h>
#include <stdio.h>
#include <stdlib.h>

struct link {
    HANDLE pipe;
    SOCKET socket;
};

/* One read or write; both directions use the pipe concurrently, so each waits for its own event. */
static DWORD moved(HANDLE pipe, BYTE *bytes, DWORD size, BOOL is_write)
{
    OVERLAPPED wait = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
    DWORD count = 0;
    BOOL done = is_write ? WriteFile(pipe, bytes, size, NULL, &wait) : ReadFile(pipe, bytes, size, NULL, &wait);
    if (done || GetLastError() == ERROR_IO_PENDING) {
        if (!GetOverlappedResult(pipe, &wait, &count, TRUE))
            count = 0;
    }
    CloseHandle(wait.hEvent);
    return count;
}

static DWORD WINAPI to_client(void *context)
{
    struct link *link = context;
    BYTE bytes[16384];
    int count;
    while ((count = recv(link->socket, (char *)bytes, sizeof bytes, 0)) > 0) {
        if (moved(link->pipe, bytes, (DWORD)count, TRUE) == 0)
            break;
    }
    DisconnectNamedPipe(link->pipe);
    return 0;
}

static DWORD WINAPI serve(void *context)
{
    struct link *link = context;
    BYTE bytes[16384];
    DWORD count;
    HANDLE other = CreateThread(NULL, 0, to_client, link, 0, NULL);
    while ((count = moved(link->pipe, bytes, sizeof bytes, FALSE)) > 0) {
        if (send(link->socket, (char *)bytes, (int)count, 0) <= 0)
            break;
    }
    shutdown(link->socket, SD_SEND);
    WaitForSingleObject(other, INFINITE);
    CloseHandle(other);
    CloseHandle(link->pipe);
    closesocket(link->socket);
    free(link);
    return 0;
}

int main(int count, char **arguments)
{
    WSADATA data;
    if (count != 3 || WSAStartup(MAKEWORD(2, 2), &data))
        return 2;
    struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((u_short)atoi(arguments[2])) };
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    for (int said = 0;; said = 1) {
        OVERLAPPED wait = { .hEvent = CreateEventW(NULL, TRUE, FALSE, NULL) };
        DWORD none;
        HANDLE pipe = CreateNamedPipeA(arguments[1], PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED,
                                       PIPE_TYPE_BYTE, PIPE_UNLIMITED_INSTANCES, 65536, 65536, 0, NULL);
        if (pipe == INVALID_HANDLE_VALUE)
            return 3;
        if (!said) {
            puts("listening");
            fflush(stdout);
        }
        if (!ConnectNamedPipe(pipe, &wait) && GetLastError() == ERROR_IO_PENDING)
            GetOverlappedResult(pipe, &wait, &none, TRUE);
        CloseHandle(wait.hEvent);
        struct link *link = malloc(sizeof *link);
        if (!link)
            return 4;
        link->pipe = pipe;
        link->socket = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(link->socket, (struct sockaddr *)&address, sizeof address))
            return 5;
        CloseHandle(CreateThread(NULL, 0, serve, link, 0, NULL));
    }
}
