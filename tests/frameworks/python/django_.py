"""Django's ORM: each statement alone (`plain`), or each unit of work in `atomic()`, as ATOMIC_REQUESTS does (`atomic`)."""

import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

import django
from django.conf import settings

from program import chosen, describe, refused, step

URL, MODE = sys.argv[1:3]
WORKERS = 20
ROUNDS = 5
parts = urlsplit(URL)
settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": parts.path[1:], "USER": parts.username, "HOST": parts.hostname, "PORT": parts.port,
    }},
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
    INSTALLED_APPS=["shop"],
    USE_TZ=True,
)
django.setup()

from django.db import DatabaseError, IntegrityError, connection, transaction  # noqa: E402

from shop.models import Address, Customer, Line, Order  # noqa: E402

unit = {"plain": contextlib.nullcontext, "atomic": transaction.atomic}[MODE]


def order(customer, number, *products):
    made = Order.objects.create(customer=customer, number=number)
    for product in products[:-1]:
        made.lines.create(product=product)
    made.lines.create(product=products[-1], qty=5)
    return made


def unit_of(work, *arguments):
    with unit():
        return work(*arguments)


def seen(number):
    found = Order.objects.filter(number=number).first()
    lines = found and [[line.product, line.qty] for line in found.lines.order_by("product")]
    return found and {"number": found.number, "note": found.note, "lines": lines}


def schema():
    with connection.schema_editor() as editor:
        for model in (Customer, Address, Order, Line):
            editor.create_model(model)


def customer_with_addresses():
    bob = Customer.objects.create(name="Bob")
    bob.addresses.create(street="A")
    bob.addresses.create(street="B")
    bob.addresses.create(street="C", country="BE")
    return {"name": bob.name, "addresses": [[a.street, a.country] for a in bob.addresses.order_by("street")]}


def update(order_id):
    found = Order.objects.get(pk=order_id)
    found.note = "changed"
    found.save()


def delete(customer):
    unit_of(order, customer, "A-2", "apple", "pear")
    unit_of(lambda: Order.objects.get(number="A-2").delete())
    return seen("A-2")


def invalid(customer):
    def attempt(work, *arguments):
        return refused(lambda: unit_of(work, *arguments), DatabaseError)

    def line_of_none():
        Order.objects.create(customer=customer, number="A-3").lines.create(product="apple", qty=0)

    return {
        "null": attempt(lambda: Order.objects.create(customer=customer, number=None)),
        "long": attempt(lambda: Order.objects.create(customer=customer, number="N" * 21)),
        "check": attempt(line_of_none),
        # The foreign keys of Django are deferred: the error comes with the commit.
        "parent": attempt(lambda: Order.objects.create(customer_id=999999, number="A-4")),
        "left": [seen("A-3"), seen("A-4")],
    }


def duplicate(customer):
    def twice():
        order(customer, "B-1", "apple")
        order(customer, "A-1", "pear")

    error = refused(lambda: unit_of(twice), IntegrityError)
    unit_of(order, customer, "B-2", "plum")
    return {"error": error, "first": seen("B-1"), "next": seen("B-2")}


def rollback(customer):
    with transaction.atomic():
        order(customer, "C-1", "apple")
        transaction.set_rollback(True)
    return seen("C-1")


def savepoint(customer):
    error = None
    with transaction.atomic():
        order(customer, "D-1", "apple")
        with transaction.atomic():
            order(customer, "D-2", "pear")
        try:
            with transaction.atomic():
                order(customer, "A-1", "plum")
        except IntegrityError as inner:
            error = describe(inner)
        order(customer, "D-3", "fig")
    return {"error": error, "seen": [seen(number) for number in ("D-1", "D-2", "D-3")]}


def worker(number):
    def turn(of):
        owner = Customer.objects.create(name=f"worker {number} {of}")
        for street in "XYZ":
            owner.addresses.create(street=street)
        return order(owner, f"W-{number}-{of}", "apple", "pear", "plum")

    made = [unit_of(turn, of) for of in range(ROUNDS)]
    connection.close()
    return [(one.pk, one.number, one.created_at) for one in made]


def workers():
    with ThreadPoolExecutor(WORKERS) as pool:
        made = [order for orders in pool.map(worker, range(WORKERS)) for order in orders]
    found = set(Order.objects.values_list("pk", "number", "created_at"))
    return {"orders": len(made), "as read": found.issuperset(made)}


def main():
    schema()
    # Another worker of the same application writes with the same settings.
    other = connection.copy()
    with other.cursor() as cursor:
        cursor.execute("INSERT INTO customers (name) VALUES ('of another worker')")
    step("schema", None)
    ada = unit_of(lambda: Customer.objects.create(name="Ada"))
    step("customer", {"name": ada.name, "created": ada.created_at is not None})
    step("addresses", unit_of(customer_with_addresses))
    made = unit_of(order, ada, "A-1", "apple", "pear", "plum")
    step("order", seen("A-1"))
    unit_of(update, made.pk)
    step("update", seen("A-1"))
    for scenario in chosen([delete, invalid, duplicate, rollback, savepoint]):
        step(scenario.__name__, scenario(ada))
    step("workers", workers())
    other.close()


main()
