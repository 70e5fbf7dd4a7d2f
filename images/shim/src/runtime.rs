//! What the C runtime and the standard library would have brought: the entry point, the heap and
//! the end in case of a panic.

use core::alloc::{GlobalAlloc, Layout};
use core::panic::PanicInfo;

use wincimg_shim::windows::run::{self, SHIM_FAILED};
use windows_sys::Win32::System::Memory::{GetProcessHeap, HeapAlloc, HeapFree, HeapReAlloc};
use windows_sys::Win32::System::Threading::ExitProcess;

/// Windows' own heap, which aligns to 16 bytes on the machines this is built for.
struct ProcessHeap;

const HEAP_ALIGNMENT: usize = 16;

#[global_allocator]
static HEAP: ProcessHeap = ProcessHeap;

// SAFETY: the process heap is locked by Windows itself, its blocks are aligned as promised below,
// and a layout that wants more is refused.
unsafe impl GlobalAlloc for ProcessHeap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if layout.align() > HEAP_ALIGNMENT {
            return core::ptr::null_mut();
        }
        // SAFETY: the process heap lives as long as the process.
        unsafe { HeapAlloc(GetProcessHeap(), 0, layout.size()) }.cast()
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller promises that the block came from `alloc`.
        unsafe { HeapFree(GetProcessHeap(), 0, block.cast()) };
    }

    unsafe fn realloc(&self, block: *mut u8, _: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller promises that the block came from `alloc`.
        unsafe { HeapReAlloc(GetProcessHeap(), 0, block.cast(), size) }.cast()
    }
}

/// Where Windows starts the program; the name is the linker's default.
#[unsafe(no_mangle)]
extern "C" fn mainCRTStartup() -> ! {
    let code = run::main();
    // SAFETY: ends the process, other threads included; none of them holds anything to be saved.
    unsafe { ExitProcess(code) }
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    run::report_panic();
    // SAFETY: as above.
    unsafe { ExitProcess(SHIM_FAILED) }
}

/// The prebuilt core library names these two in its unwind tables; nothing unwinds here.
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}

/// See above.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Resume() -> ! {
    // SAFETY: ends the process; see `mainCRTStartup`.
    unsafe { ExitProcess(SHIM_FAILED) }
}

// The few memory functions that compiled code expects; every Windows process has this DLL.
#[expect(dead_code, reason = "called by what the compiler makes, not by name")]
#[link(name = "ntdll", kind = "raw-dylib")]
unsafe extern "C" {
    fn memcmp(a: *const u8, b: *const u8, count: usize) -> i32;
    fn memcpy(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
    fn memmove(to: *mut u8, from: *const u8, count: usize) -> *mut u8;
    fn memset(to: *mut u8, value: i32, count: usize) -> *mut u8;
}
