"""Prints the answers of an engine to the questions about a data set, as JSON: for each question its rows.

usage: ask.py ENGINE ROOT SQL_FOLDER [MASTER]

ENGINE is duckdb, clickhouse or spark. SQL_FOLDER contains the views and the questions. MASTER is the URL of Spark's
master. Times are seconds since 1970.
"""

import datetime
import decimal
import json
import pathlib
import re
import sys


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


def answers(engine, root, folder, *further, only=None):
    folder = pathlib.Path(folder)
    run, ask = {"duckdb": duckdb, "clickhouse": clickhouse, "spark": spark}[engine](*further)
    for statement in statements(folder / f"{engine}.sql"):
        run(statement.replace("ROOT", root))
    wanted = {name: sql for name, sql in questions(folder).items() if only in (None, name)}
    return {name: [[plain(v) for v in row] for row in ask(sql)] for name, sql in wanted.items()}


if __name__ == "__main__":
    print(json.dumps(answers(*sys.argv[1:])))
