# Writes rows one by one, or so in a transaction, and prints how many seconds that took.
import contextlib
import sys
import time

import psycopg

host, port, database, user, form, rows, options = sys.argv[1:]
db = psycopg.connect(
    host=host, port=port, dbname=database, user=user, options=options, autocommit=True
)


def block():
    return db.transaction() if form in ("transaction", "returning") else contextlib.nullcontext()


def each_row(table, count):
    insert = f"INSERT INTO {table} (id, value, note) VALUES (%s, %s, %s)"
    if form == "returning":
        insert = f"INSERT INTO {table} (value, note) VALUES (%s, %s) RETURNING id"
    with db.cursor() as cursor:
        for id in range(count):
            row = (float(id), "as it was seen at the time")
            cursor.execute(insert, row if form == "returning" else (id, *row))
            key = cursor.fetchone()[0] if form == "returning" else id


# What a connection and the gateway find out once is found out before.
db.execute("TRUNCATE ready")
with block():
    each_row("ready", 3)

start = time.perf_counter()
with block():
    each_row("lines", int(rows))
print(f"{time.perf_counter() - start:.6f}")
