"""Scenarios for psycopg 3."""

import datetime as dt
import decimal
import threading
import uuid

import psycopg
from psycopg import errors
from psycopg.types.json import Json, Jsonb

from transcript import Transcript, arguments, blocks, crowd, diag_fields

URL, MODE = arguments()
CONNECT = {
    "default": {},
    "binary": {},
    "prepare": {"prepare_threshold": 0},
    "never_prepare": {"prepare_threshold": None},
    "client": {"cursor_factory": psycopg.ClientCursor},
    # Windrow speaks 3.2 before any server; the test asks for nothing less there.
    "newest_protocol": {"max_protocol_version": "latest"},
    "crowd": {},
}[MODE]

KINDS = (
    "small whole big single wide exact words short padded bytes yes day clock local_at at span tag doc docb "
    "numbers names feeling address above"
).split()

FULL = [
    [-32768, 2147483647, -9223372036854775808, 1.5, 0.1, decimal.Decimal("12345678901234.567891"),
     "it's a \"quote\" \\ backslash \u00e9\u4e2d\U0001f600\n$1 %s", "short", "ab", bytes(range(256)), True,
     dt.date(2024, 2, 29), dt.time(23, 59, 59, 999999), dt.datetime(1999, 12, 31, 23, 59, 59, 1),
     dt.datetime(2024, 7, 1, 12, 0, 0, tzinfo=dt.timezone.utc), dt.timedelta(days=3, seconds=4, microseconds=5),
     uuid.UUID("00112233-4455-6677-8899-aabbccddeeff"), Json({"a": [1, 2, {"b": None}]}), Jsonb({"z": 1, "a": "\u00fc"}),
     [1, None, -3], ["a", "b,c", '"d"', "\\e", None, ""], "happy", "192.168.0.1/24", 7],
    [0, 0, 0, 0.0, -0.0, decimal.Decimal("0.000001"), "", "", "", b"", False, dt.date(1, 1, 1), dt.time(0, 0),
     dt.datetime(1, 1, 1), dt.datetime(1970, 1, 1, tzinfo=dt.timezone.utc), dt.timedelta(0), uuid.UUID(int=0),
     Json(None), Jsonb([]), [], [], "sad", "::1", 1],
    [None] * 24,
    [1, 2, 3, float("nan"), float("inf"), decimal.Decimal("-1.5"), "\t\r\n\x01", "x" * 20, "12345", b"\\x00'", None,
     None, None, None, None, None, None, None, None, [[1, 2], [3, 4]], None, "ok", None, 2147483647],
]

say = Transcript(psycopg.Error, lambda e: {
    "class": type(e).__name__, "state": e.sqlstate, "text": str(e), **diag_fields(e.diag)
})


def connect(**more):
    options = {"autocommit": True, **CONNECT, **more}
    connection = psycopg.connect(URL, **options)
    connection.add_notice_handler(lambda diag: say.say("notice", notice=diag_fields(diag)))
    return connection


def run(connection, sql, values=None, **options):
    """Executes and gives the status, the count, the columns with their types, and the rows."""
    if MODE == "binary":
        options.setdefault("binary", True)
    cursor = connection.execute(sql, values, **options)
    if cursor.description is None:
        return [cursor.statusmessage, cursor.rowcount]
    columns = [(c.name, c.type_code, c.internal_size, c.precision, c.scale) for c in cursor.description]
    return [cursor.statusmessage, cursor.rowcount, columns, cursor.fetchall()]


def schema(c):
    for number, block in enumerate(blocks()):
        say.step(f"block {number}", lambda b=block: run(c, b))


