"""The package before the program, with SQLite: `python3 -m unittest discover -s tests`."""

from __future__ import annotations

import asyncio
import base64
import datetime
import socket
import threading
import unittest
import uuid
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal

import windrow
from gateway import CuttingProxy, Gateway, Script, program
from windrow import _operations
from windrow._database import portions
from windrow._operations import Operation, encode
from windrow._writer import Writer

OK = '{"results":[{"rows":1}],"errors":0}'
FULL = '{"error":{"code":"53200","message":"full"}}'


def numbers_below(db: windrow.Database, table: str, end: int) -> set[int]:
    """Returns the keys below `end` that a table has."""
    with ThreadPoolExecutor(16) as pool:
        found = pool.map(lambda n: (n, db.get(table, n)), range(end))
    return {n for n, row in found if row is not None}


class Encoding(unittest.TestCase):
    def test_values_become_the_json_of_the_http_api(self) -> None:
        zone = datetime.timezone.utc
        self.assertEqual(
            encode(
                {
                    "time": datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=zone),
                    "day": datetime.date(2026, 1, 2),
                    "bytes": b"\x00\xff",
                    "id": uuid.UUID(int=1),
                    "none": None,
                }
            ),
            '{"time":"2026-01-02T03:04:05+00:00","day":"2026-01-02","bytes":"AP8=",'
            '"id":"00000000-0000-0000-0000-000000000001","none":null}',
        )

    def test_decimals_keep_every_digit(self) -> None:
        digits = "12345678901234567890.123456789012345678900"
        self.assertEqual(encode({"n": [Decimal(digits)]}), '{"n":[' + digits + "]}")
        self.assertEqual(encode({"n": float("nan"), "b": b"a"}), '{"n":"NaN","b":"YQ=="}')

    def test_a_value_of_an_unknown_type_is_refused_before_it_is_sent(self) -> None:
        with self.assertRaisesRegex(TypeError, "object"):
            encode({"n": object()})

    def test_portions_are_limited(self) -> None:
        rows = [Operation("x" * 1_000_000, None)] * 10
        self.assertEqual([len(portion) for portion in portions(rows)], [5, 5])
        self.assertEqual([len(portion) for portion in portions(rows[:1] * 1)], [1])


class Retries(unittest.TestCase):
    def script(self, *answers: tuple[int, dict[str, str], str]) -> Script:
        script = Script(answers)
        self.addCleanup(script.close)
        return script

    def test_full_and_away_are_sent_again_with_the_same_key(self) -> None:
        now = {"Retry-After": "0"}
        script = self.script((429, now, FULL), (503, now, FULL), (504, now, FULL), (200, {}, OK))
        with windrow.connect(script.url) as db:
            self.assertEqual(db.insert("t", {"id": 1}).rows, 1)
        self.assertEqual(len(script.keys), 4)
        self.assertEqual(len(set(script.keys)), 1)
        self.assertIsNotNone(script.keys[0])

    def test_a_row_that_met_a_database_away_is_sent_again(self) -> None:
        away = '{"results":[{"error":{"code":"57P03","message":"starting"}}],"errors":1}'
        script = self.script((207, {}, away), (200, {}, OK))
        with windrow.connect(script.url) as db:
            self.assertEqual(db.insert("t", {"id": 1}).rows, 1)
        self.assertEqual(script.keys[0], script.keys[1])

    def test_each_request_has_a_key_of_its_own(self) -> None:
        script = self.script((200, {}, OK), (200, {}, OK))
        with windrow.connect(script.url) as db:
            db.insert("t", {"id": 1})
            db.insert("t", {"id": 1})
        self.assertNotEqual(script.keys[0], script.keys[1])

    def test_retries_end(self) -> None:
        for status, kind in ((429, windrow.Overloaded), (503, windrow.Unavailable)):
            script = self.script((status, {"Retry-After": "60"}, FULL))
            with windrow.connect(script.url, retry_for=5) as db:
                with self.assertRaises(kind) as raised:
                    db.insert("t", {"id": 1})
            self.assertEqual((raised.exception.status, raised.exception.code), (status, "53200"))
            self.assertEqual(raised.exception.row, {"id": 1})

    def test_after_a_lost_answer_nothing_is_called_unwritten(self) -> None:
        unknown = (504, {"Retry-After": "0"}, '{"error":{"code":"08007","message":"lost"}}')
        script = self.script(unknown, (503, {"Retry-After": "60"}, FULL))
        with windrow.connect(script.url, retry_for=5) as db:
            with self.assertRaises(windrow.UnknownOutcome):
                db.insert("t", {"id": 1})

    def test_nobody_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:
            port = listener.getsockname()[1]
        with windrow.connect(f"http://127.0.0.1:{port}", retry_for=0) as db:
            with self.assertRaises(windrow.Unavailable):
                db.insert("t", {"id": 1})


