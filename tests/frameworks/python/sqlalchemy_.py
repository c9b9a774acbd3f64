"""SQLAlchemy's ORM in its default configuration, over psycopg or asyncpg."""

import asyncio
import datetime as dt
import sys
from concurrent.futures import ThreadPoolExecutor

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

from program import chosen, describe, refused, step

URL, DRIVER = sys.argv[1:3]
WORKERS = 20
ROUNDS = 5


class Base(orm.DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customers"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(40))
    created_at: orm.Mapped[dt.datetime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    addresses: orm.Mapped[list["Address"]] = orm.relationship(order_by="Address.street")


class Address(Base):
    __tablename__ = "addresses"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    customer_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("customers.id"))
    street: orm.Mapped[str]
    country: orm.Mapped[str] = orm.mapped_column(sa.String(2), server_default="NL")


class Order(Base):
    __tablename__ = "orders"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    customer_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("customers.id"))
    number: orm.Mapped[str] = orm.mapped_column(sa.String(20), unique=True)
    note: orm.Mapped[str | None]
    created_at: orm.Mapped[dt.datetime] = orm.mapped_column(sa.DateTime(timezone=True), server_default=sa.func.now())
    lines: orm.Mapped[list["Line"]] = orm.relationship(cascade="all, delete-orphan", order_by="Line.product")


class Line(Base):
    __tablename__ = "order_lines"
    __table_args__ = (sa.CheckConstraint("qty > 0", name="order_lines_qty"),)
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    order_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("orders.id"))
    product: orm.Mapped[str]
    qty: orm.Mapped[int] = orm.mapped_column(server_default="1")


class Threads:
    """Sessions over psycopg, each in the thread that uses it."""

    def __init__(self):
        self.engine = sa.create_engine(URL.replace("postgres://", "postgresql+psycopg://"))

    def run(self, work):
        with orm.Session(self.engine) as session:
            return work(session)

    def create_tables(self):
        Base.metadata.create_all(self.engine)

    def crowd(self, works):
        with ThreadPoolExecutor(WORKERS) as pool:
            return list(pool.map(self.run, works))


class Tasks:
    """Sessions over asyncpg, each in a task of one event loop."""

    def __init__(self):
        self.engine = create_async_engine(URL.replace("postgres://", "postgresql+asyncpg://"))
        self.runner = asyncio.Runner()

    async def session(self, work):
        async with AsyncSession(self.engine) as session:
            return await session.run_sync(work)

    def run(self, work):
        return self.runner.run(self.session(work))

    def create_tables(self):
        async def create():
            async with self.engine.begin() as connection:
                await connection.run_sync(Base.metadata.create_all)

        self.runner.run(create())

    def crowd(self, works):
        async def gather():
            return await asyncio.gather(*map(self.session, works))

        return self.runner.run(gather())


shop = {"psycopg": Threads, "asyncpg": Tasks}[DRIVER]()


def commit(session, *things):
    session.add_all(things)
    session.commit()


def order(customer_id, number, *products):
    lines = [Line(product=product) for product in products[:-1]]
    return Order(customer_id=customer_id, number=number, lines=[*lines, Line(product=products[-1], qty=5)])


def customer(session):
    ada = Customer(name="Ada")
    commit(session, ada)
    return ada.id, {"name": ada.name, "created": ada.created_at is not None}


def customer_with_addresses(session):
    bob = Customer(name="Bob", addresses=[Address(street="A"), Address(street="B"), Address(street="C", country="BE")])
    commit(session, bob)
    return {"name": bob.name, "addresses": [[a.street, a.country, a.customer_id == bob.id] for a in bob.addresses]}


def seen(session, number):
    found = session.scalars(sa.select(Order).where(Order.number == number)).one_or_none()
    return found and {"number": found.number, "note": found.note, "lines": [[line.product, line.qty] for line in found.lines]}


def order_with_lines(session, customer_id):
    made = order(customer_id, "A-1", "apple", "pear", "plum")
    commit(session, made)
    assert session.get(Order, made.id) is made
    return made.id, seen(session, "A-1")


def update(session, order_id):
    found = session.get(Order, order_id)
    found.note = "changed"
    session.commit()
    return seen(session, "A-1")


def delete(session, customer_id):
    commit(session, order(customer_id, "A-2", "apple", "pear"))
    session.delete(session.scalars(sa.select(Order).where(Order.number == "A-2")).one())
    session.commit()
    return seen(session, "A-2")


def invalid(session, customer_id):
    def attempt(thing):
        result = refused(lambda: commit(session, thing), sa.exc.DBAPIError)
        session.rollback()
        return result

    return {
        "null": attempt(Order(customer_id=customer_id, number=None)),
        "long": attempt(Order(customer_id=customer_id, number="N" * 21)),
        "check": attempt(Order(customer_id=customer_id, number="A-3", lines=[Line(product="apple", qty=0)])),
        "parent": attempt(Order(customer_id=999999, number="A-4")),
        "left": [seen(session, "A-3"), seen(session, "A-4")],
    }


def duplicate(session, customer_id):
    session.add(order(customer_id, "B-1", "apple"))
    session.flush()
    result = refused(lambda: commit(session, order(customer_id, "A-1", "pear")), sa.exc.IntegrityError)
    session.rollback()
    commit(session, order(customer_id, "B-2", "plum"))
    return {"error": result, "first": seen(session, "B-1"), "next": seen(session, "B-2")}


def rollback(session, customer_id):
    session.add(order(customer_id, "C-1", "apple"))
    session.flush()
    session.rollback()
    return seen(session, "C-1")


def savepoint(session, customer_id):
    session.add(order(customer_id, "D-1", "apple"))
    with session.begin_nested():
        session.add(order(customer_id, "D-2", "pear"))
    result = None
    try:
        with session.begin_nested():
            session.add(order(customer_id, "A-1", "plum"))
    except sa.exc.IntegrityError as error:
        result = describe(error)
    commit(session, order(customer_id, "D-3", "fig"))
    return {"error": result, "seen": [seen(session, number) for number in ("D-1", "D-2", "D-3")]}


def worker(number):
    def work(session):
        made = []
        for turn in range(ROUNDS):
            name = f"worker {number} {turn}"
            owner = Customer(name=name, addresses=[Address(street=street) for street in "XYZ"])
            commit(session, owner)
            one = order(owner.id, f"W-{number}-{turn}", "apple", "pear", "plum")
            session.add(one)
            session.flush()
            made.append((one.id, one.number, one.created_at))
            session.commit()
        return made

    return work


def workers():
    made = [order for orders in shop.crowd([worker(n) for n in range(WORKERS)]) for order in orders]

    def read(session):
        return {tuple(row) for row in session.execute(sa.select(Order.id, Order.number, Order.created_at))}

    return {"orders": len(made), "as read": shop.run(read).issuperset(made)}


def main():
    shop.create_tables()
    step("schema", None)
    customer_id, value = shop.run(customer)
    step("customer", value)
    step("addresses", shop.run(customer_with_addresses))
    order_id, value = shop.run(lambda session: order_with_lines(session, customer_id))
    step("order", value)
    step("update", shop.run(lambda session: update(session, order_id)))
    for scenario in chosen([delete, invalid, duplicate, rollback, savepoint]):
        step(scenario.__name__, shop.run(lambda session: scenario(session, customer_id)))
    step("workers", workers())


main()
