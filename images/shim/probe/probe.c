/*
 * A program to try the shim, and quoting, with. It is in C, by mingw, because it has to run under
 * a wine that lacks what Rust's standard library asks of Windows.
 *
 * Without --do it tells what command line it got. Each line of that report is a JSON string in
 * ASCII: first the raw command line, then the arguments as Windows splits it.
 *
 *   --do exit CODE              ends
 *   --do echo WORD              says a word
 *   --do copy                   says what is on standard input, and a word on standard error
 *   --do clean-up SECONDS CODE  waits for an event, takes its time, ends
 *   --do until NAME SECONDS CODE  waits for a named event, takes its time, ends
 *   --do set NAME               sets a named event
 *   --do ignore                 hears every event and stays
 *   --do spawn [stay]           leaves a process that stays, and ends or stays itself
 *   --do run COMMAND            runs a command line and says its whole exit code
 *   --do run-each               does that with each line of standard input (UTF-8)
 *   --do split                  splits each line of standard input as Windows does, and says the
 *                               parts as a JSON array
 *   --do leak COMMAND           runs a command line with a handle that can be inherited
 *   --do has-handle             says whether the handle of a `leak` further up is there
 *   --do is-running PID         says whether a process is running
 *   --do window CLASS           opens a window and says what it is told
 *   --do service FILE START STOP CODE
 *                               is a service that takes START seconds to start and STOP to stop
 *                               (or "fail"s at the start, or "crash"es) and writes its life to FILE
 */
#define UNICODE
#define _UNICODE
#include <windows.h>
#include <shellapi.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>

static void say(const wchar_t *format, ...)
{
    wchar_t text[4096];
    char utf8[16384];
    va_list arguments;
    DWORD written;
    int length;

    va_start(arguments, format);
    _vsnwprintf(text, 4095, format, arguments);
    va_end(arguments);
    text[4095] = 0;
    length = WideCharToMultiByte(CP_UTF8, 0, text, -1, utf8, sizeof(utf8), NULL, NULL);
    if (length > 1) {
        utf8[length - 1] = '\n';
        WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), utf8, (DWORD)length, &written, NULL);
    }
}

static void pause_for(const wchar_t *seconds)
{
    Sleep((DWORD)(wcstod(seconds, NULL) * 1000));
}

static DWORD number(const wchar_t *word)
{
    return (DWORD)wcstoul(word, NULL, 10);
}

/* --- command lines --- */

/* Writes a text as a JSON string, and something after it. */
static void say_json(const wchar_t *text, char after)
{
    char *line = malloc(wcslen(text) * 6 + 4);
    char *end = line;
    DWORD written;

    *end++ = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            end += sprintf(end, "\\%c", (char)*text);
        else if (*text >= ' ' && *text <= '~')
            *end++ = (char)*text;
        else
            end += sprintf(end, "\\u%04x", (unsigned)*text);
    }
    *end++ = '"';
    *end++ = after;
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), line, (DWORD)(end - line), &written, NULL);
    free(line);
}

static void report_command_line(int count, wchar_t **words)
{
    int index;

    say_json(GetCommandLineW(), '\n');
    for (index = 0; index < count; index++)
        say_json(words[index], '\n');
}

/* Calls a function with each line of standard input. */
static void for_each_line(void (*use)(const wchar_t *))
{
    static char line[65536];
    static wchar_t wide[65536];

    while (fgets(line, sizeof(line), stdin)) {
        line[strcspn(line, "\r\n")] = 0;
        MultiByteToWideChar(CP_UTF8, 0, line, -1, wide, 65536);
        use(wide);
    }
}

static void split(const wchar_t *line)
{
    int count, index;
    wchar_t **words = CommandLineToArgvW(line, &count);
    DWORD written;

    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "[", 1, &written, NULL);
    for (index = 0; index < count; index++)
        say_json(words[index], index + 1 < count ? ',' : ']');
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), "\n", 1, &written, NULL);
    LocalFree(words);
}

/* --- events --- */

static HANDLE heard;
static volatile LONG kind;

static BOOL WINAPI on_control(DWORD event)
{
    InterlockedExchange(&kind, (LONG)event);
    SetEvent(heard);
    return TRUE;
}

static void listen_for_events(void)
{
    heard = CreateEventW(NULL, FALSE, FALSE, NULL);
    SetConsoleCtrlHandler(NULL, FALSE);
    SetConsoleCtrlHandler(on_control, TRUE);
    say(L"ready");
}