def kinds(c):
    marks = ", ".join("%s" for _ in KINDS)
    sql = f"INSERT INTO kinds ({', '.join(KINDS)}) VALUES ({marks})"
    for number, row in enumerate(FULL):
        say.step(f"row {number}", lambda r=row: run(c, sql, r))
    for number, row in enumerate(FULL):
        say.step(f"returned {number}", lambda r=row: run(c, sql + " RETURNING *", r))
    say.step("read", lambda: run(c, "SELECT * FROM kinds ORDER BY id"))
    for column, value in zip(KINDS, FULL[0]):
        one = f"INSERT INTO kinds ({column}) VALUES (%s) RETURNING id, {column}"
        say.step(f"only {column}", lambda s=one, v=value: run(c, s, [v]))


def generated(c):
    say.step("parent", lambda: run(c, "INSERT INTO parent (id, name) VALUES (%s, %s)", [1, "one"]))
    insert = "INSERT INTO child (parent_id, quantity, label) VALUES (%s, %s, %s)"
    say.step("returning", lambda: run(c, insert + " RETURNING id, label", [1, 5, "a"]))
    say.step("plain", lambda: run(c, insert, [1, 6, "b"]))
    say.step("lastval", lambda: run(c, "SELECT lastval()"))
    say.step("currval", lambda: run(c, "SELECT currval('child_id_seq')"))
    say.step("currval by parameter", lambda: run(c, "SELECT currval(%s)", ["child_id_seq"]))
    say.step("default", lambda: run(c, "INSERT INTO child (id, parent_id) VALUES (DEFAULT, %s) RETURNING id", [1]))
    say.step("expression", lambda: run(c, "INSERT INTO plain VALUES (1, %s + 1, upper(%s)) RETURNING *", [1, "x"]))


def keyed(c):
    for n in range(2, 8):
        say.step(f"insert {n}", lambda n=n: run(c, "INSERT INTO plain (id, a, b) VALUES (%s, %s, %s)", [n, n, "b"]))
    for n in (2, 3, 99):
        say.step(f"update {n}", lambda n=n: run(c, "UPDATE plain SET a = a + %s WHERE id = %s", [10, n]))
        say.step(f"update returning {n}", lambda n=n: run(c, "UPDATE plain SET b = %s WHERE id = %s RETURNING id, a, b", ["c", n]))
    for n in (2, 2, 3, 99):
        say.step(f"delete {n}", lambda n=n: run(c, "DELETE FROM plain WHERE id = %s", [n]))
    say.step("delete returning", lambda: run(c, "DELETE FROM plain WHERE id = %s RETURNING *", [4]))
    say.step("compare and set", lambda: run(c, "UPDATE plain SET a = 50 WHERE id = %s AND a = %s", [5, 5]))
    say.step("compare and set again", lambda: run(c, "UPDATE plain SET a = 51 WHERE id = %s AND a = %s", [5, 5]))
    say.step("many", lambda: run(c, "UPDATE plain SET a = 0 WHERE id > %s", [5]))


def upsert(c):
    ignore = "INSERT INTO counter (name, n) VALUES (%s, %s) ON CONFLICT DO NOTHING"
    add = "INSERT INTO counter AS c (name, n) VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET n = c.n + EXCLUDED.n"
    for n in range(2):
        say.step(f"ignore {n}", lambda n=n: run(c, ignore, ["u", n]))
    for n in range(3):
        say.step(f"add {n}", lambda n=n: run(c, add, ["u", 5]))
        say.step(f"add returning {n}", lambda n=n: run(c, add + " RETURNING n", ["v", 5]))
    say.step("where", lambda: run(c, add + " WHERE c.n > 1000", ["v", 5]))


