# Needs Python 3.11+, make and (for Spark) a JDK 17 or 21. Every target works alone on a fresh clone. Without a JDK, `make demo`
# runs in process, and `make test` runs the tests in process, fails, and says what is missing.

PYTHON ?= python3
# The Pythons of `make pythons`: versions, or paths of interpreters.
PYTHONS ?= 3.11 3.12 3.13 3.14
VENV := .venv
VENV_35 := .venv-35
VENV_40 := .venv-40
# What builds the site: without PySpark and the test tools.
VENV_SITE := .venv-site
# The versions that were tested, one file for each environment.
TESTED := constraints/newest.txt
TESTED_35 := constraints/spark-3.5.txt
TESTED_40 := constraints/spark-4.0.txt
CACHE := .cache
BUNDLE_OF = $(CACHE)/hudi-spark3.5-bundle_2.12-$(1).jar
BUNDLE := $(call BUNDLE_OF,1.2.0)
# The last releases that write tables of version 8 and of version 6 by default.
BUNDLE_V8 := $(call BUNDLE_OF,1.0.2)
BUNDLE_V6 := $(call BUNDLE_OF,0.15.0)
HBASE := $(CACHE)/hbase-2.6.1
KAFKA := $(CACHE)/kafka-3.9.1
# The newest release on Maven Central; it serves the newest PySpark too.
CONNECTORS := $(CACHE)/connectors-4.2.0
INSTALL := sh scripts/install_tested
UPGRADE := -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable
IN_PROCESS := tests --ignore=tests/interop --ignore=tests/hbase --ignore=tests/ingest --ignore=tests/web --ignore=tests/tidy -m 'not spark' -n 2
EXTRAS := .[spark,connect,demo,test]
EXTRAS_NEWEST := .[spark,connect,demo,test,dev]
# PySpark 3.5 imports distutils, which setuptools still provides on Python 3.12 and later.
SPARK_35 := 'pyspark~=3.5.5' 'setuptools<81'
SPARK_40 := 'pyspark~=4.0.1'

# Some machines forbid Python to store compiled modules. Each worker of Spark, and each test with a process of its own,
# would compile the package again.
unexport PYTHONDONTWRITEBYTECODE
# Sets have the same order in every run of the tests.
export PYTHONHASHSEED := 0
# Lanes run in turn, or side by side on four cores and more. Logs are in .cache/lanes.
RUN_LANES := $(PYTHON) scripts/run_lanes.py $(CACHE)/lanes
NEEDS_JAVA := sh scripts/require_java

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-newest pythons fuzz mutants stress stress-jvm interop hbase bench bench-all check check-types check-rules site docs constraints fmt java

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp ## A year of flights: insert, upsert, delete, time travel, judged by hudi-rs
	@$(VENV)/bin/hoodie demo

test: $(VENV)/.stamp ## What a change must not break, in six minutes: in process, and what users of PySpark see first on a classic session
	@$(RUN_LANES) \
	    "in process=HOODIE_TEST_TIER=first $(VENV)/bin/python -m pytest $(IN_PROCESS)" \
	    "classic=$(NEEDS_JAVA) && HOODIE_TEST_TIER=first $(VENV)/bin/python -m pytest tests/contract -m 'spark and surface'"

test-all: ## Every case of every lane, without samples; MINUTES=60 runs a piece of it, and the next call goes on with the rest
	@$(PYTHON) scripts/test_all.py $(CACHE)/passed $(LANES)

# Each lane alone. A target prepares the environment that it needs, and no other.
LANES := in-process classic connect judges older spark-3.5 spark-4.0 hbase ingest web
.PHONY: $(LANES:%=lane-%) needs-ingest needs-web

lane-in-process: $(VENV)/.stamp
	$(VENV)/bin/python -m pytest $(IN_PROCESS)

lane-classic: java $(VENV)/.stamp
	$(VENV)/bin/python -m pytest tests/contract -m spark

lane-connect: java $(VENV)/.stamp
	HOODIE_TEST_SPARK=connect $(VENV)/bin/python -m pytest tests/contract

lane-judges: java $(VENV)/.stamp $(VENV_35)/.stamp $(BUNDLE)
	HOODIE_NEWEST_PYTHON=$(VENV)/bin/python HOODIE_JVM_BUNDLE=$(BUNDLE) $(VENV_35)/bin/python -m pytest tests/interop --ignore=tests/interop/older -n 2 --dist loadfile

