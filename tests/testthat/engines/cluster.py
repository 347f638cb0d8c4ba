"""Asks Spark one question, on a cluster of a master and two workers, one of which is killed while the query runs.

usage: cluster.py ROOT SQL_FOLDER QUESTION

Prints the answer, like ask.py, and the number of executors before and after.
"""

import glob
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import ask
import pyspark
from pyspark import SparkContext
from pyspark.sql import SparkSession

home = os.path.dirname(pyspark.__file__)
java = os.path.realpath(shutil.which("java"))
os.environ.update(SPARK_HOME=home, JAVA_HOME=os.path.dirname(os.path.dirname(java)), SPARK_LOCAL_IP="127.0.0.1")
work = tempfile.mkdtemp(prefix="spark-")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def start(name, *arguments):
    with open(os.path.join(work, f"{name}.log"), "wb") as log:
        return subprocess.Popen(
            [os.path.join(home, "bin", "spark-class"), *arguments],
            stdout=log, stderr=log, start_new_session=True, cwd=work,
        )


def kill(process):
    # With its executors.
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def wait_for(what, seconds=120):
    end = time.time() + seconds
    while not what():
        if time.time() > end:
            logs = [open(path, errors="replace").read()[-3000:] for path in glob.glob(work + "/*.log")]
            sys.exit("\n".join(["This did not happen in time.", *logs]))
        time.sleep(0.05)


def start_worker(master, number):
    return start(
        f"worker-{number}", "org.apache.spark.deploy.worker.Worker", "--host", "127.0.0.1", "--webui-port", "0",
        "--cores", "1", "--memory", "1g", "--work-dir", os.path.join(work, f"worker-{number}"), master,
    )


def main(root, folder, question):
    # So that the processes also end if this one is ended.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    processes = [start("master", "org.apache.spark.deploy.master.Master", "--host", "127.0.0.1", "--port", port,
                       "--webui-port", "0")]
    try:
        processes += [start_worker(url, number) for number in (1, 2)]
        builder = SparkSession.builder.master(url)
        options = {
            "spark.executor.memory": "512m", "spark.driver.host": "127.0.0.1", "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            # A task for each file, so that a query takes a while.
            "spark.sql.files.openCostInBytes": "128m", "spark.sql.adaptive.enabled": "false",
        }
        for name, value in options.items():
            builder = builder.config(name, value)
        context = builder.getOrCreate().sparkContext
        context.setLogLevel("ERROR")
        # The driver is in this list, too.
        executors = lambda: context._jsc.sc().getExecutorMemoryStatus().size() - 1
        wait_for(lambda: executors() == 2)
        before = executors()
        tracker = context.statusTracker()

        def kill_in_the_middle():
            def is_running():
                stages = [tracker.getStageInfo(i) for i in tracker.getActiveStageIds()]
                return any(s and s.numActiveTasks > 1 and 1 < s.numCompletedTasks < s.numTasks - 2 for s in stages)

            wait_for(is_running)
            kill(processes[1])

        thread = threading.Thread(target=kill_in_the_middle)
        thread.start()
        found = ask.answers("spark", root, folder, url, only=question)
        thread.join()
        wait_for(lambda: executors() == 1)
        print(json.dumps({"answers": found, "before": before, "after": executors()}))
        SparkContext.stop(context)
    finally:
        for process in processes:
            kill(process)
        shutil.rmtree(work, ignore_errors=True)


main(*sys.argv[1:])