def refused(c):
    child = "INSERT INTO child (parent_id, quantity, label) VALUES (%s, %s, %s)"
    say.step("unique", lambda: run(c, "INSERT INTO parent (id, name) VALUES (%s, %s)", [2, "one"]))
    say.step("primary", lambda: run(c, "INSERT INTO parent (id, name) VALUES (%s, %s)", [1, "two"]))
    say.step("check", lambda: run(c, "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, %s, %s, '2000-01-01')", [1, -1]))
    say.step("foreign", lambda: run(c, child, [77, 1, None]))
    say.step("not null", lambda: run(c, "INSERT INTO parent (id, name) VALUES (%s, %s)", [3, None]))
    say.step("too long", lambda: run(c, child, [1, 1, "x" * 11]))
    say.step("out of range", lambda: run(c, "INSERT INTO kinds (small) VALUES (%s)", [40000]))
    say.step("enum", lambda: run(c, "INSERT INTO kinds (feeling) VALUES (%s)", ["angry"]))
    say.step("domain", lambda: run(c, "INSERT INTO kinds (above) VALUES (%s)", [0]))
    say.step("numeric", lambda: run(c, "INSERT INTO kinds (exact) VALUES (%s)", [decimal.Decimal("1e30")]))
    say.step("divide", lambda: run(c, "UPDATE plain SET a = a / %s WHERE id = %s", [0, 5]))
    say.step("update unique", lambda: run(c, "INSERT INTO parent VALUES (4, 'four')") and run(c, "UPDATE parent SET name = %s WHERE id = %s", ["one", 4]))
    say.step("referenced", lambda: run(c, "DELETE FROM parent WHERE id = %s", [1]))
    say.step("still there", lambda: run(c, "SELECT * FROM parent ORDER BY id"))


def wrong(c):
    say.step("type", lambda: run(c, "INSERT INTO plain (id, a) VALUES (%s, %s)", [50, "abc"]))
    say.step("type of literal", lambda: run(c, "INSERT INTO plain (id, a) VALUES (50, 'abc')"))
    say.step("float into int", lambda: run(c, "INSERT INTO plain (id, a) VALUES (51, 1.7) RETURNING a"))
    say.step("float parameter", lambda: run(c, "INSERT INTO plain (id, a) VALUES (52, %s) RETURNING a", [2.5]))
    say.step("table", lambda: run(c, "INSERT INTO nowhere (id) VALUES (%s)", [1]))
    say.step("column", lambda: run(c, "INSERT INTO plain (id, nothing) VALUES (%s, 1)", [1]))
    say.step("syntax", lambda: run(c, "INSERT INTO plain (id VALUES (1)"))
    say.step("function", lambda: run(c, "INSERT INTO plain (id, a) VALUES (%s, no_such(1))", [1]))
    say.step("parameters", lambda: run(c, "SELECT $1::int + $2::int"))
    say.step("timestamp", lambda: run(c, "INSERT INTO stamped (id, at) VALUES (%s, %s)", [1, "2024-13-01"]))


def notices(c):
    sql = "INSERT INTO noisy (id, word) VALUES (%s, %s)"
    for number, word in enumerate(["word", "warn", "refuse", None, "returning"]):
        tail = " RETURNING word" if word == "returning" else ""
        say.step(f"{word}", lambda n=number, w=word, t=tail: run(c, sql + t, [n, w]))
    say.step("do", lambda: run(c, "DO $$ BEGIN RAISE NOTICE 'from a block'; END $$"))
    say.step("if exists", lambda: run(c, "DROP TABLE IF EXISTS nowhere"))