lane-older: java $(VENV_35)/.stamp $(BUNDLE_V8) $(BUNDLE_V6)
	HOODIE_JVM_BUNDLE=$(BUNDLE_V8) $(VENV_35)/bin/python -m pytest tests/interop/older/test_releases.py tests/interop/older/test_statistics.py tests/interop/older/test_*_of_1_0.py
	HOODIE_JVM_BUNDLE=$(BUNDLE_V6) $(VENV_35)/bin/python -m pytest tests/interop/older/test_releases.py tests/interop/older/test_statistics.py tests/interop/older/test_*_of_0_15.py

lane-spark-3.5: java $(VENV_35)/.stamp
	$(VENV_35)/bin/python -m pytest tests/contract -m spark

lane-spark-4.0: java $(VENV_40)/.stamp
	$(VENV_40)/bin/python -m pytest tests/contract -m surface
	HOODIE_TEST_SPARK=connect $(VENV_40)/bin/python -m pytest tests/contract -m surface

lane-hbase: java $(VENV_35)/.stamp $(HBASE)
	HOODIE_HBASE_JARS=$(HBASE) $(VENV_35)/bin/python -m pytest tests/hbase

lane-ingest: needs-ingest java $(VENV)/.stamp $(KAFKA) $(CONNECTORS)
	HOODIE_KAFKA_JARS=$(KAFKA) HOODIE_CONNECTOR_JARS=$(CONNECTORS) $(VENV)/bin/python -m pytest tests/ingest

lane-web: needs-web $(VENV)/.stamp
	$(VENV)/bin/python -m pytest tests/web

