"""Scenarios for psycopg2, which puts values into the text on the client's side."""

import datetime as dt
import decimal
import io
import select
import threading
import uuid

import psycopg2
import psycopg2.extensions
import psycopg2.extras

from transcript import Transcript, arguments, blocks, crowd, diag_fields

URL, MODE = arguments()

say = Transcript(psycopg2.Error, lambda e: {
    "class": type(e).__name__, "state": e.pgcode, "text": str(e), **diag_fields(e.diag)
})

VALUES = {
    "small": -3, "whole": 70000, "big": 2**62, "single": 1.5, "wide": 1e300, "exact": decimal.Decimal("3.141593"),
    "words": "it's \\ \"q\" \u00fc\u4e2d %s\n", "short": "sh", "padded": "p", "bytes": psycopg2.Binary(bytes(range(256))),
    "yes": True, "day": dt.date(2024, 2, 29), "clock": dt.time(1, 2, 3, 4), "local_at": dt.datetime(2000, 1, 2, 3, 4, 5, 6),
    "at": dt.datetime(2024, 7, 1, tzinfo=dt.timezone(dt.timedelta(hours=5, minutes=30))), "span": dt.timedelta(days=-1, seconds=5),
    "tag": uuid.UUID(int=5), "doc": psycopg2.extras.Json({"a": [1, None]}), "docb": psycopg2.extras.Json(["\u00fc'\\"]),
    "numbers": [1, None, 3], "names": ["a'b", None, "\\", '"'], "feeling": "ok",
    "address": psycopg2.extras.Inet("10.0.0.1"), "above": 5,
}


def connect(autocommit=True, **more):
    connection = psycopg2.connect(URL, **more)
    connection.autocommit = autocommit
    psycopg2.extras.register_uuid(conn_or_curs=connection)
    return connection


def run(connection, sql, values=None):
    del connection.notices[:]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        told = [cursor.statusmessage, cursor.rowcount, list(connection.notices)]
        if cursor.description is not None:
            told += [[(d.name, d.type_code, d.internal_size, d.precision, d.scale) for d in cursor.description], cursor.fetchall()]
        return told


def schema(c):
    for number, block in enumerate(blocks()):
        say.step(f"block {number}", lambda b=block: run(c, b))


def kinds(c):
    names = ", ".join(VALUES)
    marks = ", ".join(f"%({name})s" for name in VALUES)
    sql = f"INSERT INTO kinds ({names}) VALUES ({marks})"
    nothing = dict.fromkeys(VALUES)
    for number, row in enumerate([VALUES, nothing]):
        say.step(f"row {number}", lambda r=row: run(c, sql, r))
        say.step(f"returned {number}", lambda r=row: run(c, sql + " RETURNING *", r))
    for name, value in VALUES.items():
        say.step(f"only {name}", lambda n=name, v=value: run(c, f"INSERT INTO kinds ({n}) VALUES (%s)", [v]))
    say.step("read", lambda: run(c, "SELECT * FROM kinds ORDER BY id"))
    say.step("nan", lambda: run(c, "INSERT INTO kinds (wide, single) VALUES (%s, %s) RETURNING wide, single", [float("nan"), float("-inf")]))
    say.step("empty array", lambda: run(c, "INSERT INTO kinds (numbers) VALUES (%s) RETURNING numbers", [[]]))


def generated(c):
    run(c, "INSERT INTO parent (id, name) VALUES (%s, %s)", [1, "one"])
    insert = "INSERT INTO child (parent_id, quantity, label) VALUES (%s, %s, %s)"
    say.step("returning", lambda: run(c, insert + " RETURNING id, label", [1, 5, "a"]))
    say.step("plain", lambda: run(c, insert, [1, 6, "b"]))
    say.step("lastval", lambda: run(c, "SELECT lastval()"))
    say.step("plain again", lambda: run(c, insert, [1, 7, "c"]))
    say.step("currval", lambda: run(c, "SELECT currval(%s)", ["child_id_seq"]))
    with connect() as other:
        say.step("not yet", lambda: run(other, "SELECT lastval()"))


