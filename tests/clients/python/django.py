from concurrent.futures import ThreadPoolExecutor

import django
from django.conf import settings
from django.db import IntegrityError, connection, models

shop = {"ENGINE": "django.db.backends.postgresql", "HOST": "127.0.0.1", "PORT": 6432, "NAME": "shop", "USER": "app"}
settings.configure(DATABASES={"default": shop})
django.setup()


class Order(models.Model):
    id = models.BigAutoField(primary_key=True)
    item = models.TextField()

    class Meta:
        app_label = "shop"
        db_table = "orders"
        managed = False


def worker(numbers):
    ids = [Order.objects.create(item=f"cart {n}").id for n in numbers]
    connection.close()
    return ids


with ThreadPoolExecutor(16) as pool:
    ids = [id for part in pool.map(worker, [range(25)] * 16) for id in part]
print(len(set(ids)), "rows, each with an id of its own")

try:
    Order.objects.create(item="")
except IntegrityError as error:
    print(error.__cause__.sqlstate)
