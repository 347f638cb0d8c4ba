"""Copies a data set to object storage, and prints the answers of DuckDB from there, like ask.py.

usage: storage.py ROOT SQL_FOLDER

The server is moto, with the interface of S3. Arrow lists and reads the objects, and DuckDB answers in SQL.
"""

import json
import os
import pathlib
import re
import sys

import ask
import boto3
import duckdb
import pyarrow
import pyarrow.dataset
import pyarrow.fs
from moto.server import ThreadedMotoServer

key = {"access_key": "test", "secret_key": "test", "region": "us-east-1"}


def main(root, folder):
    folder = pathlib.Path(folder)
    # Requests to this machine do not use a proxy.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
    server = ThreadedMotoServer("127.0.0.1", 0)
    server.start()
    url = "http://{}:{}".format(*server.get_host_and_port())
    client = boto3.client(
        "s3", endpoint_url=url, region_name=key["region"], aws_access_key_id="test", aws_secret_access_key="test"
    )
    client.create_bucket(Bucket="profiles")
    for path in pathlib.Path(root).rglob("*"):
        if path.is_file():
            client.upload_file(str(path), "profiles", f"fleet/{path.relative_to(root)}")
    storage = pyarrow.fs.S3FileSystem(endpoint_override=url, **key)
    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    tables = {}
    # Otherwise Arrow reads both as texts.
    schema = pyarrow.schema([("day", pyarrow.date32()), ("valid_from", pyarrow.int64())])
    partitions = pyarrow.dataset.partitioning(schema, flavor="hive")

    def table(match):
        name = match[1].replace("/", "_") + "_files"
        if name not in tables:
            folder = f"profiles/fleet/{match[1]}"
            tables[name] = pyarrow.dataset.dataset(folder, filesystem=storage, format="parquet", partitioning=partitions)
            con.register(name, tables[name])
        return name

    for statement in ask.statements(folder / "duckdb.sql"):
        con.execute(re.sub(r"read_parquet\('ROOT/([a-z/]*[a-z])/[^)]*\)", table, statement))
    answers = {}
    for name, sql in ask.questions(folder).items():
        answers[name] = [[ask.plain(value) for value in row] for row in con.execute(sql).fetchall()]
    server.stop()
    print(json.dumps(answers))


main(*sys.argv[1:])
