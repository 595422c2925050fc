# Needs Python 3.11+, make and (for Spark) a JDK 17 or 21. Every target works alone on a fresh clone. Without a JDK, `make demo`
# runs in process, and `make test` runs the tests in process, fails, and says what is missing.

PYTHON ?= python3
# The Pythons of `make pythons`: versions, or paths of interpreters.
PYTHONS ?= 3.11 3.12 3.13 3.14
VENV := .venv
VENV_35 := .venv-35
VENV_40 := .venv-40
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
INSTALL := sh scripts/install_tested
UPGRADE := -m pip install --quiet --disable-pip-version-check --upgrade --upgrade-strategy eager --editable
IN_PROCESS := tests --ignore=tests/interop --ignore=tests/hbase --ignore=tests/tidy -m 'not spark' -n 2
EXTRAS := .[spark,connect,demo,test]
EXTRAS_NEWEST := .[spark,connect,demo,test,dev]
# PySpark 3.5 imports distutils, which setuptools still provides on Python 3.12 and later.
SPARK_35 := 'pyspark~=3.5.5' 'setuptools<81'
SPARK_40 := 'pyspark~=4.0.1'

# Sets have the same order in every run of the tests.
test test-newest pythons fuzz interop hbase: export PYTHONHASHSEED := 0
# Lanes run side by side: each waits often enough that more than two keep two cores busy. Logs are in .cache/lanes.
RUN_LANES := scripts/run_lanes.py $(CACHE)/lanes
NEEDS_JAVA := sh scripts/require_java

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test test-all test-newest pythons fuzz stress stress-jvm interop hbase bench check site docs constraints fmt java

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.stamp ## A year of flights: insert, upsert, delete, time travel, judged by hudi-rs
	@$(VENV)/bin/hoodie demo

test: $(VENV)/.stamp ## The tests in process, on a classic session of the newest Spark and on Spark Connect, side by side
	@$(VENV)/bin/python $(RUN_LANES) \
	    "in process=$(VENV)/bin/python -m pytest $(IN_PROCESS)" \
	    "classic=$(NEEDS_JAVA) && $(VENV)/bin/python -m pytest tests/contract -m spark" \
	    "connect=$(NEEDS_JAVA) && HOODIE_TEST_SPARK=connect $(VENV)/bin/python -m pytest tests/contract"

test-all: export HOODIE_TEST_ALL := 1
test-all: test interop pythons ## Every case of `make test` and `make interop`, also those that their samples leave out, and `make pythons`

test-newest: ## The tests in process with the newest version of each dependency, in an environment of its own
	@sh scripts/make_venv $(PYTHON) $(CACHE)/newest
	@$(CACHE)/newest/bin/python $(UPGRADE) '$(EXTRAS)'
	$(CACHE)/newest/bin/python -m pytest $(IN_PROCESS)

pythons: ## The tests in process on each Python at hand among PYTHONS (versions or paths); the last line names those not found
	@sh scripts/test_pythons $(CACHE) $(TESTED) $(PYTHONS)

fuzz: $(VENV)/.stamp ## Property tests and damaged files with fresh seeds; HOODIE_FUZZ_SEED=… repeats one, HOODIE_FUZZ_FACTOR=… runs longer
	HOODIE_TEST_PROFILE=fuzz $(VENV)/bin/python -m pytest tests --ignore=tests/interop --ignore=tests/hbase -m "(hypothesis or seeded) and not spark" -n 2 --timeout 0

stress: $(VENV)/.stamp ## Eight writers that are killed and stopped, five minutes; HOODIE_STRESS_SECONDS, HOODIE_STRESS_PROCESSES, HOODIE_STRESS_SEED
	$(VENV)/bin/python -m tests.stress

stress-jvm: java $(VENV_35)/.stamp $(BUNDLE) ## The same with two JVM writers among the eight, locked by ZooKeeper; HOODIE_STRESS_JVM=… for another number
	HOODIE_STRESS_JVM=$${HOODIE_STRESS_JVM:-2} HOODIE_JVM_BUNDLE=$(abspath $(BUNDLE)) $(VENV_35)/bin/python -m tests.stress

