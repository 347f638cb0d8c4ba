"""Prints the answers of an engine to the questions about a data set, as JSON: for each question its rows.

usage: ask.py ENGINE ROOT SQL_FOLDER [SERVER]

ENGINE is duckdb, clickhouse, spark or trino. SQL_FOLDER contains the views and the questions. SERVER is the URL of
Spark's master, or of a server of Trino with the catalog `hive`. Times are seconds since 1970.
"""

import datetime
import decimal
import json
import os
import pathlib
import re
import sys
import urllib.request


def statements(path):
    text = re.sub(r"^--.*$", "", path.read_text(), flags=re.MULTILINE)
    return [part.strip() for part in text.split(";") if part.strip()]


def questions(folder):
    text = (folder / "questions.sql").read_text()
    names = re.findall(r"^-- question: (.*)$", text, flags=re.MULTILINE)
    return dict(zip(names, statements(folder / "questions.sql"), strict=True))


def plain(value):
    if isinstance(value, datetime.datetime):
        value = value if value.tzinfo else value.replace(tzinfo=datetime.timezone.utc)
        return value.timestamp()
    if isinstance(value, (int, decimal.Decimal)):
        return float(value)
    return value


def duckdb():
    import duckdb

    con = duckdb.connect()
    con.execute("SET TimeZone = 'UTC'")
    return con.execute, lambda sql: con.execute(sql).fetchall()


def clickhouse():
    from chdb import session

    con = session.Session()
    con.query("SET session_timezone = 'UTC'")

    def ask(sql):
        answer = json.loads(str(con.query(sql, "JSONCompact")))
        times = [i for i, column in enumerate(answer["meta"]) if "DateTime" in column["type"]]
        for row in answer["data"]:
            for i in times:
                row[i] = datetime.datetime.fromisoformat(row[i][:19])
        return answer["data"]

    con.query("SET output_format_json_quote_64bit_integers = 0")
    return con.query, ask


def spark(master="local[2]"):
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master(master)
    options = {
        # Names of columns that are words of SQL are refused.
        "spark.sql.ansi.enabled": "true",
        "spark.sql.ansi.enforceReservedKeywords": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "8",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in options.items():
        builder = builder.config(name, value)
    con = builder.getOrCreate()
    con.sparkContext.setLogLevel("ERROR")

    return con.sql, lambda sql: [tuple(row) for row in con.sql(sql).collect()]


def trino(server):
    headers = {
        "X-Trino-User": "test",
        "X-Trino-Catalog": "hive",
        "X-Trino-Schema": f"fleet_{os.getpid()}",
        "X-Trino-Time-Zone": "UTC",
    }

    def request(url, text=None):
        with urllib.request.urlopen(urllib.request.Request(url, text, headers)) as response:
            return json.load(response)

    def ask(sql):
        answer = request(f"{server}/v1/statement", sql.encode())
        rows = []
        while True:
            rows += answer.get("data", [])
            if "error" in answer:
                sys.exit(f"{sql}\n{answer['error']['message']}")
            if "nextUri" not in answer:
                break
            answer = request(answer["nextUri"])
        times = [i for i, column in enumerate(answer.get("columns", [])) if column["type"].startswith("timestamp")]
        for row in rows:
            for i in times:
                row[i] = datetime.datetime.fromisoformat(row[i])
        return rows

    ask(f"CREATE SCHEMA {headers['X-Trino-Schema']}")
    return ask, ask


def answers(engine, root, folder, *further, only=None):
    folder = pathlib.Path(folder)
    run, ask = {"duckdb": duckdb, "clickhouse": clickhouse, "spark": spark, "trino": trino}[engine](*further)
    for statement in statements(folder / f"{engine}.sql"):
        run(statement.replace("ROOT", root))
    wanted = {name: sql for name, sql in questions(folder).items() if only in (None, name)}
    return {name: [[plain(v) for v in row] for row in ask(sql)] for name, sql in wanted.items()}


if __name__ == "__main__":
    print(json.dumps(answers(*sys.argv[1:])))
