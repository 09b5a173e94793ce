# SPDX-License-Identifier: Apache-2.0
"""A soak from its beginning to its end."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import socket
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing.process import BaseProcess
from pathlib import Path

import kombu

from blazar.clouds.simulated.volume_state import PoolState
from blazar.model.leases.states import EndReason
from blazar.store.sql.engine import make_engine
from blazar.store.sql.migrate import upgrade
from blazar.store.store import Store
from tests.conftest import RABBITMQ, fresh_database
from tests.people import PeopledCloud
from tests.soak.clients import OPERATOR, Api, User
from tests.soak.cutter import Cutter, Spared
from tests.soak.operations import Operations
from tests.soak.plan import ADDRESSES, DEVICES, HOSTS, OFFERED, POOL_GB, POOLS, SEGMENTS, THINGS, Plan
from tests.soak.planners import Caller, Idler, Operator, Planner
from tests.soak.processes import manage, serve
from tests.soak.rest import come_to_rest, give_all_back, leave_traces, read_logs, serve_everybody
from tests.soak.surgeons import WHERE, Surgeon
from tests.soak.watch import Watch
from tests.world import device_request, thing_request

MANAGERS = 3
CLIENTS = 8
PLANNERS = 4
CLAIMS = (1, 5)
"""Seconds that a claim lasts: in the first half of the time, and in the second."""

CONF = """
[DEFAULT]
transport_url = {bus}
control_exchange = {topic}
rpc_response_timeout = 12

[manager]
rpc_topic = {topic}
heal_active = replace
request_limit = 6
minutes_before_end_lease = 0
sweep_interval = 5
startup_wait = 30

[database]
connection = {database}
max_pool_size = 8

