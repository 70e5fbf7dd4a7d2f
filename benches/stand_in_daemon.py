"""A stand-in for a Docker daemon on Windows: each RUN of a build leaves a layer with one small file.

It knows the requests of a build with steps on Windows that pushes to a registry, and images that are in one.
"""

import contextlib
import hashlib
import http.server
import io
import json
import tarfile
import threading
import urllib.parse
import urllib.request

import build

INFO = {
    "OSType": "windows",
    "OperatingSystem": "Windows Server 2019 Datacenter Version 1809 (OS Build 17763.973)",
    "OSVersion": "10.0.17763",
    "Isolation": "process",
    "RegistryConfig": {"InsecureRegistryCIDRs": ["127.0.0.0/8"]},
}


class Image:
    """An image that was built: its configuration, its manifest, and the repository that has its blobs."""

    def __init__(self, base, runs):
        host, _, path = base.partition("/")
        name, _, digest = path.partition("@")
        self.registry, self.repository = f"http://{host}", name.split(":")[0]
        kinds = f"application/vnd.oci.image.manifest.v1+json, {build.MANIFEST}"
        self.manifest = build.get_json(self.url("manifests", digest), Accept=kinds)
        self.config = build.get_json(self.url("blobs", self.manifest["config"]["digest"]))
        for line in runs:
            name = hashlib.sha256(line.encode()).hexdigest()[:8]
            blob, diff_id = build.push_layer(self.registry, self.repository, build.tar_of({f"Files/made-{name}.txt": line.encode()}))
            self.manifest["layers"].append({"mediaType": self.manifest["layers"][-1]["mediaType"], **blob})
            self.config["rootfs"]["diff_ids"].append(diff_id)
            self.config.setdefault("history", []).append({"created_by": line})
        config = build.push_blob(self.registry, self.repository, json.dumps(self.config).encode())
        self.id = config["digest"]
        self.manifest["config"].update(config)

    def url(self, kind, name):
        return f"{self.registry}/v2/{self.repository}/{kind}/{name}"

    def push(self, tag):
        kind = self.manifest["mediaType"]
        answer = build.request("PUT", self.url("manifests", tag), json.dumps(self.manifest).encode(), Content_Type=kind)
        return answer["Docker-Content-Digest"]


def serve():
    """A daemon; its address."""
    images, tagged = {}, {}

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def handle(self):
            # A client may end without saying so.
            with contextlib.suppress(ConnectionError):
                super().handle()

        def answer(self, status, body=b""):
            self.send_response(status)
            self.send_header("Api-Version", "1.41")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def body(self):
            if self.headers.get("Transfer-Encoding") != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = []
            while size := int(self.rfile.readline().split(b";")[0], 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def do_GET(self):
            path = urllib.parse.unquote(urllib.parse.urlsplit(self.path).path)
            if path.endswith("/_ping"):
                return self.answer(200, b"OK")
            if path.endswith("/info"):
                return self.answer(200, json.dumps(INFO).encode())
            image = images.get(path.partition("/images/")[2].removesuffix("/json"))
            if not image:
                return self.answer(404, b'{"message": "No such image"}')
            root = {"Type": "layers", "Layers": image.config["rootfs"]["diff_ids"]}
            shown = {"Id": image.id, "Os": "windows", "OsVersion": image.config["os.version"], "RootFS": root}
            return self.answer(200, json.dumps(shown).encode())

        def do_POST(self):
            body = self.body()
            address = urllib.parse.urlsplit(self.path)
            path = urllib.parse.unquote(address.path)
            query = dict(urllib.parse.parse_qsl(address.query))
            name = path.partition("/images/")[2].rpartition("/")[0]
            if path.endswith("/build"):
                with tarfile.open(fileobj=io.BytesIO(body)) as context:
                    lines = context.extractfile("Dockerfile").read().decode().splitlines()
                base = next(line.split()[1] for line in lines if line.startswith("FROM "))
                image = Image(base, [line for line in lines if line.startswith("RUN ")])
                images[image.id] = image
                return self.answer(200, json.dumps({"aux": {"ID": image.id}}).encode() + b"\n")
            if path.endswith("/tag"):
                tagged[query["repo"], query["tag"]] = images[name]
                return self.answer(201)
            if path.endswith("/push"):
                digest = tagged[name, query["tag"]].push(query["tag"])
                return self.answer(200, json.dumps({"aux": {"Digest": digest, "Tag": query["tag"]}}).encode() + b"\n")
            return self.answer(404, b'{"message": "page not found"}')

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"tcp://127.0.0.1:{server.server_port}"
