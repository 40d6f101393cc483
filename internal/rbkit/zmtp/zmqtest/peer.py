# Copyright The Callbraid Authors
# SPDX-License-Identifier: Apache-2.0
"""A socket of libzmq that is told what to do by lines.

    peer.py TYPE bind|connect ADDRESS [OPTION=VALUE ...]

TYPE is a type of sockets, as PUB. First it prints "ready" and the address it is bound to
or connects to. What it receives is printed as "got" and, for each part, its length and its
SHA-256, or the part itself (show=yes). Then there are lines of stdin:

    send HEX [HEX ...]      sends a message of these parts ("-" is an empty part)
    many N SIZE             sends N messages of so many bytes, each beginning with its number
    pause, resume           doesn't receive, receives again; each is answered by its name

It ends at the end of stdin. Options:

    subscribe=HEX           subscribes to a prefix ("-" is the empty one)
    user=NAME password=PASSWORD   says who it is by PLAIN; bound it lets only this one in
    reply=yes               a REP socket answers each request with its parts, reversed
    show=yes                prints parts that were received in hex
    hwm=N                   what is kept for slow peers and from fast ones
    heartbeat=MS            sends PING so often, with a time-out and a time to live twice as long
"""
import hashlib
import os
import sys

import zmq
import zmq.auth.thread


def unhex(text):
    return b"" if text == "-" else bytes.fromhex(text)


def say(*words):
    print(*words, flush=True)


class Peer:
    def __init__(self, kind, how, address, options):
        self.context = zmq.Context()
        self.socket = self.context.socket(getattr(zmq, kind))
        self.socket.linger = 10_000
        self.replies = options.get("reply") == "yes"
        self.shows = options.get("show") == "yes"
        self.auth = None
        self.set(how, options)
        if how == "bind":
            self.socket.bind(address)
        else:
            self.socket.connect(address)
        if "subscribe" in options:
            self.socket.setsockopt(zmq.SUBSCRIBE, unhex(options["subscribe"]))
        self.poller = zmq.Poller()
        self.poller.register(sys.stdin.fileno(), zmq.POLLIN)
        self.resume()
        say("ready", self.socket.last_endpoint.decode())

    def set(self, how, options):
        if "hwm" in options:
            self.socket.set_hwm(int(options["hwm"]))
        if "heartbeat" in options:
            ms = int(options["heartbeat"])
            self.socket.heartbeat_ivl = ms
            self.socket.heartbeat_timeout = 2 * ms
            self.socket.heartbeat_ttl = 2 * ms
        if "user" not in options:
            return
        if how == "bind":
            self.auth = zmq.auth.thread.ThreadAuthenticator(self.context)
            self.auth.start()
            self.auth.configure_plain(domain="*", passwords={options["user"]: options["password"]})
            self.socket.plain_server = True
        else:
            self.socket.plain_username = options["user"].encode()
            self.socket.plain_password = options["password"].encode()

    def resume(self):
        if self.socket.socket_type != zmq.PUB:
            self.poller.register(self.socket, zmq.POLLIN)

    def printed(self, part):
        if self.shows:
            return part.hex() or "-"
        return f"{len(part)}:{hashlib.sha256(part).hexdigest()}"

    def receive(self):
        parts = self.socket.recv_multipart()
        say("got", *(self.printed(p) for p in parts))
        if self.replies:
            self.socket.send_multipart([p[::-1] for p in parts])

    def obey(self, line):
        word, *rest = line.split()
        if word == "send":
            self.socket.send_multipart([unhex(p) for p in rest])
        elif word == "many":
            count, size = int(rest[0]), int(rest[1])
            for n in range(count):
                self.socket.send(n.to_bytes(8, "big").ljust(size, b"."))
        elif word == "pause":
            self.poller.unregister(self.socket)
            say("pause")
        elif word == "resume":
            self.resume()
            say("resume")
        else:
            raise ValueError(f"expected a command, got {line!r}")

    def run(self):
        pending = []  # of a line that is not complete
        while True:
            ready = dict(self.poller.poll())
            if self.socket in ready:
                self.receive()
            if sys.stdin.fileno() in ready:
                more = os.read(sys.stdin.fileno(), 1 << 20)
                if not more:
                    return
                first, *rest = more.split(b"\n")
                pending.append(first)
                for start in rest:
                    self.obey(b"".join(pending).decode())
                    pending = [start]

    def close(self):
        if self.auth:
            self.auth.stop()
        self.socket.close()
        self.context.term()


def main():
    kind, how, address, *options = sys.argv[1:]
    peer = Peer(kind, how, address, dict(o.split("=", 1) for o in options))
    try:
        peer.run()
    finally:
        peer.close()


main()