[physical:host]
polling_interval = 2
"""


@dataclass(slots=True)
class Report:
    """What came of a soak."""

    seed: int
    findings: list[str]
    deeds: Counter[str]
    answers: Counter[str]
    looks: int
    leases: int
    served: int
    folder: Path

    def __str__(self) -> str:
        lines = [
            f"seed {self.seed}; {self.leases} leases, {self.served} of them after they had waited; "
            f"the watcher looked {self.looks} times; logs: {self.folder}"
        ]
        lines += [f"{name}: {number}" for name, number in sorted(self.deeds.items())]
        lines += [f"{name}: {number}" for name, number in sorted(self.answers.items())]
        return "\n".join([*lines, f"{len(self.findings)} findings", *self.findings])


class Managers:
    """Three managers, in which somebody shoots."""

    def __init__(self, plan: Plan, watch: Watch, context: multiprocessing.context.ForkServerContext) -> None:
        self.claim_ttl = CLAIMS[0]
        self.deeds: Counter[str] = Counter()
        self.stopping = threading.Event()
        self._plan = plan
        self._watch = watch
        self._context = context
        self._dice = random.Random(f"{plan.seed}:managers")
        self._numbers = iter(range(10**9))
        self._alive: list[BaseProcess] = []
        self._thread = threading.Thread(target=self._shoot, name="shooter", daemon=True)

    def begin(self) -> None:
        """Start all of them, and the trouble."""
        for _ in range(MANAGERS):
            self._bear()
        self._thread.start()

    def calm(self) -> None:
        """End the trouble, and leave all of them alive."""
        self.stopping.set()
        self._thread.join()

    def restart_all(self, claim_ttl: int) -> None:
        """Have claims last longer, or shorter, in all managers that come."""
        self.claim_ttl = claim_ttl

    def end(self) -> None:
        """Kill whatever is alive."""
        self.stopping.set()
        for process in self._alive:
            process.kill()
        for process in self._alive:
            process.join(10)

    def _bear(self) -> None:
        arguments = (self._plan, next(self._numbers), self.claim_ttl)
        process = self._context.Process(target=manage, args=arguments, daemon=True)
        process.start()
        self._alive.append(process)

    def _shoot(self) -> None:
        lasting = self.claim_ttl
        while not self.stopping.wait(self._dice.uniform(1.5, 4)):
            self._bury()
            if lasting != self.claim_ttl:
                lasting = self.claim_ttl
                for victim in list(self._alive):
                    self._ask_to_end(victim)
                continue
            victim = self._dice.choice(self._alive)
            match self._dice.choice(("kill -9", "SIGSTOP", "SIGSTOP", "SIGTERM")):
                case "kill -9":
                    self.deeds["kill -9"] += 1
                    self._signal(victim, signal.SIGKILL)
                    self._replace(victim)
                case "SIGSTOP":
                    self.deeds["SIGSTOP"] += 1
                    self._hold_up(victim)
                case "SIGTERM":
                    self._ask_to_end(victim)

    def _hold_up(self, victim: BaseProcess) -> None:
        # A process that stopped with the lock of the cloud's file would stop the cloud for all; here we have it.
        with self._plan.cloud().inspect():
            self._signal(victim, signal.SIGSTOP)
        self.stopping.wait(1.5 * self.claim_ttl)
        self._signal(victim, signal.SIGCONT)

    def _ask_to_end(self, victim: BaseProcess) -> None:
        self.deeds["SIGTERM"] += 1
        self._signal(victim, signal.SIGTERM)
        victim.join(40)
        if victim.is_alive():
            self._watch.found(f"{victim.name} (pid {victim.pid}) does not end 40 s after SIGTERM")
            victim.kill()
        elif victim.exitcode not in (0, -signal.SIGTERM):
            # A process that has only just started does not listen yet.
            self._watch.found(f"{victim.name} (pid {victim.pid}) ended with {victim.exitcode} after SIGTERM")
        self._replace(victim)

    def _bury(self) -> None:
        for process in list(self._alive):
            if not process.is_alive():
                self._watch.found(f"{process.name} (pid {process.pid}) ended by itself with {process.exitcode}")
                self._replace(process)

    def _replace(self, dead: BaseProcess) -> None:
        dead.join(10)
        self._alive.remove(dead)
        self._bear()

    def _signal(self, process: BaseProcess, number: int) -> None:
        if process.pid is not None and process.is_alive():
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)


class Hosts(threading.Thread):
    """Hosts that go down and come back."""

    def __init__(self, cloud: PeopledCloud, seed: int, deeds: Counter[str]) -> None:
        super().__init__(name="hosts", daemon=True)
        self.stopping = threading.Event()
        self._cloud = cloud
        self._dice = random.Random(f"{seed}:hosts")
        self._deeds = deeds

    def run(self) -> None:
        """Let one after the other be down for some seconds."""
        while not self.stopping.wait(self._dice.uniform(2, 6)):
            name = f"node-{self._dice.randint(1, HOSTS)}"
            self._cloud.operators.host_down(name)
            self._deeds["host down"] += 1
            self.stopping.wait(self._dice.uniform(1, 9))
            self._cloud.operators.host_up(name)


def soak(
    minutes: float,
    *,
    database: str = "postgresql",
    seed: int | None = None,
    folder: Path | None = None,
    cut: float | None = None,
) -> Report:
    """Run for so long and return what came of it. Nothing that was started is left, whatever happens.

    Each ``cut`` seconds the connections of all processes of the service to the database are cut.
    """
    seed = random.randrange(10**6) if seed is None else seed
    folder = folder or Path(tempfile.mkdtemp(prefix="blazar-soak-"))
    print(f"soak: seed {seed}, {minutes} minutes on {database}; logs in {folder}", flush=True)
    topic = f"soak-{uuid.uuid4().hex[:12]}"
    databases = fresh_database(database, folder)
    url = next(databases)
    try:
        plan = Plan(folder, url, topic, seed)
        plan.config_file.write_text(CONF.format(bus=RABBITMQ, topic=topic, database=url), encoding="utf-8")
        with bus_swept(topic):
            return _soak(plan, minutes, cut)
    finally:
        with suppress(StopIteration):
            next(databases)


def _soak(plan: Plan, minutes: float, cut: float | None) -> Report:
    engine = make_engine(plan.database_url, pool_size=CLIENTS + 4)
    spared = Spared(engine)
    upgrade(engine)
    store = Store(engine)
    cloud = plan.cloud()
    for flavor in OFFERED:
        cloud.operators.offer_flavor(flavor)
    for n in POOLS:
        cloud.volume_users.add_pool(PoolState(f"node@disks#{n}", "disks", str(n), POOL_GB), type_name=f"disks-{n}")
    plan.busy.touch()
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.soak.processes"])
    watch = Watch(plan, store)
    operations = Operations(store, watch.found)
    managers = Managers(plan, watch, context)
    hosts = Hosts(plan.cloud(), plan.seed, managers.deeds)
    cutter = Cutter(plan.database_url, cut, spared, managers.deeds)
    listening, said = context.Pipe(duplex=False)
    api = context.Process(target=serve, args=(plan, said), daemon=True)
    users: list[User] = []
    planners: list[Caller] = []
    try:
        api.start()
        if not listening.poll(60):
            raise RuntimeError(f"the API does not listen; see {plan.folder}")
        address = f"http://127.0.0.1:{listening.recv()}"
        admin = Api(address, OPERATOR, watch)
        plan.busy.unlink()
        managers.begin()
        _register(admin)
        plan.busy.touch()
        users = [User(n, address, plan.cloud(), store, watch, plan.seed) for n in range(CLIENTS)]
        planners = [Planner(n, address, watch, plan.seed) for n in range(PLANNERS)]
        planners += [each(address, watch, plan.seed) for each in (Operator, Idler)]
        planners += [Surgeon(each, address, store, watch, operations, plan.seed) for each in (*WHERE, None)]
        for thread in (watch, hosts, cutter, *users, *planners):
            thread.start()
        end = time.monotonic() + minutes * 60
        _wait(end - minutes * 30, watch)
        managers.restart_all(CLAIMS[1])
        _wait(end, watch)
        for thread in (hosts, cutter, *users, *planners):
            thread.stopping.set()
        for thread in (hosts, cutter, *users, *planners):
            thread.join(120)
        managers.calm()
        plan.busy.unlink()
        come_to_rest(plan, store, watch, admin)
        serve_everybody(store, watch, admin)
        watch.stopping.set()
        watch.join(30)
        give_all_back(plan, store, watch, admin)
        operations.check()
        past = store.leases.load_past()
        managers.deeds["released as unused"] = sum(lease.end_reason is EndReason.UNUSED for lease in past)
        managers.deeds.update({f"leases {what}": number for what, number in operations.counts.items()})
        read_logs(plan, watch)
        leave_traces(store, plan, watch)
    finally:
        for thread in (watch, hosts, cutter, *users, *planners):
            thread.stopping.set()
        managers.end()
        api.kill()
        api.join(10)
        engine.dispose()
    answers = sum((user.api.answers + user.operator.answers for user in users), Counter[str]())
    answers = sum((planner.answers for planner in planners), answers)
    findings = [f"{at:%H:%M:%S.%f} {what}" for what, at in watch.findings.items()]
    return Report(
        plan.seed, findings, managers.deeds, answers, watch.looks, len(past), len(watch.turns.served), plan.folder
    )


def _wait(until: float, watch: Watch) -> None:
    told = 0
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(1, left))
        for what in list(watch.findings)[told:]:
            print(f"found: {watch.findings[what]:%H:%M:%S} {what}", flush=True)
            told += 1


def _register(admin: Api) -> None:
    """Register hosts, addresses, segments, pools, devices and things; nobody troubles the managers yet."""
    wanted = [("/v1/os-hosts", {"name": f"node-{n}"}) for n in range(1, HOSTS + 1)]
    wanted += [
        ("/v1/floatingips", {"floating_network_id": "public", "floating_ip_address": f"203.0.113.{n}"})
        for n in ADDRESSES
    ]
    wanted += [
        ("/v1/networks", {"network_type": "vlan", "physical_network": "physnet1", "segment_id": n}) for n in SEGMENTS
    ]
    wanted += [("/v1/devices", device_request(f"edge-{n}").given) for n in DEVICES]
    wanted += [("/v1/resources/generic", thing_request(f"thing-{n}", capacity=1 + n % 2 * 5).given) for n in THINGS]
    wanted += [
        ("/v1/resources/volume", {"pool": f"node@disks#{n}", "volume_type": f"disks-{n}", "gigabytes": POOL_GB})
        for n in POOLS
    ]
    for path, body in wanted:
        status = 0
        for _ in range(20):
            status, _ = admin.ask("POST", path, body)
            if status in (201, 409):
                break
            time.sleep(1)
        if status not in (201, 409):
            raise RuntimeError(f"{path} {body}: {status}")


@contextmanager
def bus_swept(topic: str) -> Iterator[None]:
    """Leave nothing of a topic on the message bus."""
    try:
        yield
    finally:
        with suppress(Exception), kombu.Connection(RABBITMQ.replace("rabbit://", "amqp://")) as connection:
            for queue in (topic, f"{topic}.{socket.gethostname()}"):
                with suppress(Exception):
                    connection.channel().queue_delete(queue)
            for exchange in (topic, f"{topic}_fanout"):
                with suppress(Exception):
                    connection.channel().exchange_delete(exchange)