def transactions(_):
    with connect(autocommit=False) as c:
        status = lambda: c.info.transaction_status.name
        say.step("insert", lambda: [run(c, "INSERT INTO plain VALUES (%s, 1, 'tx')", [100]), status()])
        say.step("rollback", lambda: [c.rollback(), status()])
        say.step("insert again", lambda: [run(c, "INSERT INTO plain VALUES (%s, 1, 'tx')", [100]), status()])
        say.step("commit", lambda: [c.commit(), status()])
        with c.transaction():
            say.step("outer", lambda: run(c, "INSERT INTO plain VALUES (%s, 2, 'outer')", [101]))
            try:
                with c.transaction():
                    say.step("inner", lambda: run(c, "INSERT INTO plain VALUES (%s, 2, 'inner')", [102]))
                    raise psycopg.Rollback
            except psycopg.Rollback:
                pass
            say.step("after", lambda: run(c, "SELECT id FROM plain WHERE id > 99 ORDER BY id"))
        say.step("error", lambda: run(c, "INSERT INTO plain VALUES (%s, 1, 'tx')", [100]))
        say.step("failed", lambda: [run(c, "SELECT 1"), status()])
        say.step("state", status)
        say.step("recover", lambda: [c.rollback(), run(c, "SELECT 1"), status()])
        c.rollback()
        say.step("read only", lambda: run(c, "SET TRANSACTION READ ONLY") + run(c, "INSERT INTO plain VALUES (103)"))
        c.rollback()
        c.set_isolation_level(psycopg.IsolationLevel.SERIALIZABLE)
        say.step("serializable", lambda: run(c, "SHOW transaction_isolation"))
        c.rollback()
    with connect() as c:
        for sql in ["BEGIN", "INSERT INTO plain VALUES (110, 1)", "SAVEPOINT s", "INSERT INTO plain VALUES (110, 1)",
                    "ROLLBACK TO s", "INSERT INTO plain VALUES (111, 1)", "COMMIT", "COMMIT", "ROLLBACK", "BEGIN", "BEGIN",
                    "INSERT INTO plain VALUES (110, 1)", "COMMIT", "SELECT count(*) FROM plain WHERE id > 109"]:
            say.step(sql, lambda s=sql: [run(c, s), c.info.transaction_status.name])


def prepared(c):
    for n in range(12):
        say.step(f"insert {n}", lambda n=n: run(c, "INSERT INTO changing (id, a) VALUES (%s, %s)", [n, n * n]))
    read = "SELECT * FROM changing WHERE id = %s"
    for n in range(7):
        say.step(f"read {n}", lambda n=n: run(c, read, [n], prepare=True))
    say.step("alter", lambda: run(c, "ALTER TABLE changing ADD COLUMN more text DEFAULT 'm'"))
    say.step("stale", lambda: run(c, read, [1], prepare=True))
    say.step("insert after", lambda: run(c, "INSERT INTO changing (id, a) VALUES (%s, %s)", [100, 1]))
    say.step("retype", lambda: run(c, "ALTER TABLE changing ALTER COLUMN a TYPE text"))
    say.step("insert text", lambda: run(c, "INSERT INTO changing (id, a) VALUES (%s, %s)", [101, "text"]))
    say.step("insert int", lambda: run(c, "INSERT INTO changing (id, a) VALUES (%s, %s)", [102, 7]))
    for sql in ["PREPARE mine (int) AS INSERT INTO changing (id) VALUES ($1)", "EXECUTE mine(200)", "EXECUTE mine(200)",
                "PREPARE mine AS SELECT 1", "DEALLOCATE mine", "EXECUTE mine(201)"]:
        say.step(sql, lambda s=sql: run(c, s))
    say.step("count", lambda: run(c, "SELECT count(*), max(id) FROM changing"))


def multiple(c):
    def both(sql):
        cursor = c.execute(sql)
        seen = []
        while True:
            seen.append([cursor.statusmessage, cursor.fetchall() if cursor.description else None])
            if not cursor.nextset():
                return seen

    say.step("three", lambda: both("INSERT INTO plain VALUES (300, 1); INSERT INTO plain VALUES (301, 1); SELECT 7 AS x"))
    say.step("fails", lambda: both("INSERT INTO plain VALUES (302, 1); INSERT INTO plain VALUES (300, 1); SELECT 1"))
    say.step("with commit", lambda: both("INSERT INTO plain VALUES (303, 1); COMMIT; INSERT INTO plain VALUES (300, 1)"))
    say.step("begin", lambda: both("BEGIN; INSERT INTO plain VALUES (304, 1); ROLLBACK; SELECT 2"))
    say.step("semicolons", lambda: both(";; INSERT INTO plain VALUES (305, 1);;"))
    say.step("left", lambda: run(c, "SELECT id FROM plain WHERE id >= 300 ORDER BY id"))