def keyed(c):
    for n in range(1, 5):
        say.step(f"insert {n}", lambda n=n: run(c, "INSERT INTO plain (id, a, b) VALUES (%s, %s, %s)", [n, n, "it's"]))
    for n in (1, 99):
        say.step(f"update {n}", lambda n=n: run(c, "UPDATE plain SET a = a + %s, b = %s WHERE id = %s", [10, "b\\c", n]))
        say.step(f"delete {n}", lambda n=n: run(c, "DELETE FROM plain WHERE id = %s", [n]))
    say.step("negative", lambda: run(c, "UPDATE plain SET a = %s WHERE id = %s RETURNING a", [-7, 2]))
    say.step("minus", lambda: run(c, "UPDATE plain SET a = a -%s WHERE id = %s RETURNING a", [7, 2]))
    say.step("upsert", lambda: run(c, "INSERT INTO counter AS k VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n", ["u", 3]))
    say.step("upsert again", lambda: run(c, "INSERT INTO counter AS k VALUES (%s, %s) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n", ["u", 3]))
    say.step("ignore", lambda: run(c, "INSERT INTO counter VALUES (%s, %s) ON CONFLICT DO NOTHING", ["u", 3]))


def refused(c):
    for name, sql, values in [
        ("unique", "INSERT INTO parent (id, name) VALUES (%s, %s)", [2, "one"]),
        ("primary", "INSERT INTO parent (id, name) VALUES (%s, %s)", [1, "two"]),
        ("check", "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, %s, %s, '2000-01-01')", [1, -1]),
        ("foreign", "INSERT INTO child (parent_id) VALUES (%s)", [77]),
        ("not null", "INSERT INTO parent (id, name) VALUES (%s, %s)", [3, None]),
        ("too long", "INSERT INTO child (parent_id, label) VALUES (%s, %s)", [1, "x" * 11]),
        ("range", "INSERT INTO kinds (small) VALUES (%s)", [40000]),
        ("enum", "INSERT INTO kinds (feeling) VALUES (%s)", ["angry"]),
        ("type", "INSERT INTO plain (id, a) VALUES (%s, %s)", [50, "abc"]),
        ("float", "INSERT INTO plain (id, a) VALUES (%s, %s) RETURNING a", [51, 1.7]),
        ("half", "INSERT INTO plain (id, a) VALUES (%s, %s) RETURNING a", [52, 2.5]),
        ("bool", "INSERT INTO plain (id, a) VALUES (%s, %s)", [53, True]),
        ("text number", "INSERT INTO plain (id, a) VALUES (%s, %s) RETURNING a", [54, "54"]),
        ("number text", "INSERT INTO plain (id, b) VALUES (%s, %s) RETURNING b", [55, 55]),
        ("big", "INSERT INTO plain (id, a) VALUES (%s, %s)", [56, 2**31]),
        ("bigger", "INSERT INTO plain (id, a) VALUES (%s, %s)", [57, 2**70]),
        ("table", "INSERT INTO nowhere VALUES (%s)", [1]),
        ("column", "INSERT INTO plain (nothing) VALUES (%s)", [1]),
        ("syntax", "INSERT INTO plain (id VALUES (%s)", [1]),
        ("zero byte", "INSERT INTO plain (id, b) VALUES (%s, %s)", [58, "a\\u0000"]),
        ("escape string", "INSERT INTO plain (id, b) VALUES (%s, E'a\\tb\\x41') RETURNING b", [59]),
        ("unicode string", "INSERT INTO plain (id, b) VALUES (%s, U&'d\\0061t') RETURNING b", [60]),
        ("dollar string", "INSERT INTO plain (id, b) VALUES (%s, $q$it's$q$) RETURNING b", [61]),
        ("hex", "INSERT INTO plain (id, a) VALUES (%s, 0x1F)", [62]),
        ("cast", "INSERT INTO plain (id, a) VALUES (%s, '7'::int) RETURNING a", [63]),
        ("typed", "INSERT INTO stamped (id, at) VALUES (%s, timestamptz '2024-01-01 UTC') RETURNING at", [1]),
        ("now", "INSERT INTO stamped (id, at) VALUES (%s, 'epoch') RETURNING at", [2]),
        ("concatenated", "INSERT INTO plain (id, b) VALUES (%s, 'a'\n'b') RETURNING b", [64]),
        ("commented", "INSERT /* one */ INTO plain (id, b) VALUES (%s, 'a') -- two", [65]),
        ("bits", "INSERT INTO plain (id, a) VALUES (%s, B'101'::int) RETURNING a", [66]),
    ]:
        say.step(name, lambda s=sql, v=values: run(c, s, v))
    for number, word in enumerate(["word", "warn", "refuse"]):
        say.step(f"noisy {word}", lambda n=number, w=word: run(c, "INSERT INTO noisy VALUES (%s, %s)", [n, w]))
    say.step("told", lambda: list(c.notices))