class Slow:
    """Stands in for a database whose first request does not end before `go`."""

    def __init__(self) -> None:
        self.requests: list[int] = []
        self.is_busy = threading.Event()
        self.go = threading.Event()

    def execute(self, operations: Sequence[Operation]) -> list[windrow.Result]:
        self.requests.append(len(operations))
        self.is_busy.set()
        self.go.wait()
        return [windrow.Result(1)] * len(operations)


class Joining(unittest.TestCase):
    def test_rows_that_arrive_under_way_go_together(self) -> None:
        slow = Slow()
        with Writer(slow.execute, 100, 1 << 20) as writer:
            first = writer.submit_insert("t", {"id": 0})
            slow.is_busy.wait()
            rest = [writer.submit_insert("t", {"id": n}) for n in range(1, 10)]
            slow.go.set()
            self.assertEqual([one.result().rows for one in [first, *rest]], [1] * 10)
        self.assertEqual(slow.requests, [1, 9])

    def test_a_full_writer_takes_nothing_until_rows_are_sent(self) -> None:
        row = _operations.insert("t", {"id": 1})
        for rows, size in ((2, 1 << 20), (100, 2 * len(row.text))):
            slow = Slow()
            with Writer(slow.execute, rows, size) as writer:
                writer.submit(row)
                slow.is_busy.wait()
                taken = [writer.try_submit(row) is not None for _ in range(4)]
                self.assertEqual(taken, [True, True, False, False])
                late = threading.Thread(target=writer.insert, args=("t", {"id": 2}))
                late.start()
                slow.go.set()
                late.join()
            self.assertEqual(sum(slow.requests), 4)

    def test_a_cancelled_row_is_not_sent(self) -> None:
        slow = Slow()
        with Writer(slow.execute, 100, 1 << 20) as writer:
            writer.submit_insert("t", {"id": 0})
            slow.is_busy.wait()
            self.assertTrue(writer.submit_insert("t", {"id": 1}).cancel())
            writer.submit_insert("t", {"id": 2})
            slow.go.set()
        self.assertEqual(slow.requests, [1, 1])

    def test_a_closed_writer_takes_nothing(self) -> None:
        slow = Slow()
        slow.go.set()
        writer = Writer(slow.execute, 100, 1 << 20)
        future = writer.submit_insert("t", {"id": 0})
        writer.close()
        self.assertTrue(future.done())
        with self.assertRaisesRegex(RuntimeError, "closed"):
            writer.insert("t", {"id": 1})


