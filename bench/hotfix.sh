#!/usr/bin/env bash
# Downloads one large update from a local server with wincimg, which hashes it, with curl, which does
# not, and with curl and sha256sum or sha1sum after it; compares rates, and says wincimg's memory.
# On loopback curl is as fast as the page cache; a CPU that hashes at 2 GiB/s sets the limit then.
#   bench/hotfix.sh [WINCIMG] [MEGABYTES] [RUNS]
set -euo pipefail
wincimg=$(realpath "${1:-target/release/wincimg}")
megabytes=${2:-1024}
runs=${3:-5}
work=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"

# The server plays the catalog's two pages and sends the file without copying it.
cat >server.py <<'PYTHON'
import base64, hashlib, http.server, os, socketserver, sys

megabytes = int(sys.argv[1])
kind = sys.argv[2]
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
            while sent < size:
                sent += os.sendfile(self.connection.fileno(), file.fileno(), sent, size - sent)

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

for kind in sha256 sha1; do
    rm -f port
    python3 server.py "$megabytes" "$kind" &
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
    python3 - "$megabytes" "$kind" <<'PYTHON'
import statistics, sys
megabytes = int(sys.argv[1])
def read(name):
    rows = [line.split() for line in open(name)]
    return statistics.median(float(row[0]) for row in rows), max(float(row[1]) for row in rows)
curl, _ = read("curl.txt")
verified, _ = read("verified.txt")
own, memory = read("wincimg.txt")
print(f"{sys.argv[2]}: curl {megabytes / curl:.0f} MiB/s, curl and {sys.argv[2]}sum "
      f"{megabytes / verified:.0f} MiB/s, wincimg {megabytes / own:.0f} MiB/s "
      f"({100 * curl / own:.0f}% of curl, {100 * verified / own:.0f}% of curl and hash), "
      f"{memory:.1f} MiB of memory")
PYTHON
done
