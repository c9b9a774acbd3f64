"""Models of a shop. Their tables are made by Django, so that foreign keys are deferred."""

from django.db import models
from django.db.models.functions import Now


class Customer(models.Model):
    name = models.CharField(max_length=40)
    created_at = models.DateTimeField(db_default=Now())

    class Meta:
        db_table = "customers"


class Address(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE, related_name="addresses")
    street = models.TextField()
    country = models.CharField(max_length=2, db_default="NL")

    class Meta:
        db_table = "addresses"


class Order(models.Model):
    customer = models.ForeignKey(Customer, models.CASCADE)
    number = models.CharField(max_length=20, unique=True)
    note = models.TextField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        db_table = "orders"


class Line(models.Model):
    order = models.ForeignKey(Order, models.CASCADE, related_name="lines")
    product = models.TextField()
    qty = models.IntegerField(default=1)

    class Meta:
        db_table = "order_lines"
        constraints = [models.CheckConstraint(condition=models.Q(qty__gt=0), name="order_lines_qty")]
