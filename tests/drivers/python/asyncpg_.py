"""Scenarios for asyncpg: everything is prepared and binary."""

import asyncio
import datetime as dt
import decimal
import ipaddress
import uuid

import asyncpg

from transcript import Transcript, arguments, blocks, show

URL, MODE = arguments()
FIELDS = "sqlstate severity message detail hint position context schema_name table_name column_name constraint_name server_source_function".split()


def fields(error):
    told = {name: getattr(error, name, None) for name in FIELDS}
    return {"class": type(error).__name__, "text": str(error), **{k: v for k, v in told.items() if isinstance(v, str)}}


say = Transcript((asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError), fields)

KINDS = {
    "small": -3, "whole": 70000, "big": 2**62, "single": 1.5, "wide": 0.1, "exact": decimal.Decimal("3.141593"),
    "words": "it's \\ \u00fc\u4e2d", "short": "sh", "padded": "p", "bytes": bytes(range(256)), "yes": True,
    "day": dt.date(2024, 2, 29), "clock": dt.time(1, 2, 3, 4), "local_at": dt.datetime(2000, 1, 2, 3, 4, 5, 6),
    "at": dt.datetime(2024, 7, 1, tzinfo=dt.timezone.utc), "span": dt.timedelta(days=-1, seconds=5), "tag": uuid.UUID(int=5),
    "doc": '{"a": 1}', "docb": "[1, null]", "numbers": [1, None, 3], "names": ["a", None], "feeling": "ok",
    "address": ipaddress.ip_interface("10.0.0.1/8"), "above": 5,
}


async def connect(**more):
    if MODE == "uncached":
        more["statement_cache_size"] = 0
    connection = await asyncpg.connect(URL, **more)
    connection.add_log_listener(lambda _, message: say.say("notice", notice=fields(message)))
    return connection


async def step(name, awaitable):
    try:
        value = await awaitable
    except say.errors as error:
        say.say(name, error=fields(error))
        return None
    if isinstance(value, list):
        value = [dict(v) if isinstance(v, asyncpg.Record) else v for v in value]
    say.say(name, value=show(value))
    return value


async def schema(c):
    for number, block in enumerate(blocks()):
        await step(f"block {number}", c.execute(block))


async def kinds(c):
    marks = ", ".join(f"${n}" for n in range(1, len(KINDS) + 1))
    sql = f"INSERT INTO kinds ({', '.join(KINDS)}) VALUES ({marks})"
    for number, row in enumerate([list(KINDS.values()), [None] * len(KINDS)]):
        await step(f"row {number}", c.execute(sql, *row))
        await step(f"returned {number}", c.fetch(sql + " RETURNING *", *row))
    for name, value in KINDS.items():
        await step(f"only {name}", c.fetch(f"INSERT INTO kinds ({name}) VALUES ($1) RETURNING id, {name}", value))
    await step("read", c.fetch("SELECT * FROM kinds ORDER BY id"))
    statement = await c.prepare("INSERT INTO kinds (small, feeling) VALUES ($1, $2) RETURNING id, feeling")
    say.say("described", value=show([[p.name, p.kind] for p in statement.get_parameters()] + [[a.name, a.type.name] for a in statement.get_attributes()]))
    await step("prepared", statement.fetch(1, "sad"))
    await step("status", asyncio.sleep(0, statement.get_statusmsg()))