static int clean_up(const wchar_t *seconds, const wchar_t *code)
{
    listen_for_events();
    WaitForSingleObject(heard, INFINITE);
    say(L"event %ld", kind);
    pause_for(seconds);
    say(L"clean");
    return (int)number(code);
}

static int until(const wchar_t *name, const wchar_t *seconds, const wchar_t *code)
{
    HANDLE event = CreateEventW(NULL, TRUE, FALSE, name);

    say(L"ready");
    WaitForSingleObject(event, INFINITE);
    say(L"told");
    pause_for(seconds);
    say(L"clean");
    return (int)number(code);
}

static int set(const wchar_t *name)
{
    HANDLE event = OpenEventW(EVENT_MODIFY_STATE, FALSE, name);
    return SetEvent(event) ? 0 : 1;
}

static void ignore(void)
{
    listen_for_events();
    for (;;) {
        WaitForSingleObject(heard, INFINITE);
        say(L"ignored %ld", kind);
    }
}

/* --- other processes --- */

static BOOL start(const wchar_t *command, BOOL inherit, PROCESS_INFORMATION *process)
{
    STARTUPINFOW startup = { .cb = sizeof(startup) };
    wchar_t *copy = wcsdup(command);
    BOOL started = CreateProcessW(NULL, copy, NULL, NULL, inherit, 0, NULL, NULL, &startup, process);

    free(copy);
    if (!started)
        say(L"not started: %lu", GetLastError());
    return started;
}

static int spawn(BOOL stay)
{
    wchar_t path[MAX_PATH], command[MAX_PATH + 32];
    PROCESS_INFORMATION process;

    GetModuleFileNameW(NULL, path, MAX_PATH);
    _snwprintf(command, MAX_PATH + 32, L"\"%ls\" --do ignore", path);
    if (!start(command, TRUE, &process))
        return 1;
    say(L"spawned %lu", process.dwProcessId);
    if (stay)
        Sleep(INFINITE);
    return 0;
}

static int run(const wchar_t *command, BOOL leak)
{
    SECURITY_ATTRIBUTES inheritable = { sizeof(inheritable), NULL, TRUE };
    PROCESS_INFORMATION process;
    wchar_t handle[32];
    DWORD code;

    if (leak) {
        _snwprintf(handle, 32, L"%Iu", (size_t)CreateEventW(&inheritable, FALSE, FALSE, NULL));
        SetEnvironmentVariableW(L"PROBE_HANDLE", handle);
    }
    if (!start(command, TRUE, &process))
        return 1;
    WaitForSingleObject(process.hProcess, INFINITE);
    GetExitCodeProcess(process.hProcess, &code);
    say(L"code %lu", code);
    return 0;
}

static void run_line(const wchar_t *command)
{
    run(command, FALSE);
}

static int has_handle(void)
{
    wchar_t value[32] = L"";
    DWORD flags;

    GetEnvironmentVariableW(L"PROBE_HANDLE", value, 32);
    say(L"inherited %ls",
        GetHandleInformation((HANDLE)wcstoull(value, NULL, 10), &flags) ? L"yes" : L"no");
    return 0;
}

static int is_running(const wchar_t *id)
{
    HANDLE process = OpenProcess(SYNCHRONIZE, FALSE, number(id));
    BOOL running = process && WaitForSingleObject(process, 0) == WAIT_TIMEOUT;

    say(L"running %ls", running ? L"yes" : L"no");
    return 0;
}

static int copy_input(void)
{
    char text[256];
    DWORD length = 0, written;

    ReadFile(GetStdHandle(STD_INPUT_HANDLE), text, sizeof(text), &length, NULL);
    WriteFile(GetStdHandle(STD_OUTPUT_HANDLE), text, length, &written, NULL);
    WriteFile(GetStdHandle(STD_ERROR_HANDLE), "probe on stderr\n", 16, &written, NULL);
    return 0;
}

/* --- windows --- */

static LRESULT CALLBACK on_message(HWND window, UINT message, WPARAM first, LPARAM second)
{
    switch (message) {
    case WM_QUERYENDSESSION:
        say(L"query-end-session");
        return TRUE;
    case WM_ENDSESSION:
        say(L"end-session %d", (int)first);
        return 0;
    case WM_CLOSE:
        say(L"close");
        DestroyWindow(window);
        return 0;
    case WM_DESTROY:
        PostQuitMessage(5);
        return 0;
    default:
        return DefWindowProcW(window, message, first, second);
    }
}

