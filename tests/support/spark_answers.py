"""What Spark answers to questions over Delta tables. A script for a Python that has pyspark: JSON in, JSON out.

`PYTHON spark_answers.py`: standard input has `tables` (of each the folder, and its files), `statements` that make the views, and `questions`.
"""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    asked = json.load(sys.stdin)
    spark = (
        SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").config("spark.driver.memory", "1g")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.session.timeZone", "UTC").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    )  # fmt: skip
    for name, (folder, files) in asked["tables"].items():
        spark.read.option("basePath", folder).parquet(*files).createOrReplaceTempView(f"{name}_log")
    for statement in asked["statements"]:
        spark.sql(statement)
    answers = [[list(row) for row in spark.sql(question).collect()] for question in asked["questions"]]
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