def transactions(_):
    c = connect(autocommit=False)
    say.step("insert", lambda: run(c, "INSERT INTO plain VALUES (%s, 1)", [100]))
    say.step("status", c.get_transaction_status)
    say.step("rollback", c.rollback)
    say.step("again", lambda: run(c, "INSERT INTO plain VALUES (%s, 1)", [100]))
    say.step("commit", c.commit)
    say.step("savepoint", lambda: run(c, "SAVEPOINT s"))
    say.step("duplicate", lambda: run(c, "INSERT INTO plain VALUES (%s, 1)", [100]))
    say.step("failed", lambda: run(c, "SELECT 1"))
    say.step("status failed", c.get_transaction_status)
    say.step("back", lambda: run(c, "ROLLBACK TO s"))
    say.step("insert 101", lambda: run(c, "INSERT INTO plain VALUES (%s, 1)", [101]))
    say.step("commit 101", c.commit)
    say.step("deferred", lambda: [run(c, "INSERT INTO late VALUES (1, 999)"), c.commit()])
    say.step("multiple", lambda: run(c, "INSERT INTO plain VALUES (102); INSERT INTO plain VALUES (103); SELECT 7"))
    c.rollback()
    c.set_session(isolation_level="SERIALIZABLE", readonly=True)
    say.step("read only", lambda: run(c, "INSERT INTO plain VALUES (104)"))
    c.rollback()
    say.step("shown", lambda: run(c, "SHOW transaction_isolation"))
    c.rollback()
    c.set_session(readonly=False)
    with c:
        say.step("with", lambda: run(c, "INSERT INTO plain VALUES (105)"))
    c.close()
    with connect() as c:
        say.step("alone and late", lambda: run(c, "INSERT INTO late VALUES (2, 999)"))
        say.step("two", lambda: run(c, "INSERT INTO plain VALUES (106); INSERT INTO plain VALUES (106)"))
        say.step("left", lambda: run(c, "SELECT id FROM plain WHERE id >= 100 ORDER BY id"))


def settings(_):
    c = connect()
    stamp = lambda n: run(c, "INSERT INTO stamped (id, at) VALUES (%s, %s) RETURNING *", [n, "2024-01-01"])
    say.step("before", lambda: stamp(10))
    for n, sql in enumerate([
        "SET TIME ZONE 'Asia/Tokyo'", "SET timezone TO DEFAULT", "SET ROLE windrow_guest", "RESET ROLE",
        "SET standard_conforming_strings = off", "RESET standard_conforming_strings", "SET SESSION timezone = 'UTC'", "RESET ALL",
    ]):
        say.step(sql, lambda s=sql: run(c, s))
        say.step(f"stamp {n}", lambda n=n: stamp(11 + n))
    say.step("search_path", lambda: run(c, "SET search_path = other"))
    say.step("other", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s) RETURNING *", [1, "other"]))
    say.step("encoding", lambda: c.set_client_encoding("LATIN1"))
    say.step("latin", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s) RETURNING b", [2, "\u00fc"]))
    say.step("reset", lambda: c.reset())
    say.step("as new", lambda: run(c, "SHOW search_path"))
    c.close()
    c = connect(options="-c search_path=other")
    say.step("startup", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s) RETURNING *", [3, "startup"]))
    c.close()


def others(c):
    say.step("temp", lambda: run(c, "CREATE TEMP TABLE passing (id int)"))
    say.step("into temp", lambda: run(c, "INSERT INTO passing VALUES (1) RETURNING id"))
    say.step("prepare", lambda: run(c, "PREPARE p AS INSERT INTO plain (id) VALUES ($1)"))
    say.step("execute", lambda: run(c, "EXECUTE p (%s)", [200]))
    transaction = connect(autocommit=False)
    with transaction.cursor("named") as cursor:
        cursor.itersize = 10
        cursor.execute("SELECT n FROM generate_series(1, 35) n")
        say.step("named", lambda: [row[0] for row in cursor])
    with transaction.cursor("held", withhold=True) as cursor:
        cursor.execute("SELECT n FROM generate_series(1, 3) n")
        transaction.commit()
        say.step("held", lambda: cursor.fetchall())
    big = transaction.lobject(0, "wb")
    say.step("large object", lambda: [big.write(b"x" * 100_000), big.close()])
    identity = big.oid
    say.step("large object read", lambda: len(transaction.lobject(identity, "rb").read()))
    transaction.commit()
    transaction.close()
    listening(c)
    say.step("copy in", lambda: copy_in(c, "COPY plain (id, a, b) FROM STDIN", "300\t1\tx\n301\t2\t\\N\n"))
    say.step("copy out", lambda: copy_out(c, "COPY (SELECT * FROM plain WHERE id >= 300 ORDER BY id) TO STDOUT"))
    say.step("copy bad", lambda: copy_in(c, "COPY plain (id, a, b) FROM STDIN", "302\t1\tx\n300\t2\t\\N\n"))
    say.step("empty", lambda: run(c, ""))
    say.step("comment", lambda: run(c, "/* only */"))
    say.step("large", lambda: run(c, "INSERT INTO plain (id, b) VALUES (%s, %s)", [310, "'\\" * 500_000]))
    say.step("large back", lambda: run(c, "SELECT length(b), md5(b) FROM plain WHERE id = 310"))
    rows = run(c, "SELECT n FROM generate_series(1, 10000) n")[4]
    say.say("many", value=[len(rows), sum(r[0] for r in rows)])
    say.step("timeout", lambda: run(c, "SET statement_timeout = 150; SELECT pg_sleep(30)"))
    say.step("reset", lambda: run(c, "SET statement_timeout = 0"))
    timer = threading.Timer(0.3, c.cancel)
    timer.start()
    say.step("canceled", lambda: run(c, "SELECT pg_sleep(60)"))
    timer.join()
    say.step("lock", lambda: run(c, "SELECT pg_advisory_lock(1)"))
    other = connect()
    say.step("locked", lambda: run(other, "SELECT pg_try_advisory_lock(1)"))
    other.close()
    say.step("unlock", lambda: run(c, "SELECT pg_advisory_unlock(1)"))


