#!/usr/bin/env python3
"""Tests a parser in another language with the examples of the tables.

    moulsniff tables vectors --json | examples/vectors.py

Put your own parser in the place of `parse`. This one knows a single message.
"""

import json
import struct
import sys


def parse(message, data):
    """The fields of a message, or None where the parser does not know it."""
    if message != "Cli2Auth_VaultNodeFetch":
        return None
    number, trans_id, node_id = struct.unpack("<HII", data)
    assert number == 26
    return {"trans_id": trans_id, "node_id": node_id}


def main():
    right = wrong = unknown = 0
    for line in sys.stdin:
        vector = json.loads(line)
        if "message" not in vector:
            continue
        fields = parse(vector["message"], bytes.fromhex(vector["hex"]))
        if fields is None:
            unknown += 1
        elif fields == vector["fields"]:
            right += 1
        else:
            wrong += 1
            print(f"{vector['message']}: {fields}, not {vector['fields']}")
    print(f"{right} right, {wrong} wrong, {unknown} not known")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
