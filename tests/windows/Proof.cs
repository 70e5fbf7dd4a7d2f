// Functions of Windows for Prove.ps1: starting programs with an exact command line, and reading hives
// with offreg.dll, Windows' library for hives that are not loaded.
//
// C# 5 and .NET Framework 4, available on every Windows; compiled by Add-Type at run time.

using System;
using System.Collections.Generic;
using System.ComponentModel;
using System.Diagnostics;
using System.Runtime.InteropServices;
using System.Security.AccessControl;
using System.Text;

namespace WincimgProof
{
    /// <summary>Result of a program.</summary>
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
        /// Starts a program with arguments that are not quoted again, and waits for it. Kills it
        /// after the timeout, which is an error.
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
                // The streams may still contain its last output.
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

    /// <summary>A value as stored in a hive.</summary>
    public sealed class HiveValue
    {
        public uint Type { get; internal set; }
        public byte[] Data { get; internal set; }
    }

    /// <summary>A hive in memory, or several merged ones. Nothing is written.</summary>
    public sealed class Hive : IDisposable
    {
        private const uint Success = 0;
        private const uint FileNotFound = 2;
        private const uint PathNotFound = 3;
        private const uint MoreData = 234;
        /// <summary>Owner, group and DACL; reading the SACL requires a privilege.</summary>
        private const uint Readable = 1 | 2 | 4;

        private static class Native
        {
            [DllImport("offreg.dll", CharSet = CharSet.Unicode, ExactSpelling = true)]
            internal static extern uint OROpenHive(string path, out IntPtr hive);

            [DllImport("offreg.dll", ExactSpelling = true)]
            internal static extern uint ORCloseHive(IntPtr hive);

            // The bottom hive comes first, as when Windows merges its layers.
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

        /// <summary>Opens a file; offreg.dll validates the whole hive.</summary>
        public static Hive Open(string path)
        {
            IntPtr handle;
            Check(Native.OROpenHive(path, out handle), "OROpenHive " + path);
            return new Hive(handle);
        }

        /// <summary>Merges hives, each on top of those before it.</summary>
        public static Hive Merge(params Hive[] hives)
        {
            IntPtr[] handles = new IntPtr[hives.Length];
            for (int at = 0; at < hives.Length; at++) { handles[at] = hives[at].handle; }
            IntPtr merged;
            Check(Native.ORMergeHives(handles, (uint)handles.Length, out merged), "ORMergeHives");
            return new Hive(merged);
        }

        /// <summary>Runs with a key's handle; false if the key does not exist. "" is the root.</summary>
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

        /// <summary>A value; null if the key or the value does not exist.</summary>
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

        /// <summary>A key's owner, group and DACL in SDDL; null if it does not exist.</summary>
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
