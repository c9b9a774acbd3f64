"""Messages of an MQTT broker a second, against the same rows over HTTP.

    python3 benchmarks/mqtt.py target/release/windrow [postgres://..]

Needs mosquitto and mosquitto_pub. The broker keeps the messages while Windrow is stopped; then
Windrow starts and takes all of them.
"""

import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial

MESSAGES = int(os.environ.get("MESSAGES", "30000"))
CLIENTS, ROWS_OF_CLIENT = 32, 200
WRITTEN = 'windrow_mqtt_rows_total{outcome="written"}'


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Bench:
    def __init__(self, program, url):
        self.folder = tempfile.mkdtemp()
        self.broker_port, self.port = free_port(), free_port()
        self.program, self.url = program, url or f"sqlite:{self.folder}/windrow.db"
        self.write("mosquitto.conf", f"allow_anonymous true\nlistener {self.broker_port} 127.0.0.1\n"
                   "max_inflight_messages 1000\nmax_queued_messages 0\n")
        self.write("windrow.toml", f"[mqtt]\nurl = 'mqtt://127.0.0.1:{self.broker_port}'\n"
                   "[mqtt.topics.readings]\ntopic = 'd/{device}'\ntable = 'by_mqtt'\n")
        self.broker = self.spawn("mosquitto", "-c", f"{self.folder}/mosquitto.conf")
        self.gateway = self.serve()

    def write(self, name, text):
        with open(f"{self.folder}/{name}", "w") as file:
            file.write(text)

    def spawn(self, *command):
        log = open(f"{self.folder}/log", "a")
        return subprocess.Popen(command, stdout=log, stderr=log)

    def serve(self):
        gateway = self.spawn(
            self.program, "serve", "--config", f"{self.folder}/windrow.toml", "--to", self.url,
            "--create-tables", "--http", f"127.0.0.1:{self.port}")
        while True:
            try:
                self.metric(WRITTEN)
                return gateway
            except OSError:
                time.sleep(0.01)

    def metric(self, name):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        connection.request("GET", "/metrics")
        lines = connection.getresponse().read().decode().splitlines()
        return sum(float(line.split()[-1]) for line in lines if line.startswith(f"{name} "))

    def until(self, name, value):
        while self.metric(name) < value:
            time.sleep(0.02)

    def stop(self, process):
        process.terminate()
        process.wait()

    def post(self, table, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port)
        headers = {"content-type": "application/x-ndjson"}
        connection.request("POST", f"/v1/tables/{table}/rows?results=errors", body, headers)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()

    def client(self, table, first):
        """Inserts rows one by one."""
        with socket.create_connection(("127.0.0.1", self.port)) as client:
            answers = client.makefile("rb")
            for number in range(first, first + ROWS_OF_CLIENT):
                row = json.dumps(reading(number, device="d1")).encode()
                head = f"POST /v1/tables/{table}/rows HTTP/1.1\r\nhost: 127.0.0.1\r\n" \
                    f"content-type: application/json\r\ncontent-length: {len(row)}\r\n\r\n"
                client.sendall(head.encode() + row)
                assert b" 201 " in answers.readline()
                length = 0
                while (line := answers.readline()) != b"\r\n":
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                answers.read(length)

    def run(self):
        figures = {}
        publish = ["mosquitto_pub", "-p", str(self.broker_port), "-q", "1", "-t", "d/d1", "-l"]
        self.until("windrow_mqtt_connected", 1)
        subprocess.run(publish, input=lines(0, 1), text=True, check=True)
        self.until(WRITTEN, 1)
        self.stop(self.gateway)
        subprocess.run(publish, input=lines(1, MESSAGES + 1), text=True, check=True)
        begun = time.monotonic()
        self.gateway = self.serve()
        self.until(WRITTEN, MESSAGES)
        figures["MQTT, QoS 1"] = MESSAGES / (time.monotonic() - begun)
        self.post("by_body", lines(0, 1, device="d1"))
        begun = time.monotonic()
        self.post("by_body", lines(1, MESSAGES + 1, device="d1"))
        figures["HTTP, one body"] = MESSAGES / (time.monotonic() - begun)
        self.post("one_by_one", lines(0, 1, device="d1"))
        count = CLIENTS * ROWS_OF_CLIENT
        begun = time.monotonic()
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(partial(self.client, "one_by_one"), range(1, count, ROWS_OF_CLIENT)))
        figures[f"HTTP, {CLIENTS} clients (of this script), single rows"] = count / (
            time.monotonic() - begun)
        return figures


def reading(number, **more):
    return {"id": number, "celsius": 21.5, "humidity": number % 100, **more}


def lines(begin, end, **more):
    return "".join(json.dumps(reading(number, **more)) + "\n" for number in range(begin, end))


def main():
    bench = Bench(sys.argv[1], (sys.argv[2:] or [None])[0])
    try:
        for name, figure in bench.run().items():
            print(f"{name}: {figure:,.0f} rows/s")
    finally:
        bench.stop(bench.gateway)
        bench.stop(bench.broker)


main()
