"""Scenarios for Django's ORM, which writes each row by itself and commits it at once."""

import datetime as dt
import decimal
import uuid
from urllib.parse import urlsplit

import django
from django.conf import settings

from transcript import Transcript, arguments, diag_fields

URL, MODE = arguments()
parts = urlsplit(URL)
settings.configure(
    USE_TZ=True,
    TIME_ZONE="Europe/Paris",
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:], "USER": parts.username, "HOST": parts.hostname, "PORT": parts.port,
        "OPTIONS": {"server_side_binding": MODE == "server_side"},
        "DISABLE_SERVER_SIDE_CURSORS": MODE == "pooled",
    }},
)
django.setup()

from django.contrib.postgres.fields import ArrayField  # noqa: E402
from django.db import DatabaseError, connection, models, transaction  # noqa: E402
from django.db.models import F  # noqa: E402


class Shop(models.Model):
    name = models.CharField(max_length=20, unique=True)

    class Meta:
        app_label = "scenarios"


class Item(models.Model):
    shop = models.ForeignKey(Shop, models.CASCADE)
    code = models.UUIDField(null=True)
    count = models.PositiveIntegerField(default=0)
    price = models.DecimalField(max_digits=10, decimal_places=2, null=True)
    seen = models.DateTimeField(null=True)
    data = models.JSONField(default=dict)
    raw = models.BinaryField(null=True)
    tags = ArrayField(models.TextField(), default=list)
    took = models.DurationField(null=True)

    class Meta:
        app_label = "scenarios"
        constraints = [models.UniqueConstraint(fields=["shop", "code"], name="one_code")]


def fields(error):
    inner = error.__cause__
    diag = diag_fields(inner.diag) if hasattr(inner, "diag") else {}
    return {"class": type(error).__name__, "text": str(error), "state": getattr(inner, "sqlstate", None), **diag}


say = Transcript((DatabaseError, models.ObjectDoesNotExist), fields)


def schema():
    with connection.schema_editor() as editor:
        editor.create_model(Shop)
        editor.create_model(Item)
    say.say("created", value=sorted(connection.introspection.table_names()))


def company():
    """Another worker of the same application, with the same settings: its writes and ours are joined."""
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO scenarios_shop (name) VALUES ('of the other')")
    return other


def create():
    for n in range(1, 31):
        say.step(f"create {n}", lambda n=n: Shop.objects.create(name=f"shop's {n}").pk)
    shop = Shop.objects.get(name="shop's 1")
    for n in range(20):
        item = Item(shop=shop, code=uuid.UUID(int=n), count=n, price=decimal.Decimal(n) / 4, data={"n": [n, None]}, raw=bytes([n, 0, 255]),
                    tags=["a", "b'"], seen=dt.datetime(2024, 1, 1, n, tzinfo=dt.timezone.utc), took=dt.timedelta(hours=n))
        say.step(f"item {n}", lambda i=item: [i.save(), i.pk])
    say.step("read", lambda: [list(row) for row in Item.objects.order_by("pk").values_list("pk", "code", "price", "seen", "data", "tags", "took")])


def change():
    item = Item.objects.order_by("pk").first()
    item.count = 500
    say.step("save", item.save)
    say.step("save fields", lambda: item.save(update_fields=["count"]))
    say.step("forced", lambda: Item(pk=9999, shop_id=1).save(force_update=True))
    say.step("update", lambda: Item.objects.filter(pk=item.pk).update(count=F("count") + 1))
    say.step("update none", lambda: Item.objects.filter(pk=9999).update(count=1))
    say.step("read", lambda: Item.objects.get(pk=item.pk).count)
    say.step("delete", item.delete)
    say.step("missing", lambda: Item.objects.get(pk=1))
    say.step("get or create", lambda: [bool(x) for x in Shop.objects.get_or_create(name="new")])
    say.step("get or create again", lambda: [bool(x) for x in Shop.objects.get_or_create(name="new")])
    say.step("update or create", lambda: [bool(x) for x in Shop.objects.update_or_create(name="new", defaults={"name": "newer"})])
    say.step("bulk", lambda: [s.pk for s in Shop.objects.bulk_create([Shop(name=f"bulk {n}") for n in range(150)], batch_size=60)])
    say.step("bulk ignore", lambda: len(Shop.objects.bulk_create([Shop(name="bulk 1"), Shop(name="bulk x")], ignore_conflicts=True)))
    say.step("bulk upsert", lambda: len(Shop.objects.bulk_create([Shop(name="bulk 1")], update_conflicts=True, unique_fields=["name"], update_fields=["name"])))
    shops = list(Shop.objects.filter(name__startswith="bulk").order_by("pk")[:30])
    for shop in shops:
        shop.name = shop.name.upper()
    say.step("bulk update", lambda: Shop.objects.bulk_update(shops, ["name"]))


def refused():
    say.step("unique", lambda: Shop.objects.create(name="newer"))
    say.step("check", lambda: Item.objects.create(shop_id=1, count=-1))
    say.step("null", lambda: Item.objects.create(shop_id=None))
    # Django's foreign keys are deferred: alone, they fail at the commit.
    say.step("foreign", lambda: Item.objects.create(shop_id=12345))
    say.step("goes on", lambda: Shop.objects.create(name="goes on").name)


def transactions():
    with transaction.atomic():
        say.step("inside", lambda: Shop.objects.create(name="inside").name)
        try:
            with transaction.atomic():
                Shop.objects.create(name="inside")
        except DatabaseError as error:
            say.say("savepoint", error=fields(error))
        say.step("after", lambda: Shop.objects.filter(name="inside").count())
    try:
        with transaction.atomic():
            Shop.objects.create(name="undone")
            Item.objects.create(shop_id=54321)
    except DatabaseError as error:
        say.say("deferred", error=fields(error))
    say.step("undone", lambda: Shop.objects.filter(name="undone").exists())
    with transaction.atomic():
        say.step("locked", lambda: Shop.objects.select_for_update().get(name="inside").name)
    told = []
    with transaction.atomic():
        transaction.on_commit(lambda: told.append("committed"))
    say.say("on commit", value=told)


def reading():
    say.say("iterator", value=len([s.name for s in Shop.objects.iterator(chunk_size=10)]))
    say.step("related", lambda: [[i.pk, i.shop.name] for i in Item.objects.select_related("shop").order_by("pk")[:5]])
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('TimeZone'), %s", ["raw"])
        say.say("raw", value=list(cursor.fetchone()))
    connection.close()
    say.step("reconnected", lambda: Shop.objects.create(name="reconnected").name)
    # At the end: whether a row that is refused takes a value from the sequence depends on how far its statement came.
    say.step("long", lambda: Shop.objects.create(name="x" * 21))


def main():
    say.begin("schema")
    schema()
    other = company()
    for scenario in [create, change, refused, transactions, reading]:
        say.begin(scenario.__name__)
        scenario()
    other.close()


main()
