// What Prove.ps1 asks of Windows by its own functions: programs started by a command line as it is,
// and hives read by offreg.dll, Windows' library for hives that are not loaded.
//
// C# 5 and .NET Framework 4, which every Windows has; Add-Type compiles it on the spot.

using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Security.AccessControl;
using System.Text;

namespace WincimgProof
{
    /// <summary>How a program ended.</summary>
    public sealed class Ended
    {
        public int ExitCode { get; internal set; }
        public string Output { get; internal set; }
        public string Error { get; internal set; }
        public double Seconds { get; internal set; }
    }

    public static class Starter
    {
        /// <summary>
        /// Starts a program with arguments that nobody quotes again, and waits for it. One that takes
        /// longer is ended, and that is an error.
        /// </summary>
        public static Ended Run(string program, string arguments, int seconds)
        {
            ProcessStartInfo start = new ProcessStartInfo(program, arguments);
            start.UseShellExecute = false;
            start.CreateNoWindow = true;
            start.RedirectStandardInput = true;
            start.RedirectStandardOutput = true;
            start.RedirectStandardError = true;
            start.StandardOutputEncoding = Encoding.UTF8;
            start.StandardErrorEncoding = Encoding.UTF8;
            StringBuilder output = new StringBuilder();
            StringBuilder error = new StringBuilder();
            Stopwatch watch = Stopwatch.StartNew();
            using (Process process = new Process())
            {
                process.StartInfo = start;
                process.OutputDataReceived += delegate(object sender, DataReceivedEventArgs line)
                {
                    if (line.Data != null) { output.AppendLine(line.Data); }
                };
                process.ErrorDataReceived += delegate(object sender, DataReceivedEventArgs line)
                {
                    if (line.Data != null) { error.AppendLine(line.Data); }
                };
                process.Start();
                process.StandardInput.Close();
                process.BeginOutputReadLine();
                process.BeginErrorReadLine();
                if (!process.WaitForExit(seconds * 1000))
                {
                    try { process.Kill(); } catch (InvalidOperationException) { }
                    throw new TimeoutException(program + " " + arguments + " did not end within " + seconds + " s");
                }
                // The streams may still have what it said last.
                process.WaitForExit();
                Ended ended = new Ended();
                ended.ExitCode = process.ExitCode;
                ended.Output = output.ToString();
                ended.Error = error.ToString();
                ended.Seconds = Math.Round(watch.Elapsed.TotalSeconds, 2);
                return ended;
            }
        }
    }

    /// <summary>A value as a hive has it.</summary>
    public sealed class HiveValue
    {
        public uint Type { get; internal set; }
        public byte[] Data { get; internal set; }
    }

    /// <summary>A hive in memory, or what several come to. Nothing is written.</summary>
    public sealed class Hive : IDisposable
    {
        private const uint Success = 0;
        private const uint FileNotFound = 2;
        private const uint PathNotFound = 3;
        private const uint MoreData = 234;
        /// <summary>Owner, group and DACL; the SACL wants a right that is not always there.</summary>
        private const uint Readable = 1 | 2 | 4;

        private static class Native
        {
            [DllImport("offreg.dll", CharSet = CharSet.Unicode, ExactSpelling = true)]
            internal static extern uint OROpenHive(string path, out IntPtr hive);

            [DllImport("offreg.dll", ExactSpelling = true)]
            internal static extern uint ORCloseHive(IntPtr hive);

            // The hive that lies at the bottom comes first, as Windows' own layers are merged.
            [DllImport("offreg.dll", ExactSpelling = true)]
            internal static extern uint ORMergeHives([In] IntPtr[] hives, uint count, out IntPtr merged);

            [DllImport("offreg.dll", CharSet = CharSet.Unicode, ExactSpelling = true)]
            internal static extern uint OROpenKey(IntPtr parent, string name, out IntPtr key);

