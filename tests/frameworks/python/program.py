"""Steps of a program: each prints one line of JSON and waits until the test has read it."""

import json
import os
import sys


def chosen(scenarios):
    """Returns those that are played: with late transactions no program goes on after a failed INSERT."""
    return [scenario for scenario in scenarios if scenario.__name__ != "savepoint" or "SHOP_LATE" not in os.environ]


def step(name, value):
    print(json.dumps({name: value}, sort_keys=True), flush=True)
    sys.stdin.readline()


def refused(action, *errors):
    """Describes the exception that an action raises: its classes, and the server's fields that are the same in every run."""
    try:
        action()
    except errors as error:
        return describe(error)
    return "no error"


def describe(error):
    shown = {"classes": []}
    while error is not None:
        shown["classes"].append(type(error).__name__)
        fields = getattr(error, "diag", error)
        for name, field in [("state", "sqlstate"), ("constraint", "constraint_name"), ("table", "table_name"), ("column", "column_name")]:
            value = getattr(fields, field, None)
            if value is not None:
                shown[name] = value
        error = getattr(error, "orig", None) or error.__cause__
    return shown
