"""Scenarios for SQLAlchemy 2: its core and its ORM, over psycopg 3 and psycopg2."""

import datetime as dt
import decimal
import uuid

import sqlalchemy as sa
from sqlalchemy import orm
from sqlalchemy.dialects import postgresql

from transcript import Transcript, arguments, blocks, diag_fields

URL, MODE = arguments()


def fields(error):
    inner = getattr(error, "orig", None)
    told = {"class": type(error).__name__, "text": str(error)}
    if inner is not None:
        state = getattr(inner, "sqlstate", None) or getattr(inner, "pgcode", None)
        told |= {"inner": type(inner).__name__, "state": state, **diag_fields(inner.diag)}
    return told


say = Transcript(sa.exc.SQLAlchemyError, fields)


def engine(**more):
    dialect = {"psycopg3": "psycopg", "psycopg2": "psycopg2"}[MODE]
    return sa.create_engine(URL.replace("postgres://", f"postgresql+{dialect}://"), **more)


class Base(orm.DeclarativeBase):
    pass


class Author(Base):
    __tablename__ = "author"
    id: orm.Mapped[int] = orm.mapped_column(primary_key=True)
    name: orm.Mapped[str] = orm.mapped_column(sa.String(30), unique=True)
    books: orm.Mapped[list["Book"]] = orm.relationship(back_populates="author", cascade="all, delete-orphan", order_by="Book.id")


class Book(Base):
    __tablename__ = "book"
    id: orm.Mapped[uuid.UUID] = orm.mapped_column(primary_key=True)
    author_id: orm.Mapped[int] = orm.mapped_column(sa.ForeignKey("author.id"))
    title: orm.Mapped[str]
    price: orm.Mapped[decimal.Decimal | None] = orm.mapped_column(sa.Numeric(10, 2))
    printed: orm.Mapped[dt.datetime | None] = orm.mapped_column(sa.DateTime(timezone=True))
    tags: orm.Mapped[list[str]] = orm.mapped_column(postgresql.ARRAY(sa.Text), default=list)
    more: orm.Mapped[dict] = orm.mapped_column(postgresql.JSONB, default=dict)
    version: orm.Mapped[int] = orm.mapped_column()
    author: orm.Mapped[Author] = orm.relationship(back_populates="books")
    __mapper_args__ = {"version_id_col": version}


def schema(e):
    # Past SQLAlchemy, which would take the per cent signs in a function's text for parameters.
    raw = e.raw_connection()
    with raw.cursor() as cursor:
        for block in blocks():
            cursor.execute(block)
    raw.commit()
    raw.close()
    say.step("create all", lambda: Base.metadata.create_all(e))
    say.step("again", lambda: Base.metadata.create_all(e))
    found = sa.inspect(e)
    say.step("tables", lambda: found.get_table_names())
    say.step("columns", lambda: [[c["name"], str(c["type"])] for c in found.get_columns("kinds")])


def autocommit(e):
    plain = sa.table("plain", sa.column("id"), sa.column("a"), sa.column("b"))
    with e.connect().execution_options(isolation_level="AUTOCOMMIT") as c:
        for n in range(1, 30):
            say.step(f"insert {n}", lambda n=n: c.execute(plain.insert().values(id=n, a=n, b=f"it's {n}")).rowcount)
        for n in (1, 99):
            say.step(f"update {n}", lambda n=n: c.execute(plain.update().where(plain.c.id == n).values(a=plain.c.a + 1)).rowcount)
            say.step(f"delete {n}", lambda n=n: c.execute(plain.delete().where(plain.c.id == n)).rowcount)
        say.step("duplicate", lambda: c.execute(plain.insert().values(id=2)))
        say.step("wrong table", lambda: c.execute(sa.text("INSERT INTO nowhere VALUES (1)")))
        upsert = postgresql.insert(sa.table("counter", sa.column("name"), sa.column("n"))).values(name="u", n=1)
        upsert = upsert.on_conflict_do_update(index_elements=["name"], set_={"n": upsert.excluded.n + 1}).returning(sa.column("n"))
        for n in range(3):
            say.step(f"upsert {n}", lambda: [tuple(r) for r in c.execute(upsert)])
        author = Author.__table__
        say.step("generated", lambda: list(c.execute(author.insert().values(name="core")).inserted_primary_key))
        say.step("many", lambda: c.execute(plain.insert(), [{"id": n, "a": n, "b": "m"} for n in range(100, 400)]).rowcount)


def mapped(e):
    with orm.Session(e) as session:
        ada = Author(name="Ada", books=[Book(id=uuid.UUID(int=n), title=f"Book {n}", price=decimal.Decimal("9.99"), tags=["a", "b'c"],
                     more={"n": n}, printed=dt.datetime(2024, 1, n, tzinfo=dt.timezone.utc)) for n in range(1, 6)])
        session.add(ada)
        say.step("flush", lambda: [session.flush(), ada.id])
        say.step("commit", session.commit)
        say.step("loaded", lambda: [[b.id, b.title, b.price, b.tags, b.more, b.printed, b.version] for b in ada.books])
        ada.books[0].title = "Changed"
        say.step("update", session.commit)
        say.step("version", lambda: ada.books[0].version)
        session.add(Author(name="Ada"))
        say.step("duplicate", session.commit)
        session.rollback()
        with session.begin_nested():
            session.add(Author(name="Bob"))
        try:
            with session.begin_nested():
                session.add(Author(name="Bob"))
        except sa.exc.IntegrityError as error:
            say.say("nested", error=fields(error))
        session.add_all([Author(name=f"many {n}") for n in range(300)])
        say.step("many", session.commit)
        say.step("ids", lambda: list(session.scalars(sa.select(Author.id).order_by(Author.name))))
        rows = session.scalars(sa.insert(Author).returning(Author, sort_by_parameter_order=True), [{"name": f"bulk {n}"} for n in range(50)])
        say.step("returning", lambda: [[a.id, a.name] for a in rows])
        session.delete(ada)
        say.step("delete", session.commit)
        other = orm.Session(e)
        bob = session.scalars(sa.select(Author).where(Author.name == "Bob")).one()
        bob.books.append(Book(id=uuid.UUID(int=50), title="First"))
        session.commit()
        mine, theirs = (s.get(Book, uuid.UUID(int=50)) for s in (session, other))
        theirs.title = "Theirs"
        other.commit()
        mine.title = "Mine"
        say.step("stale", session.commit)
        session.rollback()
        other.close()
        stream = session.execute(sa.text("SELECT n FROM generate_series(1, 5000) n").execution_options(yield_per=500))
        say.say("stream", value=sum(row[0] for row in stream))


def main():
    e = engine()
    for scenario in [schema, autocommit, mapped]:
        say.begin(scenario.__name__)
        scenario(e)
    say.begin("autocommit of the ORM")
    always = engine(isolation_level="AUTOCOMMIT")
    with orm.Session(always) as session:
        for n in range(20):
            author = Author(name=f"alone {n}")
            session.add(author)
            say.step(f"add {n}", lambda: [session.commit(), author.id])
            author.name = f"alone {n} changed"
            say.step(f"change {n}", session.commit)
        session.add(Author(name="alone 1 changed"))
        say.step("duplicate", session.commit)
        session.rollback()
        say.step("count", lambda: session.scalar(sa.select(sa.func.count()).select_from(Author)))


main()