async def writes(c):
    await step("parent", c.execute("INSERT INTO parent (id, name) VALUES ($1, $2)", 1, "one"))
    await step("returning", c.fetchval("INSERT INTO child (parent_id, quantity) VALUES ($1, $2) RETURNING id", 1, 5))
    await step("plain", c.execute("INSERT INTO child (parent_id, quantity) VALUES ($1, $2)", 1, 6))
    await step("lastval", c.fetchval("SELECT lastval()"))
    for n in range(1, 6):
        await step(f"insert {n}", c.execute("INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "b"))
    for n in (1, 99):
        await step(f"update {n}", c.execute("UPDATE plain SET a = a + $1 WHERE id = $2", 10, n))
        await step(f"returning {n}", c.fetchrow("UPDATE plain SET a = a + $1 WHERE id = $2 RETURNING a, b", 10, n))
        await step(f"delete {n}", c.execute("DELETE FROM plain WHERE id = $1", n))
    upsert = "INSERT INTO counter AS k VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET n = k.n + excluded.n RETURNING n"
    for n in range(3):
        await step(f"upsert {n}", c.fetchval(upsert, "u", 3))
        await step(f"ignore {n}", c.execute("INSERT INTO counter VALUES ($1, $2) ON CONFLICT DO NOTHING", "w", n))


async def refused(c):
    for name, sql, values in [
        ("unique", "INSERT INTO parent (id, name) VALUES ($1, $2)", [2, "one"]),
        ("primary", "INSERT INTO parent (id, name) VALUES ($1, $2)", [1, "two"]),
        ("check", "INSERT INTO child (id, parent_id, quantity, seen_at) VALUES (900, $1, $2, '2000-01-01')", [1, -1]),
        ("foreign", "INSERT INTO child (parent_id) VALUES ($1)", [77]),
        ("not null", "INSERT INTO parent (id, name) VALUES ($1, $2)", [3, None]),
        ("too long", "INSERT INTO child (parent_id, label) VALUES ($1, $2)", [1, "x" * 11]),
        ("enum", "INSERT INTO kinds (feeling) VALUES ($1)", ["angry"]),
        ("domain", "INSERT INTO kinds (above) VALUES ($1)", [0]),
        ("client type", "INSERT INTO plain (id, a) VALUES ($1, $2)", [50, "abc"]),
        ("client count", "INSERT INTO plain (id, a) VALUES ($1, $2)", [50]),
        ("table", "INSERT INTO nowhere VALUES ($1)", [1]),
        ("column", "INSERT INTO plain (nothing) VALUES ($1)", [1]),
        ("syntax", "INSERT INTO plain (id VALUES ($1)", [1]),
        ("late", "INSERT INTO late VALUES ($1, $2)", [1, 999]),
        ("noisy", "INSERT INTO noisy VALUES ($1, $2)", [1, "word"]),
        ("warned", "INSERT INTO noisy VALUES ($1, $2)", [2, "warn"]),
        ("refused", "INSERT INTO noisy VALUES ($1, $2)", [3, "refuse"]),
        ("no type", "INSERT INTO plain (id, a) VALUES ($1, $1 || $2)", [1, 2]),
        ("goes on", "INSERT INTO plain (id, a) VALUES ($1, $2)", [60, 1]),
    ]:
        await step(name, c.execute(sql, *values))


async def transactions(c):
    async with c.transaction():
        await step("insert", c.execute("INSERT INTO plain VALUES ($1)", 100))
        try:
            async with c.transaction():
                await c.execute("INSERT INTO plain VALUES ($1)", 101)
                await c.execute("INSERT INTO plain VALUES ($1)", 100)
        except asyncpg.UniqueViolationError as error:
            say.say("inner", error=fields(error))
        await step("after", c.execute("INSERT INTO plain VALUES ($1)", 102))
    transaction = c.transaction(isolation="serializable", readonly=True)
    await transaction.start()
    await step("read only", c.execute("INSERT INTO plain VALUES ($1)", 103))
    await step("failed", c.fetch("SELECT 1"))
    await transaction.rollback()
    await step("in transaction", asyncio.sleep(0, c.is_in_transaction()))
    await step("script", c.execute("INSERT INTO plain VALUES (104); INSERT INTO plain VALUES (105); UPDATE plain SET a = 1 WHERE id = 104"))
    await step("bad script", c.execute("INSERT INTO plain VALUES (106); INSERT INTO plain VALUES (105)"))
    await step("left", c.fetch("SELECT id FROM plain WHERE id >= 100 ORDER BY id"))
    async with c.transaction():
        say.say("cursor", value=[r[0] async for r in c.cursor("SELECT n FROM generate_series(1, 120) n", prefetch=50)])
        cursor = await c.cursor("SELECT n FROM generate_series(1, 10) n")
        await step("forward", cursor.forward(3))
        await step("fetch", cursor.fetch(2))


async def prepared(c):
    statement = await c.prepare("INSERT INTO changing (id, a) VALUES ($1, $2)")
    for n in range(8):
        await step(f"insert {n}", statement.fetch(n, n))
    await step("status", asyncio.sleep(0, statement.get_statusmsg()))
    await step("duplicate", statement.fetch(1, 1))
    await step("alter", c.execute("ALTER TABLE changing ADD COLUMN more int"))
    await step("insert after", statement.fetch(20, 1))
    await step("read", c.fetch("SELECT * FROM changing WHERE id < 2 ORDER BY id"))
    await step("retype", c.execute("ALTER TABLE changing ALTER COLUMN a TYPE bigint"))
    await step("read again", c.fetch("SELECT * FROM changing WHERE id < 2 ORDER BY id"))
    await step("insert retyped", c.execute("INSERT INTO changing (id, a) VALUES ($1, $2)", 30, 2**40))
    await step("many", c.executemany("INSERT INTO changing (id, a) VALUES ($1, $2)", [(n, n) for n in range(100, 200)]))
    await step("bad many", c.executemany("INSERT INTO changing (id, a) VALUES ($1, $2)", [(300, 1), (100, 1), (301, 1)]))
    await step("left", c.fetch("SELECT count(*), max(id) FROM changing"))


async def settings(_):
    c = await connect(server_settings={"search_path": "other, public", "TimeZone": "Asia/Tokyo"})
    await step("startup", c.fetch("INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *", 1, "other"))
    await step("zone", c.fetch("INSERT INTO stamped (id) VALUES ($1) RETURNING zone", 1))
    await step("set zone", c.execute("SET TIME ZONE 'UTC'"))
    await step("in utc", c.fetch("INSERT INTO stamped (id) VALUES ($1) RETURNING zone", 2))
    await step("path", c.execute("SET search_path TO public"))
    await step("public", c.fetch("INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *", 200, "public"))
    await step("role", c.execute("SET ROLE windrow_guest"))
    await step("guest", c.fetch("INSERT INTO stamped (id) VALUES ($1) RETURNING who", 3))
    await step("denied", c.execute("INSERT INTO plain (id) VALUES ($1)", 201))
    await step("reset", c.reset())
    await step("as startup", c.fetchval("SHOW search_path"))
    await step("set by function", c.fetchval("SELECT set_config('search_path', 'other', false)"))
    await step("in other", c.fetch("INSERT INTO plain (id, b) VALUES ($1, $2) RETURNING *", 2, "other"))
    say.say("reported", value=[c.get_settings().client_encoding, c.get_settings().TimeZone, c.get_server_version()[0] > 0])
    await c.close()


async def others(c):
    heard = asyncio.Queue()
    await c.add_listener("bell", lambda *told: heard.put_nowait([told[2], told[3]]))
    other = await connect()
    await step("notify", other.execute("SELECT pg_notify('bell', 'ding')"))
    await step("heard", asyncio.wait_for(heard.get(), 30))
    await step("lock", c.fetchval("SELECT pg_advisory_lock(1)"))
    await step("locked", other.fetchval("SELECT pg_try_advisory_lock(1)"))
    await step("unlock", c.fetchval("SELECT pg_advisory_unlock(1)"))
    await other.close()
    await step("temp", c.execute("CREATE TEMP TABLE passing (id int PRIMARY KEY)"))
    await step("into temp", c.execute("INSERT INTO passing VALUES ($1)", 1))
    await step("copy", c.copy_records_to_table("plain", records=[(n, n, "c") for n in range(300, 400)], columns=["id", "a", "b"]))
    await step("copy bad", c.copy_records_to_table("plain", records=[(400, 1, "c"), (300, 1, "c")], columns=["id", "a", "b"]))
    parts = []

    async def keep(data):
        parts.append(data)

    await step("copy out", c.copy_from_query("SELECT * FROM plain WHERE id < 303 AND id >= $1 ORDER BY id", 300, output=keep))
    say.say("copied", value=show(b"".join(parts)))
    await step("empty fetch", c.fetch(""))
    await step("large", c.execute("INSERT INTO plain (id, b) VALUES ($1, $2)", 500, "x" * 1_000_000))
    await step("large back", c.fetch("SELECT length(b), md5(b) FROM plain WHERE id = 500"))
    rows = await c.fetch("SELECT n, repeat('r', n % 50) t FROM generate_series(1, 10000) n")
    say.say("many", value=[len(rows), sum(r["n"] for r in rows), sum(len(r["t"]) for r in rows)])
    await step("client timeout", c.fetch("SELECT pg_sleep(60)", timeout=0.3))
    await step("goes on", c.execute("INSERT INTO plain (id) VALUES ($1)", 501))
    await step("timeout", c.execute("SET statement_timeout = 150"))
    await step("too slow", c.fetch("SELECT pg_sleep(60)"))
    await step("reset", c.execute("SET statement_timeout = 0"))


async def loop(_):
    c = await connect()
    done = [await c.execute("INSERT INTO plain (id, a, b) VALUES ($1, $2, $3)", n, n, "loop") for n in range(2000, 2300)]
    say.say("inserts", value=[len(done), sorted(set(done))])
    done = [await c.execute("UPDATE plain SET a = a + 1 WHERE id = $1", n) for n in range(2000, 2300)]
    say.say("updates", value=[len(done), sorted(set(done))])


async def together(c):
    await c.execute("INSERT INTO counter VALUES ('shared', 0)")

    async def work(number):
        own = await connect()
        won = 0
        for n in range(50):
            await own.execute("INSERT INTO plain (id, a) VALUES ($1, $2)", 10_000 + number * 100 + n, n)
            await own.execute("UPDATE counter SET n = n + 1 WHERE name = $1", "shared")
            won += (await own.execute("INSERT INTO claimed VALUES ($1, 0) ON CONFLICT DO NOTHING", n)) == "INSERT 0 1"
        await own.close()
        return won

    won = await asyncio.gather(*(work(n) for n in range(32)))
    say.say("won", value=sum(won))
    await step("counter", c.fetch("SELECT * FROM counter WHERE name = 'shared'"))
    await step("rows", c.fetch("SELECT count(*), sum(a) FROM plain WHERE id >= 10000"))


async def main():
    c = await connect()
    for scenario in [schema, kinds, writes, refused, transactions, prepared, settings, others, loop, together]:
        say.begin(scenario.__name__)
        await scenario(c)
    await c.close()


asyncio.run(main())