# Programs of the system that a lane starts; other lanes need none.
needs-ingest:
	@sh scripts/require_package postgresql $${HOODIE_POSTGRES:-/usr/lib/postgresql/*/bin}/initdb

needs-web:
	@sh scripts/require_package chromium $${HOODIE_CHROMIUM:-/usr/bin/chromium}

needs-%: ;

test-newest: ## The tests in process with the newest version of each dependency, in an environment of its own
	@sh scripts/make_venv $(PYTHON) $(CACHE)/newest
	@$(CACHE)/newest/bin/python $(UPGRADE) '$(EXTRAS)'
	$(CACHE)/newest/bin/python -m pytest $(IN_PROCESS)

pythons: ## The tests in process on each Python at hand among PYTHONS (versions or paths); the last line names those not found
	@sh scripts/test_pythons $(CACHE) $(TESTED) $(PYTHONS)

fuzz: $(VENV)/.stamp ## Property tests and damaged files with fresh seeds; HOODIE_FUZZ_SEED=… repeats one, HOODIE_FUZZ_FACTOR=… runs longer
	HOODIE_TEST_PROFILE=fuzz $(VENV)/bin/python -m pytest tests --ignore=tests/interop --ignore=tests/hbase --ignore=tests/ingest --ignore=tests/web -m "(hypothesis or seeded) and not spark" -n 2 --timeout 0

mutants: $(VENV)/.stamp ## Change the code in 20 places, one at a time, and count what the tests of `make test` find; SEED=…
	$(VENV)/bin/python scripts/mutants.py --seed $(or $(SEED),1)

stress: $(VENV)/.stamp ## Eight writers that are killed and stopped, five minutes; HOODIE_STRESS_SECONDS, HOODIE_STRESS_PROCESSES, HOODIE_STRESS_SEED
	$(VENV)/bin/python -m tests.stress

stress-jvm: java $(VENV_35)/.stamp $(BUNDLE) ## The same with two JVM writers among the eight, locked by ZooKeeper; HOODIE_STRESS_JVM=… for another number
	HOODIE_STRESS_JVM=$${HOODIE_STRESS_JVM:-2} HOODIE_JVM_BUNDLE=$(abspath $(BUNDLE)) $(VENV_35)/bin/python -m tests.stress

interop: ## JVM Hudi 1.2.0, 1.0.2, 0.15.0 and hudi-rs as judges, a real HBase, Kafka and PostgreSQL, Spark 3.5 and Spark 4.0, by sample
	@$(RUN_LANES) $(foreach lane,judges older spark-3.5 spark-4.0 hbase ingest,"$(lane)=$(MAKE) --no-print-directory lane-$(lane)")

hbase: lane-hbase ## The tests of the HBase index with a standalone HBase, which Maven or Spark fetches once (110 MB)

bench: BENCH ?= --headline
bench-all: BENCH ?= --go-on
bench: ## Time this project beside JVM Hudi, delta-rs and plain Parquet for the README (ten minutes)
bench-all: ## All other measurements too, in pieces: a part that was measured on this commit is left out (3 hours)
bench bench-all: java $(VENV)/.stamp-bench $(VENV_35)/.stamp $(BUNDLE) $(HBASE) $(KAFKA) $(CONNECTORS)
	HOODIE_KAFKA_JARS=$(abspath $(KAFKA)) HOODIE_CONNECTOR_JARS=$(abspath $(CONNECTORS)) HOODIE_HBASE_JARS=$(abspath $(HBASE)) HOODIE_JVM_BUNDLE=$(abspath $(BUNDLE)) HOODIE_BENCH_PYTHON_35=$(abspath $(VENV_35))/bin/python $(VENV)/bin/python -m bench --docs $(BENCH)

check: check-types check-rules ## Format, lint, types, the rules of tests/tidy, and the examples of docstrings

check-types: $(VENV)/.stamp
	$(VENV)/bin/mypy

check-rules: $(VENV)/.stamp
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/python -m pytest -q tests/tidy
	$(VENV)/bin/python -m pytest -q --doctest-modules src/hoodie

site: $(VENV_SITE)/.stamp ## Build the pages, the API and the commands as a site in .cache/site; a link that leads nowhere fails
	@NO_MKDOCS_2_WARNING=1 $(VENV_SITE)/bin/python -m mkdocs --quiet build
	@echo "open $(CACHE)/site/index.html"

docs: $(VENV)/.stamp ## Write the generated page of options, and the table of judged steps in docs/migrating.md
	$(VENV)/bin/python scripts/write_options.py docs/options.md
	PYTHONPATH=. $(VENV)/bin/python scripts/write_migrating.py docs/migrating.md

constraints: $(VENV)/.stamp-bench $(VENV_35)/.stamp $(VENV_40)/.stamp ## Bring the environments to the newest versions, and write these to constraints/; then run the tests
	$(VENV)/bin/python $(UPGRADE) '.[spark,connect,demo,test,dev,bench,site]'
	$(VENV_35)/bin/python $(UPGRADE) '$(EXTRAS)' $(SPARK_35)
	$(VENV_40)/bin/python $(UPGRADE) '$(EXTRAS)' $(SPARK_40)
	$(VENV)/bin/python scripts/write_constraints.py $(TESTED)
	$(VENV_35)/bin/python scripts/write_constraints.py $(TESTED_35)
	$(VENV_40)/bin/python scripts/write_constraints.py $(TESTED_40)
	@touch $(VENV)/.stamp $(VENV)/.stamp-bench $(VENV_35)/.stamp $(VENV_40)/.stamp

fmt: $(VENV)/.stamp ## Format the code and fix what ruff can fix
	$(VENV)/bin/ruff check --fix-only --quiet .
	$(VENV)/bin/ruff format .

java:
	@$(NEEDS_JAVA)

# A virtual environment is rebuilt in place when the dependencies change; the code itself is installed editable.
$(VENV)/.stamp: pyproject.toml $(TESTED)
	@sh scripts/make_venv $(PYTHON) $(VENV)
	@echo "Installing hoodie with PySpark and the test tools into $(VENV) (about half a gigabyte, once) ..."
	@$(INSTALL) $(VENV)/bin/python $(TESTED) '$(EXTRAS_NEWEST)'
	@touch $@

$(VENV)/.stamp-bench: $(VENV)/.stamp
	@$(INSTALL) $(VENV)/bin/python $(TESTED) '.[bench]'
	@touch $@

$(VENV_SITE)/.stamp: pyproject.toml $(TESTED)
	@sh scripts/make_venv $(PYTHON) $(VENV_SITE)
	@echo "Installing what builds the site into $(VENV_SITE) ..."
	@$(INSTALL) $(VENV_SITE)/bin/python $(TESTED) '.[site]'
	@touch $@

$(VENV_35)/.stamp: pyproject.toml $(TESTED_35)
	@sh scripts/make_venv $(PYTHON) $(VENV_35)
	@echo "Installing hoodie with PySpark 3.5 into $(VENV_35) (about half a gigabyte, once) ..."
	@$(INSTALL) $(VENV_35)/bin/python $(TESTED_35) '$(EXTRAS)' $(SPARK_35)
	@touch $@

$(VENV_40)/.stamp: pyproject.toml $(TESTED_40)
	@sh scripts/make_venv $(PYTHON) $(VENV_40)
	@echo "Installing hoodie with PySpark 4.0 into $(VENV_40) (about half a gigabyte, once) ..."
	@$(INSTALL) $(VENV_40)/bin/python $(TESTED_40) '$(EXTRAS)' $(SPARK_40)
	@touch $@

$(HBASE): | $(VENV_35)/.stamp
	@$(VENV_35)/bin/python scripts/fetch_jars.py $@

$(KAFKA) $(CONNECTORS): | $(VENV)/.stamp
	@$(VENV)/bin/python scripts/fetch_jars.py $@

$(BUNDLE) $(BUNDLE_V8) $(BUNDLE_V6): | $(VENV_35)/.stamp
	@$(VENV_35)/bin/python scripts/fetch_jars.py $@