def settings(_):
    with connect() as c:
        stamp = lambda n: run(c, "INSERT INTO stamped (id, at) VALUES (%s, %s) RETURNING *", [n, "2024-01-01 00:00:00"])
        say.step("default zone", lambda: stamp(10))
        say.step("set zone", lambda: run(c, "SET TIME ZONE 'Asia/Tokyo'"))
        say.step("reported", lambda: c.info.parameter_status("TimeZone"))
        say.step("in tokyo", lambda: stamp(11))
        say.step("set config", lambda: run(c, "SELECT set_config('timezone', 'America/New_York', false)"))
        say.step("in new york", lambda: stamp(12))
        say.step("reset zone", lambda: run(c, "RESET timezone"))
        say.step("as before", lambda: stamp(13))
        say.step("datestyle", lambda: run(c, "SET DateStyle = 'German, DMY'"))
        say.step("german", lambda: run(c, "INSERT INTO stamped (id, at) VALUES (14, '3.2.2024') RETURNING at::text"))
        say.step("reset datestyle", lambda: run(c, "RESET DateStyle"))
        say.step("role", lambda: run(c, "SET ROLE windrow_guest"))
        say.step("as guest", lambda: stamp(15))
        say.step("not allowed", lambda: run(c, "INSERT INTO plain VALUES (%s, 1)", [400]))
        say.step("reset role", lambda: run(c, "RESET ROLE"))
        say.step("myself", lambda: stamp(16))
        say.step("path", lambda: run(c, "SET search_path TO other"))
        say.step("in other", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, 'other') RETURNING *", [1]))
        say.step("not found", lambda: run(c, "INSERT INTO stamped (id) VALUES (%s)", [17]))
        say.step("show", lambda: run(c, "SHOW search_path"))
        say.step("path local", lambda: run(c, "BEGIN") + run(c, "SET LOCAL search_path TO public") + run(c, "SHOW search_path") + run(c, "COMMIT"))
        say.step("still other", lambda: run(c, "SHOW search_path"))
        say.step("discard", lambda: run(c, "DISCARD ALL"))
        say.step("in public", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, 'public') RETURNING *", [401]))
        say.step("wrong name", lambda: run(c, "SET no_such_setting = 1"))
        say.step("wrong value", lambda: run(c, "SET TimeZone = 'Nowhere/Nowhere'"))
        say.step("custom", lambda: run(c, "SET my.own = 'yes'") + run(c, "SHOW my.own"))
        say.step("read only", lambda: run(c, "SET default_transaction_read_only = on"))
        say.step("refused", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [402]))
        say.step("name", lambda: run(c, "SET application_name = 'scenario'") + run(c, "SHOW application_name"))
    with connect(options="-c TimeZone=Europe/Berlin -c search_path=other,public") as c:
        say.step("startup", lambda: run(c, "SELECT current_setting('TimeZone'), current_setting('search_path')"))
        say.step("startup insert", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, 'startup') RETURNING *", [2]))
        say.step("startup stamp", lambda: run(c, "INSERT INTO stamped (id, at) VALUES (%s, %s) RETURNING *", [18, "2024-01-01"]))
    with connect(client_encoding="latin1") as c:
        say.step("latin1", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s) RETURNING b", [403, "\u00fc\u00e9"]))
        say.step("latin1 cannot", lambda: run(c, "SELECT chr(20013)"))