def listening(c):
    run(c, "LISTEN bell")
    other = connect()
    run(other, "NOTIFY bell, 'ding'")
    run(c, "INSERT INTO plain (id) VALUES (201)")
    while not c.notifies:
        select.select([c], [], [], 30)
        c.poll()
    say.say("heard", value=[[n.channel, n.payload, n.pid > 0] for n in c.notifies])
    other.close()


def copy_in(c, sql, text):
    with c.cursor() as cursor:
        cursor.copy_expert(sql, io.StringIO(text))
        return [cursor.statusmessage, cursor.rowcount]


def copy_out(c, sql):
    with c.cursor() as cursor:
        out = io.StringIO()
        cursor.copy_expert(sql, out)
        return [cursor.statusmessage, out.getvalue()]


def batches(c):
    insert = "INSERT INTO plain (id, a) VALUES (%s, %s)"
    rows = [(n, n) for n in range(1000, 1250)]
    with c.cursor() as cursor:
        say.step("many", lambda: [cursor.executemany(insert, rows[:100]), cursor.rowcount])
        say.step("batch", lambda: [psycopg2.extras.execute_batch(cursor, insert, rows[100:200]), cursor.rowcount])
        say.step("values", lambda: psycopg2.extras.execute_values(cursor, "INSERT INTO plain (id, a) VALUES %s RETURNING id", rows[200:], fetch=True))
        say.step("bad batch", lambda: psycopg2.extras.execute_batch(cursor, insert, [(1300, 1), (1000, 1), (1301, 1)]))
    say.step("left", lambda: run(c, "SELECT count(*), sum(a) FROM plain WHERE id >= 1000"))


def loop(_):
    c = connect()
    done = [run(c, "INSERT INTO plain (id, a, b) VALUES (%s, %s, %s)", [n, n, f"it's {n}"]) for n in range(2000, 2300)]
    say.say("inserts", value=[len(done), sorted(set(map(str, done)))])
    done = [run(c, "UPDATE plain SET a = a + %s WHERE id = %s", [1, n]) for n in range(2000, 2300)]
    say.say("updates", value=[len(done), sorted(set(map(str, done)))])
    done = [run(c, "DELETE FROM plain WHERE id = %s", [n]) for n in range(2000, 2300, 2)]
    say.say("deletes", value=[len(done), sorted(set(map(str, done)))])


def together(c):
    run(c, "INSERT INTO counter VALUES ('shared', 0)")

    def work(number):
        own = connect()
        for n in range(50):
            run(own, "INSERT INTO plain (id, a) VALUES (%s, %s)", [10_000 + number * 100 + n, n])
            run(own, "UPDATE counter SET n = n + 1 WHERE name = %s", ["shared"])
        own.close()

    crowd(16, work)
    say.step("counter", lambda: run(c, "SELECT * FROM counter WHERE name = 'shared'"))
    say.step("rows", lambda: run(c, "SELECT count(*), sum(a) FROM plain WHERE id >= 10000"))


def main():
    c = connect()
    for scenario in [schema, kinds, generated, keyed, refused, transactions, settings, others, batches, loop, together]:
        say.begin(scenario.__name__)
        scenario(c)


main()
