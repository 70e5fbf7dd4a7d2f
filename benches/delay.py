"""A TCP proxy on loopback that delays everything, as a distant server does, and records the requests.

DELAY applies each way, so a request and its answer take two. Connections are not delayed, because TCP's round trip is
between client and proxy; TLS handshakes are.
"""

import asyncio
import contextlib
import threading
import time
from dataclasses import dataclass

DELAY = 0.025
ROUND_TRIP = 2 * DELAY


@dataclass
class Noted:
    """A request, by the moments its head left the client and its answer began to arrive there."""

    line: str
    sent: float
    answered: float = float("inf")


def depths(noted):
    """How many answers each request had to wait for, itself included: the longest chain of requests of which each
    was sent after the one before it was answered."""
    found = []
    for it in noted:
        before = (depth for other, depth in zip(noted, found) if other.answered <= it.sent)
        found.append(1 + max(before, default=0))
    return found


class Requests:
    """Finds the requests in what a client sends over one connection of HTTP/1.1, and when each is answered."""

    def __init__(self, noted):
        self.noted, self.open, self.head, self.left = noted, [], b"", 0

    def sent(self, data, moment):
        while data:
            if self.left:
                skipped = min(self.left, len(data))
                self.left -= skipped
                data = data[skipped:]
                continue
            self.head += data
            head, end, data = self.head.partition(b"\r\n\r\n")
            if not end:
                return
            self.head = b""
            line, *headers = head.decode("latin-1").split("\r\n")
            self.open.append(Noted(line.rsplit(" ", 1)[0], moment))
            self.noted.append(self.open[-1])
            for header in headers:
                name, _, value = header.partition(":")
                if name.lower() == "content-length":
                    self.left = int(value)

    def arrived(self, moment):
        """Something came back: of HTTP/1.1, to the one request that is open."""
        for it in self.open:
            it.answered = moment
        self.open.clear()


class DelayingProxy:
    """Stands before a port of this machine, in a thread of its own; `with` starts and ends it."""

    def __init__(self, port, delay=DELAY):
        self.upstream, self.delay = port, delay
        self.noted, self.connections = [], 0
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        serving = asyncio.start_server(self.connect, "127.0.0.1", 0, backlog=1024)
        server = asyncio.run_coroutine_threadsafe(serving, self.loop).result()
        self.port = server.sockets[0].getsockname()[1]
        return self

    def __exit__(self, *_):
        asyncio.run_coroutine_threadsafe(self.end(), self.loop).result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    async def end(self):
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def forget(self):
        self.noted.clear()
        self.connections = 0

    async def connect(self, reader, writer):
        self.connections += 1
        requests = Requests(self.noted)
        with contextlib.suppress(asyncio.CancelledError):
            there, back = await asyncio.open_connection("127.0.0.1", self.upstream)
            await asyncio.gather(
                self.carry(reader, back, requests.sent, None),
                self.carry(there, writer, None, requests.arrived),
            )

    async def carry(self, reader, writer, seen, handed):
        """Hands on what comes, later by the delay, in its order."""
        waiting = asyncio.Queue()
        handing = asyncio.create_task(self.hand_on(waiting, writer, handed))
        data = b"-"
        while data:
            try:
                data = await reader.read(1 << 17)
            except OSError:
                data = b""
            moment = time.monotonic()
            if seen:
                seen(data, moment)
            waiting.put_nowait((moment + self.delay, data))
        await handing

    async def hand_on(self, waiting, writer, handed):
        with contextlib.suppress(OSError):
            while True:
                due, data = await waiting.get()
                await asyncio.sleep(due - time.monotonic())
                if not data:
                    break
                if handed:
                    handed(time.monotonic())
                writer.write(data)
                await writer.drain()
        writer.close()