            [DllImport("offreg.dll", ExactSpelling = true)]
            internal static extern uint ORCloseKey(IntPtr key);

            [DllImport("offreg.dll", CharSet = CharSet.Unicode, ExactSpelling = true)]
            internal static extern uint ORGetValue(IntPtr key, string subKey, string name, out uint type, byte[] data, ref uint size);

            [DllImport("offreg.dll", ExactSpelling = true)]
            internal static extern uint ORGetKeySecurity(IntPtr key, uint information, byte[] descriptor, ref uint size);
        }

        private IntPtr handle;

        private Hive(IntPtr handle)
        {
            this.handle = handle;
        }

        private static void Check(uint code, string what)
        {
            if (code != Success)
            {
                string text = new Win32Exception(unchecked((int)code)).Message;
                throw new Win32Exception(unchecked((int)code), what + ": error " + code + " (0x" + code.ToString("x") + "), " + text);
            }
        }

        /// <summary>Opens a file; offreg.dll checks the whole hive as it does.</summary>
        public static Hive Open(string path)
        {
            IntPtr handle;
            Check(Native.OROpenHive(path, out handle), "OROpenHive " + path);
            return new Hive(handle);
        }

        /// <summary>What the hives come to when each lies over those before it.</summary>
        public static Hive Merge(params Hive[] hives)
        {
            IntPtr[] handles = new IntPtr[hives.Length];
            for (int at = 0; at < hives.Length; at++) { handles[at] = hives[at].handle; }
            IntPtr merged;
            Check(Native.ORMergeHives(handles, (uint)handles.Length, out merged), "ORMergeHives");
            return new Hive(merged);
        }

        /// <summary>Runs with a key's handle; false where the key is not there. "" is the root.</summary>
        private bool With(string key, Action<IntPtr> use)
        {
            if (key.Length == 0)
            {
                use(handle);
                return true;
            }
            IntPtr opened;
            uint code = Native.OROpenKey(handle, key, out opened);
            if (code == FileNotFound || code == PathNotFound) { return false; }
            Check(code, "OROpenKey " + key);
            try { use(opened); }
            finally { Native.ORCloseKey(opened); }
            return true;
        }

        public bool HasKey(string key)
        {
            return With(key, delegate(IntPtr opened) { });
        }

        /// <summary>A value; null where the key or the value is not there.</summary>
        public HiveValue Value(string key, string name)
        {
            HiveValue found = null;
            With(key, delegate(IntPtr opened)
            {
                uint type;
                uint size = 0;
                uint code = Native.ORGetValue(opened, null, name, out type, null, ref size);
                if (code == FileNotFound) { return; }
                if (code != MoreData) { Check(code, "ORGetValue " + key + " " + name); }
                byte[] data = new byte[size];
                if (size > 0) { Check(Native.ORGetValue(opened, null, name, out type, data, ref size), "ORGetValue " + key + " " + name); }
                found = new HiveValue();
                found.Type = type;
                found.Data = data;
            });
            return found;
        }

        /// <summary>A key's owner, group and DACL in SDDL; null where the key is not there.</summary>
        public string Descriptor(string key)
        {
            string sddl = null;
            With(key, delegate(IntPtr opened)
            {
                uint size = 0;
                uint code = Native.ORGetKeySecurity(opened, Readable, null, ref size);
                if (code != Success && size == 0) { Check(code, "ORGetKeySecurity " + key); }
                byte[] bytes = new byte[size];
                Check(Native.ORGetKeySecurity(opened, Readable, bytes, ref size), "ORGetKeySecurity " + key);
                sddl = new RawSecurityDescriptor(bytes, 0).GetSddlForm(AccessControlSections.Owner | AccessControlSections.Group | AccessControlSections.Access);
            });
            return sddl;
        }

        public void Dispose()
        {
            if (handle != IntPtr.Zero)
            {
                Native.ORCloseHive(handle);
                handle = IntPtr.Zero;
            }
        }
    }
}
