from concurrent.futures import ThreadPoolExecutor

from sqlalchemy import create_engine, text

engine = create_engine("postgresql+psycopg://app@127.0.0.1:6432/shop", isolation_level="AUTOCOMMIT", pool_size=16)


def order(n):
    with engine.connect() as connection:
        made = connection.execute(text("INSERT INTO orders (item) VALUES (:item) RETURNING id"), {"item": f"fork {n}"})
        return made.scalar_one()


with ThreadPoolExecutor(16) as pool:
    ids = list(pool.map(order, range(400)))
print(len(set(ids)), "rows")