interop: java $(VENV)/.stamp $(VENV_35)/.stamp $(VENV_40)/.stamp $(BUNDLE) $(BUNDLE_V8) $(BUNDLE_V6) $(HBASE) ## JVM Hudi 1.2.0, 1.0.2, 0.15.0 and hudi-rs as judges, a real HBase, the contract tests on Spark 3.5, and the surfaces on Spark 4.0, side by side
	@echo "PySpark 3.5 takes Python 3.8 to 3.11, and 3.12 with setuptools, which has its distutils; this one is $$($(VENV_35)/bin/python -V)"
	@$(VENV_35)/bin/python $(RUN_LANES) \
	    "judges=HOODIE_NEWEST_PYTHON=$(VENV)/bin/python HOODIE_JVM_BUNDLE=$(BUNDLE) $(VENV_35)/bin/python -m pytest tests/interop --ignore=tests/interop/older -n 2 --dist loadfile" \
	    "older judges=HOODIE_JVM_BUNDLE=$(BUNDLE_V8) $(VENV_35)/bin/python -m pytest tests/interop/older/test_releases.py tests/interop/older/test_statistics.py tests/interop/older/test_*_of_1_0.py && HOODIE_JVM_BUNDLE=$(BUNDLE_V6) $(VENV_35)/bin/python -m pytest tests/interop/older/test_releases.py tests/interop/older/test_statistics.py tests/interop/older/test_*_of_0_15.py" \
	    "spark 3.5=$(VENV_35)/bin/python -m pytest tests/contract -m spark" \
	    "spark 4.0=$(VENV_40)/bin/python -m pytest tests/contract -m surface && HOODIE_TEST_SPARK=connect $(VENV_40)/bin/python -m pytest tests/contract -m surface" \
	    "hbase=HOODIE_HBASE_JARS=$(HBASE) $(VENV_35)/bin/python -m pytest tests/hbase"

hbase: java $(VENV_35)/.stamp $(HBASE) ## The tests of the HBase index with a standalone HBase, which Maven or Spark fetches once (110 MB)
	HOODIE_HBASE_JARS=$(HBASE) $(VENV_35)/bin/python -m pytest tests/hbase

bench: java $(VENV)/.stamp-bench $(VENV_35)/.stamp $(BUNDLE) $(HBASE) ## Time this project beside JVM Hudi, delta-rs and plain Parquet (about 100 minutes)
	HOODIE_HBASE_JARS=$(abspath $(HBASE)) HOODIE_JVM_BUNDLE=$(abspath $(BUNDLE)) HOODIE_BENCH_PYTHON_35=$(abspath $(VENV_35))/bin/python $(VENV)/bin/python -m bench --docs $(BENCH)

check: $(VENV)/.stamp ## Format, lint, types, the rules of tests/tidy, and the examples of docstrings
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy
	$(VENV)/bin/python -m pytest -q tests/tidy
	$(VENV)/bin/python -m pytest -q --doctest-modules src/hoodie

site: $(VENV)/.stamp-site ## Build the pages, the API and the commands as a site in .cache/site; a link that leads nowhere fails
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs --quiet build
	@echo "open $(CACHE)/site/index.html"

docs: $(VENV)/.stamp ## Write the generated page of options, and the table of judged steps in docs/migrating.md
	$(VENV)/bin/python scripts/write_options.py docs/options.md
	PYTHONPATH=. $(VENV)/bin/python scripts/write_migrating.py docs/migrating.md

constraints: $(VENV)/.stamp-bench $(VENV)/.stamp-site $(VENV_35)/.stamp $(VENV_40)/.stamp ## Bring the environments to the newest versions, and write these to constraints/; then run the tests
	$(VENV)/bin/python $(UPGRADE) '.[spark,connect,demo,test,dev,bench,site]'
	$(VENV_35)/bin/python $(UPGRADE) '$(EXTRAS)' $(SPARK_35)
	$(VENV_40)/bin/python $(UPGRADE) '$(EXTRAS)' $(SPARK_40)
	$(VENV)/bin/python scripts/write_constraints.py $(TESTED)
	$(VENV_35)/bin/python scripts/write_constraints.py $(TESTED_35)
	$(VENV_40)/bin/python scripts/write_constraints.py $(TESTED_40)
	@touch $(VENV)/.stamp $(VENV)/.stamp-bench $(VENV)/.stamp-site $(VENV_35)/.stamp $(VENV_40)/.stamp

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

$(VENV)/.stamp-bench $(VENV)/.stamp-site: $(VENV)/.stamp-%: $(VENV)/.stamp
	@$(INSTALL) $(VENV)/bin/python $(TESTED) '.[$*]'
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

$(BUNDLE) $(BUNDLE_V8) $(BUNDLE_V6): | $(VENV_35)/.stamp
	@$(VENV_35)/bin/python scripts/fetch_jars.py $@