@unittest.skipIf(program() is None, "WINDROW_BIN names no program")
class Program(unittest.TestCase):
    def setUp(self) -> None:
        self.gateway = Gateway()
        self.addCleanup(self.gateway.close)
        self.db = windrow.connect(self.gateway.url)
        self.addCleanup(self.db.close)

    def test_writes_and_reads(self) -> None:
        self.assertEqual(self.db.insert("t", {"id": 1, "v": 1}), windrow.Result(1))
        given = self.db.insert("t", {"id": 2, "v": 2}, returning="*")
        self.assertEqual(given.returned, {"id": 2, "v": 2})
        self.db.upsert("t", {"id": 1, "v": 5})
        self.assertEqual(self.db.get("t", 1), {"id": 1, "v": 5})
        updated = self.db.update("t", {"id": 1}, {"v": 6}, returning=["v"])
        self.assertEqual(updated.returned, {"v": 6})
        self.assertEqual(self.db.update("t", 99, {"v": 6}).rows, 0)
        self.assertEqual(self.db.delete("t", 1).rows, 1)
        self.assertIsNone(self.db.get("t", 1))
        self.assertEqual(self.db.insert("t", {"id": 2, "v": 0}, on_conflict="ignore").rows, 0)

    def test_a_refused_row_raises_with_its_reason(self) -> None:
        self.db.insert("t", {"id": 1})
        with self.assertRaises(windrow.Rejected) as raised:
            self.db.insert("t", {"id": 1})
        error = raised.exception
        self.assertEqual((error.code, error.row, error.column), ("23505", {"id": 1}, "id"))

    def test_one_name_is_a_key(self) -> None:
        self.db.upsert("named", {"device": "d1", "v": 1}, key="device")
        self.db.upsert("named", {"device": "d1", "v": 2}, key="device")
        kept = self.db.insert("named", {"device": "d1"}, key="device", on_conflict="ignore")
        self.assertEqual(kept.rows, 0)
        self.assertEqual(self.db.get("named", "d1"), {"device": "d1", "v": 2})

    def test_a_number_that_json_does_not_have_is_named(self) -> None:
        self.db.insert("t", {"id": 1, "v": 0.5})
        with self.assertRaisesRegex(windrow.Rejected, r"\(v: JSON has no NaN"):
            self.db.insert("t", {"id": 2, "v": float("nan")})
        refused = self.db.insert_many("t", [{"id": 3, "v": 1.5}, {"id": 3, "v": 2.5}])[1]
        self.assertNotIn("JSON", str(refused))

    def test_each_of_many_rows_has_its_own_result(self) -> None:
        rows = [{"id": n // 2, "n": n} for n in range(12_000)]
        outcomes = self.db.insert_many("t", rows)
        self.assertEqual(len(outcomes), len(rows))
        for row, outcome in zip(rows, outcomes):
            if row["n"] % 2 == 0:
                self.assertEqual(outcome, windrow.Result(1))
            else:
                assert isinstance(outcome, windrow.Rejected)
                self.assertEqual((outcome.code, outcome.row), ("23505", row))

    def test_values_come_back(self) -> None:
        row = {
            "id": 1,
            "number": Decimal("12345678901234567890.123456789012"),
            "time": datetime.datetime(2026, 1, 2, 3, 4, 5, 250000),
            "day": datetime.date(2026, 1, 2),
            "key": uuid.UUID(int=7),
            "content": b"\x00\xfe\xff",
            "flag": True,
            "list": [1, "a", None],
            "text": "ä\U0001f33e\u0000".replace("\u0000", ""),
        }
        self.db.insert("t", row)
        with windrow.connect(self.gateway.url, parse_float=Decimal) as exact:
            found = exact.get("t", 1)
        assert found is not None
        self.assertEqual(Decimal(str(found["number"])), row["number"])
        self.assertEqual(datetime.datetime.fromisoformat(found["time"]), row["time"])
        self.assertEqual(datetime.date.fromisoformat(found["day"]), row["day"])
        self.assertEqual(uuid.UUID(found["key"]), row["key"])
        self.assertEqual(base64.b64decode(found["content"]), row["content"])
        for name in ("flag", "list", "text"):
            self.assertEqual(found[name], row[name])

    def test_rows_of_sixteen_threads_are_there_once_each_with_its_answer(self) -> None:
        def work(thread: int) -> int:
            done = 0
            for n in range(1000):
                try:
                    # The last ten rows of a thread are those of its neighbour.
                    owner = thread if n < 990 else (thread + 1) % 16
                    done += writer.insert("t", {"id": owner * 1000 + n % 990}).rows
                except windrow.Rejected as error:
                    self.assertEqual(error.code, "23505")
            return done

        with self.db.writer() as writer, ThreadPoolExecutor(16) as pool:
            self.assertEqual(sum(pool.map(work, range(16))), 16 * 990)
        expected = {thread * 1000 + n for thread in range(16) for n in range(990)}
        self.assertEqual(numbers_below(self.db, "t", 16_000), expected)

    def test_a_lost_answer_is_asked_for_again(self) -> None:
        proxy = CuttingProxy(self.gateway.port, cuts=3)
        self.addCleanup(proxy.close)
        with windrow.connect(proxy.url) as db:
            outcomes = db.insert_many("t", [{"id": n} for n in (1, 2, 1)])
        self.assertEqual(outcomes[:2], [windrow.Result(1)] * 2)
        self.assertIsInstance(outcomes[2], windrow.Rejected)
        self.assertEqual(proxy.cuts, 0)

    def test_without_a_key_a_lost_answer_is_unknown(self) -> None:
        proxy = CuttingProxy(self.gateway.port, cuts=1)
        self.addCleanup(proxy.close)
        with windrow.connect(proxy.url, idempotent=False) as db:
            with self.assertRaises(windrow.UnknownOutcome):
                db.insert("t", {"id": 1})
        self.assertEqual(self.db.get("t", 1), {"id": 1})

    def test_an_idle_connection_that_was_closed_is_replaced(self) -> None:
        with windrow.connect(self.gateway.url, idempotent=False) as db:
            db.insert("t", {"id": 1})
            self.gateway.kill()
            self.gateway.start()
            self.assertEqual(db.insert("t", {"id": 2}).rows, 1)

    def test_a_gateway_that_is_killed_and_started_again_loses_no_row(self) -> None:
        def work(thread: int) -> None:
            for n in range(200):
                self.assertEqual(writer.insert("t", {"id": thread * 200 + n}).rows, 1)
                if n == 50:
                    halfway.release()

        halfway = threading.Semaphore(0)
        with self.db.writer() as writer, ThreadPoolExecutor(8) as pool:
            threads = [pool.submit(work, thread) for thread in range(8)]
            halfway.acquire()
            self.gateway.kill()
            self.gateway.start()
            for thread in threads:
                thread.result()
        self.assertEqual(numbers_below(self.db, "t", 1600), set(range(1600)))

    def test_tasks_have_the_same(self) -> None:
        async def work(writer: windrow.AsyncWriter, n: int) -> int:
            try:
                return (await writer.insert("t", {"id": n % 3000})).rows
            except windrow.Rejected as error:
                self.assertEqual(error.code, "23505")
                return 0

        async def all_of_it() -> None:
            async with windrow.aconnect(self.gateway.url) as db:
                async with db.writer(max_waiting_rows=100) as writer:
                    done = await asyncio.gather(*(work(writer, n) for n in range(4000)))
                self.assertEqual(sum(done), 3000)
                self.assertEqual(await db.get("t", 7), {"id": 7})
                self.assertEqual((await db.delete("t", 7)).rows, 1)
                outcomes = await db.insert_many("t", [{"id": 7}, {"id": 7}])
                self.assertEqual(outcomes[0], windrow.Result(1))
                self.assertIsInstance(outcomes[1], windrow.Rejected)

        asyncio.run(all_of_it())

    def test_a_token_is_sent(self) -> None:
        gateway = Gateway("--token", "secret-of-the-test")
        self.addCleanup(gateway.close)
        with windrow.connect(gateway.url, token="secret-of-the-test") as db:
            self.assertEqual(db.insert("t", {"id": 1}).rows, 1)
        with windrow.connect(gateway.url) as db:
            with self.assertRaises(windrow.Rejected) as raised:
                db.insert("t", {"id": 2})
        self.assertEqual(raised.exception.status, 401)


if __name__ == "__main__":
    unittest.main()
