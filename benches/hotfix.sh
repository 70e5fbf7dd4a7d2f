#!/usr/bin/env bash
# Download a large update from a local server with wincimg, which hashes it, with curl, which does not,
# and with curl followed by sha256sum or sha1sum; compare rates, and print wincimg's memory. Requires
# curl and python3. At full loopback speed the hash is the limit; the first line has its rate. The last
# server sends at 10 Gbit/s.
#   benches/hotfix.sh [WINCIMG] [MEGABYTES] [RUNS]
set -euo pipefail
wincimg=$(realpath "${1:-target/dist/wincimg}")
megabytes=${2:-1024}
runs=${3:-5}
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

# The server plays the catalog's two pages and sends the file without copying it.
cat >server.py <<'PYTHON'
import base64, hashlib, http.server, os, socketserver, sys, time

megabytes = int(sys.argv[1])
kind = sys.argv[2]
rate = float(sys.argv[3])
name = "windows11.0-kb5120233-x64.msu"
guid = "d001ca72-ce16-4700-9a6d-b2bb28974002"
title = ("2026-08 Cumulative Update for Microsoft server operating system version 24H2 "
         "for x64-based Systems (KB5120233)")
with open(name, "wb") as out:
    out.write(b"MSWIM\0\0\0")
    out.write(os.urandom((1 << 20) - 8))
    block = os.urandom(1 << 20)
    for _ in range(megabytes - 1):
        out.write(block)
digest = base64.b64encode(hashlib.file_digest(open(name, "rb"), kind).digest()).decode()
search = f"""<table id="ctl00_catalogBody_updateMatches"><tr id="{guid}_R0"><td id="{guid}_C1_R0">
<a id="{guid}_link">{title}</a></td></tr></table>"""
fields = {"sha1": "digest", "sha256": "sha256"}


class Catalog(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def page(self, text):
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        files = "downloadInformation[0].files[0]"
        self.page(f"""downloadInformation[0].updateID = '{guid}';
{files}.url = 'http://{self.headers["Host"]}/{name}';
{files}.{fields[kind]} = '{digest}';
{files}.fileName = '{name}';""")

    def do_GET(self):
        if self.path.startswith("/Search.aspx"):
            return self.page(search)
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            self.send_response(200)
            self.send_header("Content-Length", str(size))
            self.end_headers()
            self.wfile.flush()
            sent = 0
            piece = (1 << 20) if rate else size
            started = time.monotonic()
            while sent < size:
                length = min(piece, size - sent)
                sent += os.sendfile(self.connection.fileno(), file.fileno(), sent, length)
                if rate:
                    time.sleep(max(0, started + sent / rate - time.monotonic()))

    def log_message(self, *arguments):
        pass


server = socketserver.TCPServer(("127.0.0.1", 0), Catalog)
with open("port.new", "w") as out:
    out.write(str(server.server_address[1]))
os.rename("port.new", "port")
server.serve_forever()
PYTHON

# Runs a command; prints seconds and the most memory it had, in MiB.
measure() {
    python3 - "$@" <<'PYTHON'
import resource, subprocess, sys, time
start = time.monotonic()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
seconds = time.monotonic() - start
print(f"{seconds:.3f} {resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024:.1f}")
PYTHON
}

python3 - <<'PYTHON'
import hashlib, os, time
block = bytes(1 << 20)
for kind in ("sha256", "sha1"):
    hasher, start = hashlib.new(kind), time.monotonic()
    for _ in range(512):
        hasher.update(block)
    print(f"{kind} alone, in OpenSSL: {512 / (time.monotonic() - start):.0f} MiB/s, {os.cpu_count()} cores")
PYTHON

# The kind of digest, and the server's rate in bytes per second; 0 is as fast as it can.
for setting in "sha256 0" "sha1 0" "sha256 1250000000"; do
    read -r kind rate <<<"$setting"
    rm -f port
    python3 server.py "$megabytes" "$kind" "$rate" &
    server=$!
    while [[ ! -s port ]]; do
        kill -0 "$server"
        sleep 0.1
    done
    host=127.0.0.1:$(<port)
    : >curl.txt
    : >verified.txt
    : >wincimg.txt
    for ((run = 0; run < runs; run++)); do
        rm -rf out
        mkdir out
        measure curl -sS -o out/file "http://$host/windows11.0-kb5120233-x64.msu" >>curl.txt
        rm -rf out
        mkdir out
        measure bash -c "curl -sS -o out/file http://$host/windows11.0-kb5120233-x64.msu &&
            ${kind}sum out/file" >>verified.txt
        rm -rf out
        measure "$wincimg" hotfix fetch KB5120233 --output out \
            --catalog "http://$host" --insecure-registry "$host" >>wincimg.txt
    done
    rm -rf out
    kill "$server"
    wait "$server" 2>/dev/null || true
    python3 - "$megabytes" "$kind" "$rate" <<'PYTHON'
import statistics, sys
megabytes = int(sys.argv[1])
line = "10 Gbit/s" if float(sys.argv[3]) else "full speed"
def read(name):
    rows = [line.split() for line in open(name)]
    return statistics.median(float(row[0]) for row in rows), max(float(row[1]) for row in rows)
curl, _ = read("curl.txt")
verified, _ = read("verified.txt")
own, memory = read("wincimg.txt")
print(f"{sys.argv[2]}, {line}: curl {megabytes / curl:.0f} MiB/s, curl and {sys.argv[2]}sum "
      f"{megabytes / verified:.0f} MiB/s, wincimg {megabytes / own:.0f} MiB/s "
      f"({100 * curl / own:.0f}% of curl, {100 * verified / own:.0f}% of curl and hash), "
      f"{memory:.1f} MiB of memory")
PYTHON
done