static int window(const wchar_t *name)
{
    WNDCLASSW class = { .lpfnWndProc = on_message, .lpszClassName = name };
    MSG message;

    class.hInstance = GetModuleHandleW(NULL);
    RegisterClassW(&class);
    if (!CreateWindowExW(0, name, name, WS_OVERLAPPEDWINDOW, 0, 0, 100, 100, NULL, NULL,
                         class.hInstance, NULL)) {
        say(L"no window: %lu", GetLastError());
        return 1;
    }
    say(L"ready");
    while (GetMessageW(&message, NULL, 0, 0) > 0)
        DispatchMessageW(&message);
    return (int)message.wParam;
}

/* --- service --- */

static wchar_t **plan; /* FILE START STOP CODE */
static SERVICE_STATUS_HANDLE status_handle;

static void set_state(DWORD state, DWORD code)
{
    SERVICE_STATUS status = { .dwServiceType = SERVICE_WIN32_OWN_PROCESS, .dwCurrentState = state };
    const char *line = state == SERVICE_START_PENDING ? "starting\n"
                     : state == SERVICE_RUNNING       ? "running\n"
                     : state == SERVICE_STOP_PENDING  ? "stopping\n"
                                                      : "stopped\n";
    FILE *file = _wfopen(plan[0], L"ab");

    if (file) {
        fputs(line, file);
        fclose(file);
    }
    status.dwControlsAccepted = state == SERVICE_RUNNING ? SERVICE_ACCEPT_STOP : 0;
    status.dwWin32ExitCode = code ? ERROR_SERVICE_SPECIFIC_ERROR : NO_ERROR;
    status.dwServiceSpecificExitCode = code;
    status.dwWaitHint = 30000;
    SetServiceStatus(status_handle, &status);
}

static void WINAPI on_service_control(DWORD control)
{
    if (control == SERVICE_CONTROL_STOP) {
        set_state(SERVICE_STOP_PENDING, 0);
        SetEvent(heard);
    }
}

static void WINAPI service_main(DWORD count, wchar_t **words)
{
    (void)count;
    heard = CreateEventW(NULL, FALSE, FALSE, NULL);
    status_handle = RegisterServiceCtrlHandlerW(words[0], on_service_control);
    set_state(SERVICE_START_PENDING, 0);
    pause_for(plan[1]);
    if (wcscmp(plan[2], L"fail") == 0) {
        set_state(SERVICE_STOPPED, number(plan[3]));
        return;
    }
    set_state(SERVICE_RUNNING, 0);
    if (wcscmp(plan[2], L"crash") == 0) {
        pause_for(L"0.5");
        set_state(SERVICE_STOPPED, number(plan[3]));
        return;
    }
    WaitForSingleObject(heard, INFINITE);
    pause_for(plan[2]);
    set_state(SERVICE_STOPPED, number(plan[3]));
}

static int service(wchar_t **words)
{
    SERVICE_TABLE_ENTRYW table[] = { { L"", service_main }, { NULL, NULL } };

    plan = words;
    return StartServiceCtrlDispatcherW(table) ? 0 : 1;
}

/* --- */

static int act(int count, wchar_t **words)
{
    const wchar_t *verb = words[0];

#define IS(name, parameters) (wcscmp(verb, name) == 0 && count == 1 + (parameters))
    if (IS(L"exit", 1))
        ExitProcess(number(words[1]));
    if (IS(L"echo", 1)) {
        say(L"%ls", words[1]);
        return 0;
    }
    if (IS(L"copy", 0))
        return copy_input();
    if (IS(L"clean-up", 2))
        return clean_up(words[1], words[2]);
    if (IS(L"until", 3))
        return until(words[1], words[2], words[3]);
    if (IS(L"set", 1))
        return set(words[1]);
    if (IS(L"ignore", 0))
        ignore();
    if (IS(L"spawn", 0) || IS(L"spawn", 1))
        return spawn(count == 2);
    if (IS(L"run", 1))
        return run(words[1], FALSE);
    if (IS(L"run-each", 0)) {
        for_each_line(run_line);
        return 0;
    }
    if (IS(L"split", 0)) {
        for_each_line(split);
        return 0;
    }
    if (IS(L"leak", 1))
        return run(words[1], TRUE);
    if (IS(L"has-handle", 0))
        return has_handle();
    if (IS(L"is-running", 1))
        return is_running(words[1]);
    if (IS(L"window", 1))
        return window(words[1]);
    if (IS(L"service", 4))
        return service(words + 1);
    say(L"the probe knows no verb %ls with %d words", verb, count - 1);
    return 99;
}

int main(void)
{
    int count;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);

    if (count > 2 && wcscmp(words[1], L"--do") == 0)
        return act(count - 2, words + 2);
    report_command_line(count, words);
    return 0;
}
