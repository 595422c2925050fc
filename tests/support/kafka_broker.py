"""A real Kafka broker (KRaft, one node) in a JVM: the jars that `make lane-ingest` fetches (scripts/fetch_jars.py)."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.zookeeper_server import free_port

_SECONDS_TO_START = 90.0
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_JVM = ("-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.net.preferIPv4Stack=true")


@dataclass
class Broker:
    """A broker whose data is in a folder; it can be killed and started again."""

    folder: Path
    port: int = field(default_factory=free_port)
    _controller_port: int = field(default_factory=free_port)
    _process: subprocess.Popen[bytes] | None = None

    @property
    def servers(self) -> str:
        """Its address for clients."""
        return f"127.0.0.1:{self.port}"

    def admin(self) -> Any:
        """Return an administrating client, which must live until its futures are done."""
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers})

    def create_topic(self, name: str, partitions: int = 1) -> None:
        """Create a topic, and wait until it has its partitions."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        admin = self.admin()
        _done(admin.create_topics([NewTopic(name, partitions, 1)]))

    def add_partitions(self, name: str, total: int) -> None:
        """Increase the number of partitions."""
        from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

        admin = self.admin()
        _done(admin.create_partitions([NewPartitions(name, total)]))
        time.sleep(0.5)

    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        admin = self.admin()
        _done(admin.delete_topics([name]))
        time.sleep(1)

    def delete_records(self, topic: str, before: dict[int, int]) -> None:
        """Remove the messages before an offset of each partition, as retention does."""
        from confluent_kafka import TopicPartition

        admin = self.admin()
        _done(admin.delete_records([TopicPartition(topic, number, end) for number, end in before.items()]))

    def send(self, topic: str, values: list[bytes | None], partition: int = 0, **settings: Any) -> None:
        """Write messages, with keys `k0`, `k1`, …"""
        producer = self.producer(**settings)
        for number, value in enumerate(values):
            producer.produce(topic, value, key=f"k{number}", partition=partition)
            producer.poll(0)
        assert producer.flush(30) == 0

    def producer(self, **settings: Any) -> Any:
        """Return a producing client."""
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.servers, "linger.ms": 5, **settings})

    def start(self) -> None:
        """Start the broker, and wait until it answers. Raises: AssertionError if it does not."""
        settings = self.folder / "server.properties"
        if not settings.exists():
            settings.write_text(self._settings())
            self._run("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", str(settings)).communicate(timeout=60)
        self._process = self._run("kafka.Kafka", str(settings))
        deadline = time.monotonic() + _SECONDS_TO_START
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(f"Kafka did not start:\n{(self.folder / 'log').read_text()[-3000:]}")
            time.sleep(0.2)

    def kill(self) -> None:
        """Kill the broker; its data stays."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        try:
            # The client would write a line for each refused connection.
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return bool(self.admin().list_topics(timeout=5).brokers)
        except (OSError, KafkaException):
            return False

    def _run(self, *command: str) -> subprocess.Popen[bytes]:
        jars = Path(os.environ.get("HOODIE_KAFKA_JARS", ""))
        assert list(jars.glob("kafka_2.13-*.jar")), f"HOODIE_KAFKA_JARS is '{jars}', not the jars: `make lane-ingest`"
        with (self.folder / "log").open("a") as log:
            classpath = f"{jars.resolve()}/*"
            return subprocess.Popen(["java", *_JVM, "-cp", classpath, *command], stdout=log, stderr=log)

    def _settings(self) -> str:
        properties = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{self._controller_port}",
            "listeners": f"PLAINTEXT://127.0.0.1:{self.port},CONTROLLER://127.0.0.1:{self._controller_port}",
            "advertised.listeners": f"PLAINTEXT://127.0.0.1:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
            "log.dirs": self.folder / "data",
            "offsets.topic.replication.factor": 1,
            "transaction.state.log.replication.factor": 1,
            "transaction.state.log.min.isr": 1,
            "transaction.state.log.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
            "auto.create.topics.enable": "false",
        }
        return "".join(f"{name}={value}\n" for name, value in properties.items())


@contextlib.contextmanager
def running_broker(folder: Path) -> Iterator[Broker]:
    """Run a broker with its data in a folder. Raises: AssertionError if the jars are missing or it does not start."""
    folder.mkdir(exist_ok=True)
    broker = Broker(folder)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


def _done(futures: dict[Any, Any]) -> None:
    for future in futures.values():
        future.result(30)