def temporary(c):
    say.step("create", lambda: run(c, "CREATE TEMP TABLE passing (id int PRIMARY KEY, a text)"))
    say.step("insert", lambda: run(c, "INSERT INTO passing VALUES (%s, %s)", [1, "t"]))
    say.step("read", lambda: run(c, "SELECT * FROM passing"))
    say.step("shadow", lambda: run(c, "CREATE TEMP TABLE plain (id int PRIMARY KEY, a int, b text)"))
    say.step("into shadow", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s)", [1, "shadow"]))
    say.step("read shadow", lambda: run(c, "SELECT * FROM plain"))
    say.step("drop", lambda: run(c, "DROP TABLE pg_temp.plain") + run(c, "DROP TABLE passing"))
    say.step("public again", lambda: run(c, "SELECT * FROM plain WHERE id = 1"))


def cursors(c):
    with c.transaction():
        with c.cursor(name="by_name") as cursor:
            cursor.execute("SELECT n FROM generate_series(1, 25) n")
            say.step("ten", lambda: cursor.fetchmany(10))
            say.step("one", lambda: cursor.fetchone())
            say.step("rest", lambda: cursor.fetchall())
    with c.cursor(name="held", withhold=True, scrollable=True) as cursor:
        cursor.execute("SELECT n FROM generate_series(1, 5) n")
        say.step("held two", lambda: cursor.fetchmany(2))
        say.step("write between", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [500]))
        say.step("held back", lambda: [cursor.scroll(-1), cursor.fetchall()])


def listening(c):
    with connect() as other:
        say.step("listen", lambda: run(c, "LISTEN channel"))
        say.step("notify", lambda: run(other, "NOTIFY channel, 'first'"))
        say.step("notify function", lambda: run(other, "SELECT pg_notify(%s, %s)", ["channel", "second"]))
        say.step("write", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [510]))
        heard = lambda: [(n.channel, n.payload, n.pid == other.info.backend_pid) for n in c.notifies(timeout=30, stop_after=2)]
        say.step("heard", lambda: [list(n[:2]) for n in heard()])
        say.step("unlisten", lambda: run(c, "UNLISTEN *"))


def copying(c):
    def copy_in(sql, lines):
        with c.cursor() as cursor:
            with cursor.copy(sql) as copy:
                for line in lines:
                    copy.write(line)
            return [cursor.statusmessage, cursor.rowcount]

    def copy_out(sql):
        with c.cursor() as cursor:
            with cursor.copy(sql) as copy:
                data = b"".join(bytes(part) for part in copy)
            return [cursor.statusmessage, data]

    say.step("in", lambda: copy_in("COPY plain (id, a, b) FROM STDIN", [f"{n}\t{n}\tcopied\n".encode() for n in range(600, 650)]))
    say.step("out", lambda: copy_out("COPY (SELECT * FROM plain WHERE id BETWEEN 600 AND 604 ORDER BY id) TO STDOUT"))
    say.step("csv", lambda: copy_out("COPY (SELECT 'a,b' x, NULL y) TO STDOUT (FORMAT csv, HEADER)"))
    say.step("binary", lambda: copy_out("COPY (SELECT 1::int4) TO STDOUT (FORMAT binary)"))
    say.step("bad", lambda: copy_in("COPY plain (id, a, b) FROM STDIN", [b"700\t1\tx\n", b"701\tword\tx\n"]))
    say.step("duplicate", lambda: copy_in("COPY plain (id, a, b) FROM STDIN", [b"702\t1\tx\n", b"600\t1\tx\n"]))

    def given_up():
        with c.cursor() as cursor, cursor.copy("COPY plain (id) FROM STDIN") as copy:
            copy.write(b"703\n")
            raise errors.lookup("57014")("given up")

    say.step("given up", given_up)
    say.step("after", lambda: run(c, "SELECT count(*) FROM plain WHERE id >= 600"))


