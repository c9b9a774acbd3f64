"""What all scenario programs in Python share: steps that become lines of JSON."""

import json
import pathlib
import sys
import threading

SCHEMA = pathlib.Path(__file__).resolve().parent.parent / "schema.sql"


def blocks():
    """The statements that every program creates its tables with."""
    texts = SCHEMA.read_text(encoding="utf-8").split("\n\n")
    return [text.strip() for text in texts]


def show(value):
    """A value with its type, the same in every run."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [show(v) for v in value]
    if isinstance(value, dict):
        return {str(k): show(v) for k, v in value.items()}
    if isinstance(value, memoryview):
        value = bytes(value)
    if isinstance(value, bytes) and len(value) > 200:
        return f"bytes:{len(value)}:{sum(value)}"
    return f"{type(value).__name__}:{value!r}"


class Transcript:
    """Prints one line of JSON for each step."""

    def __init__(self, errors, fields):
        self.errors = errors
        self.fields = fields
        self.scenario = ""

    def begin(self, scenario):
        self.scenario = scenario

    def say(self, step, **what):
        line = {"scenario": self.scenario, "step": step, **what}
        print(json.dumps(line, sort_keys=True, ensure_ascii=True), flush=True)

    def step(self, name, action):
        """Does something and says what came of it: its value, or the database's error."""
        try:
            value = action()
        except self.errors as error:
            self.say(name, error=self.fields(error))
            return None
        self.say(name, value=show(value))
        return value


def diag_fields(diag):
    """The fields of an error or notice, as libpq's drivers give them."""
    names = [name for name in dir(diag) if not name.startswith("_")]
    values = ((name, getattr(diag, name)) for name in names)
    return {name: value for name, value in values if isinstance(value, str)}


def crowd(count, work):
    """Runs `work(number)` in that many threads at once; gives the results in order, or the first error."""
    results = [None] * count
    errors = []

    def run(number):
        try:
            results[number] = work(number)
        except Exception as error:  # told below, whatever it is
            errors.append(error)

    threads = [threading.Thread(target=run, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return results


def arguments():
    """The URL and the mode that the program was called with."""
    if len(sys.argv) not in (2, 3):
        sys.exit(f"usage: {sys.argv[0]} URL [MODE]")
    return sys.argv[1], sys.argv[2] if len(sys.argv) == 3 else "default"
