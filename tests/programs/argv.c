/* Shows how Windows parses command lines.
 *
 * argv.exe …           prints its arguments according to the C runtime and to CommandLineToArgvW
 * argv.exe --run FILE  starts each command line of FILE (UTF-8, separated by NUL) and waits for it
 *
 * An argument is printed as the hexadecimal digits of its UTF-16 units between slashes, so that it
 * cannot be mistaken for other output. */
#include <windows.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void show(const char *reader, int count, wchar_t **arguments)
{
    printf("%s", reader);
    for (int i = 0; i < count; i++) {
        putchar('/');
        for (const wchar_t *unit = arguments[i]; *unit; unit++)
            printf("%04x", *unit);
    }
    putchar('\n');
}

static int run(const wchar_t *line)
{
    STARTUPINFOW startup = { .cb = sizeof startup };
    PROCESS_INFORMATION process;
    size_t size = (wcslen(line) + 1) * sizeof *line;
    wchar_t *writable = malloc(size);
    if (!writable)
        return 0;
    memcpy(writable, line, size);
    BOOL started = CreateProcessW(NULL, writable, NULL, NULL, TRUE, 0, NULL, NULL, &startup, &process);
    free(writable);
    if (!started)
        return 0;
    WaitForSingleObject(process.hProcess, INFINITE);
    CloseHandle(process.hThread);
    CloseHandle(process.hProcess);
    return 1;
}

static int run_all(const wchar_t *path)
{
    FILE *file = _wfopen(path, L"rb");
    if (!file || fseek(file, 0, SEEK_END))
        return 2;
    long size = ftell(file);
    rewind(file);
    char *text = malloc(size + 1);
    if (!text || fread(text, 1, size, file) != (size_t)size)
        return 2;
    text[size] = 0;
    for (char *line = text; line < text + size; line += strlen(line) + 1) {
        int units = MultiByteToWideChar(CP_UTF8, 0, line, -1, NULL, 0);
        wchar_t *wide = malloc(units * sizeof *wide);
        if (!wide)
            return 2;
        MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, units);
        puts("line");
        fflush(stdout);
        if (!run(wide))
            puts("not started");
        fflush(stdout);
        free(wide);
    }
    return 0;
}

int wmain(int argc, wchar_t **argv)
{
    if (argc == 3 && !wcscmp(argv[1], L"--run"))
        return run_all(argv[2]);
    int count;
    wchar_t **split = CommandLineToArgvW(GetCommandLineW(), &count);
    if (!split)
        return 2;
    show("runtime", argc, argv);
    show("shell32", count, split);
    return 0;
}