def odd(c):
    say.step("empty", lambda: run(c, ""))
    say.step("comment", lambda: run(c, "-- nothing"))
    say.step("no columns", lambda: run(c, "SELECT"))
    say.step("values", lambda: run(c, "VALUES (1, 'a'), (2, 'b')"))
    say.step("large", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s)", [800, "x\u00e9" * 500_000]))
    say.step("large back", lambda: run(c, "SELECT length(b), md5(b) FROM plain WHERE id = 800"))
    big = run(c, "SELECT b FROM plain WHERE id = 800")[3][0][0]
    say.say("large is whole", value=big == "x\u00e9" * 500_000)
    rows = run(c, "SELECT n, repeat('r', n %% 50) FROM generate_series(1, %s) n", [10_000])[3]
    say.say("many rows", value=[len(rows), sum(r[0] for r in rows), sum(len(r[1]) for r in rows)])
    say.step("cte", lambda: run(c, "WITH d AS (DELETE FROM plain WHERE id = 800 RETURNING id) SELECT * FROM d"))
    say.step("many values", lambda: run(c, "INSERT INTO plain (id) VALUES (801), (802), (803)"))
    say.step("select into", lambda: run(c, "INSERT INTO plain (id) SELECT n FROM generate_series(810, 814) n"))
    say.step("quoted", lambda: run(c, 'CREATE TABLE "Odd Näme" ("Id" int PRIMARY KEY, "select" text)'))
    say.step("into quoted", lambda: run(c, 'INSERT INTO "Odd Näme" ("Id", "select") VALUES (%s, %s) RETURNING *', [1, "q"]))


def stopped(c):
    say.step("timeout", lambda: run(c, "SET statement_timeout = '200ms'"))
    say.step("too slow", lambda: run(c, "SELECT pg_sleep(60)"))
    say.step("write", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [900]))
    say.step("reset", lambda: run(c, "RESET statement_timeout"))
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    say.step("canceled", lambda: run(c, "SELECT pg_sleep(60)"))
    timer.join()
    say.step("goes on", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [901]))
    timer = threading.Timer(0.3, c.cancel_safe)
    timer.start()
    say.step("canceled safely", lambda: run(c, "SELECT pg_sleep(60)"))
    timer.join()


def deferred(c):
    say.step("alone", lambda: run(c, "INSERT INTO late VALUES (%s, %s)", [1, 999]))
    say.step("right", lambda: run(c, "INSERT INTO late VALUES (%s, %s)", [2, 1]))
    for sql in ["BEGIN", "INSERT INTO late VALUES (3, 1000)", "INSERT INTO parent VALUES (1000, 'late')", "COMMIT",
                "BEGIN", "INSERT INTO late VALUES (4, 1001)", "COMMIT", "SELECT * FROM late ORDER BY id"]:
        say.step(sql, lambda s=sql: run(c, s))


def locks(c):
    with connect() as other:
        say.step("take", lambda: run(c, "SELECT pg_advisory_lock(42)"))
        say.step("taken", lambda: run(other, "SELECT pg_try_advisory_lock(42)"))
        say.step("write", lambda: run(c, "INSERT INTO plain (id) VALUES (%s)", [910]))
        say.step("still taken", lambda: run(other, "SELECT pg_try_advisory_lock(42)"))
        say.step("give", lambda: run(c, "SELECT pg_advisory_unlock(42)"))
        say.step("free", lambda: run(other, "SELECT pg_try_advisory_lock(42)"))
        say.step("give back", lambda: run(other, "SELECT pg_advisory_unlock_all()"))


def batches(c):
    def many(sql, rows, returning=False):
        with c.cursor() as cursor:
            cursor.executemany(sql, rows, returning=returning)
            if not returning:
                return cursor.rowcount
            seen = [cursor.fetchall()]
            while cursor.nextset():
                seen.append(cursor.fetchall())
            return seen

    insert = "INSERT INTO plain (id, a) VALUES (%s, %s)"
    say.step("many", lambda: many(insert, [(n, n) for n in range(1000, 1100)]))
    say.step("returning", lambda: many(insert + " RETURNING id", [(n, n) for n in range(1100, 1110)], True))
    say.step("one bad", lambda: many(insert, [(1200, 1), (1000, 1), (1201, 1)]))
    say.step("nothing of it", lambda: run(c, "SELECT count(*) FROM plain WHERE id >= 1200"))
    if not psycopg.Pipeline.is_supported():
        return
    with c.pipeline() as pipeline:
        first = c.execute(insert + " RETURNING id", [1300, 1])
        second = c.execute("UPDATE plain SET a = 9 WHERE id = %s", [1300])
        pipeline.sync()
        third = c.execute("SELECT a FROM plain WHERE id = %s", [1300])
        say.step("pipeline", lambda: [first.fetchall(), second.rowcount, third.fetchall()])

    def broken():
        with c.pipeline() as pipeline:
            c.execute(insert, [1301, 1])
            c.execute(insert, [1300, 1])
            c.execute(insert, [1302, 1])
            pipeline.sync()
            c.execute(insert, [1303, 1])

    say.step("broken pipeline", broken)
    say.step("left", lambda: run(c, "SELECT id FROM plain WHERE id >= 1300 ORDER BY id"))

    def fast():
        with c.pipeline() as pipeline:
            cursors = []
            for n in range(1400, 1500):
                cursors.append(c.execute(insert + " RETURNING id", [n, n]))
                pipeline.sync()
            return [cursor.fetchone()[0] for cursor in cursors]

    say.step("each by itself", fast)


def loop(_):
    c = connect()
    done = [run(c, "INSERT INTO plain (id, a, b) VALUES (%s, %s, %s)", [n, n, "loop"]) for n in range(2000, 2300)]
    say.say("inserts", value=[len(done), sorted(set(map(str, done)))])
    done = [run(c, "UPDATE plain SET a = a + 1 WHERE id = %s", [n]) for n in range(2000, 2300)]
    say.say("updates", value=[len(done), sorted(set(map(str, done)))])


def together(c):
    """Many connections at once: every row arrives, every addition counts, every key has one winner."""
    for n in range(4):
        run(c, "INSERT INTO counter (name, n) VALUES (%s, 0)", [f"shared {n}"])

    def work(number):
        won = changed = 0
        with psycopg.connect(URL, autocommit=True) as own:
            for n in range(50):
                own.execute("INSERT INTO plain (id, a, b) VALUES (%s, %s, 'crowd')", [10_000 + number * 100 + n, n])
                own.execute("UPDATE counter SET n = n + 1 WHERE name = %s", [f"shared {n % 4}"])
                try:
                    own.execute("INSERT INTO claimed (key, owner) VALUES (%s, %s)", [n, number])
                    won += 1
                except errors.UniqueViolation as error:
                    assert error.diag.message_detail == f"Key (key)=({n}) already exists.", error.diag.message_detail
                seen = own.execute("UPDATE claimed SET owner = %s WHERE key = %s AND owner = %s", [number, n, number]).rowcount
                changed += seen
        return won, changed

    results = crowd(32, work)
    say.say("won", value=[sum(r[0] for r in results), sum(r[1] for r in results)])
    say.step("counters", lambda: run(c, "SELECT * FROM counter WHERE name LIKE 'shared%' ORDER BY name"))
    say.step("rows", lambda: run(c, "SELECT count(*), sum(a) FROM plain WHERE b = 'crowd'"))
    # Who was first is chance.
    say.step("forget who", lambda: run(c, "UPDATE claimed SET owner = 0"))


SCENARIOS = [schema, kinds, generated, keyed, upsert, refused, wrong, notices, transactions, prepared, multiple, settings,
             temporary, cursors, listening, copying, odd, stopped, deferred, locks, batches, loop]


def main():
    chosen = [schema, together] if MODE == "crowd" else SCENARIOS
    with connect() as c:
        for scenario in chosen:
            say.begin(scenario.__name__)
            scenario(c)


main()
