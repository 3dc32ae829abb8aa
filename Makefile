# A thin front to scripts/setup.sh and CMake. `make help` lists what there is.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
NATIVE ?= ON
FUZZ_SECONDS ?= 60
STRESS_SECONDS ?= 300
TESTS := OFF

.DEFAULT_GOAL := all
.NOTPARALLEL:
.PHONY: all program setup setup-tests setup-browser configure demo build-tests check test test-real test-browser test-all test-asan \
    test-clang test-tsan stress fuzz coverage build-bench bench install python wheel setup-python fmt lint clean help

# Tests and examples are built by `make test` alone.
all: configure ## build the library and the program (build/qkv)
	@cmake --build build -j $(JOBS) --target qkv qkv_shared man

program: configure
	@cmake --build build -j $(JOBS) --target qkv

configure: setup
	@cmake --preset release -DQKV_NATIVE=$(NATIVE) -DQKV_BUILD_TESTS=$(TESTS) -DCMAKE_INSTALL_PREFIX="$(PREFIX)" >build/configure.log 2>&1 \
	    || { cat build/configure.log; exit 1; }

setup: ## install missing packages, fetch and build ggml (once)
	@QKV_NATIVE=$(NATIVE) scripts/setup.sh
	@mkdir -p build

demo: program ## draw both figures with the default model, or with MODEL=tinyllama
	@scripts/demo.sh "$(MODEL)"

check: build-tests ## build everything and run all but the longest tests, about two minutes on four cores, for use while working
	@scripts/test.sh build -LE 'real|browser|wheel|long'

# Tests with real models, which are fetched, are a set of their own.
test: build-tests ## build everything and run all tests but those with real models, a browser or a wheel for others
	@scripts/test.sh build -LE 'real|browser|wheel'

test-real: build-tests ## fetch three real models and four tokenisers (about 560 MB, once) and compare with transformers
	@scripts/test.sh build -L real

test-browser: setup-browser build-tests ## the explorer and offline figures in headless Chromium, which is installed
	@scripts/test.sh build -L browser

test-all: setup-browser build-tests ## all of these
	@scripts/test.sh build

build-tests: TESTS := ON
build-tests: setup-tests configure
	@cmake --build build -j $(JOBS)

setup-tests:
	@scripts/setup.sh tests

setup-browser:
	@scripts/setup.sh browser

test-asan: setup setup-tests ## the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@cmake --preset debug -DQKV_NATIVE=$(NATIVE) >/dev/null
	@cmake --build build-debug -j $(JOBS)
	@scripts/test.sh build-debug -LE 'real|browser|wheel'

stress: TESTS := ON
stress: setup-tests configure ## kill sweeps, start two at once, fill disks, mix sessions, walk at random, deny memory: twice STRESS_SECONDS (300)
	@cmake --build build -j $(JOBS)
	@tests/stress/stress.sh $(STRESS_SECONDS)
	@QKV=$(CURDIR)/build/qkv MODELS=$(CURDIR)/models VECTORS=$(CURDIR)/tests/vectors \
	    FAILING_MALLOC=$(CURDIR)/build/tests/memory/libfailing_malloc.so \
	    /usr/bin/python3 tests/memory/run.py --seconds $(STRESS_SECONDS)

test-clang: setup setup-tests ## the same tests with everything compiled by clang, warnings being errors
	@scripts/setup.sh fuzz
	@cmake --preset clang -DQKV_NATIVE=$(NATIVE) >/dev/null
	@cmake --build build-clang -j $(JOBS)
	@scripts/test.sh build-clang -LE 'real|browser|wheel'

test-tsan: setup setup-tests ## four threads with sessions on one model, under ThreadSanitizer
	@scripts/tsan.sh -DQKV_NATIVE=$(NATIVE)

fuzz: ## run every fuzzer for FUZZ_SECONDS (60), with clang and both sanitizers
	@QKV_NATIVE=$(NATIVE) scripts/fuzz.sh $(FUZZ_SECONDS)

coverage: setup setup-tests ## line coverage of the tests (needs gcovr)
	@cmake --preset coverage -DQKV_NATIVE=$(NATIVE) >/dev/null
	@cmake --build build-coverage -j $(JOBS)
	@scripts/test.sh build-coverage -LE 'real|browser|wheel'
	@gcovr -r . build-coverage --filter src/ --print-summary

build-bench: configure ## build the program that measures (build/qkv-bench)
	@cmake --build build -j $(JOBS) --target qkv qkv-bench

bench: build-bench ## measure speed and memory, and whether the targets hold
	@build/qkv-bench --shape gpt2-124m --shape smollm-135m
	@bench/peers.sh
	@bench/peers.sh quantised
	@/usr/bin/python3 bench/busy.py build/qkv

install: all ## install below PREFIX (default /usr/local)
	@cmake --install build

python: setup-python all ## build and install the Python package: below PREFIX, or into a virtual environment: VENV=DIR
	@scripts/python.sh install build "$(PREFIX)" "$(VENV)"

wheel: ## build a Python wheel for any x86-64 processor, with a library of its own (build-wheel/wheel)
	@QKV_NATIVE=OFF scripts/setup.sh python
	@mkdir -p build-wheel
	@cmake --preset wheel >build-wheel/configure.log 2>&1 || { cat build-wheel/configure.log; exit 1; }
	@cmake --build build-wheel -j $(JOBS) --target qkv qkv_shared man
	@scripts/python.sh wheel build-wheel build-wheel/wheel

setup-python:
	@scripts/setup.sh python

fmt: ## format the sources
	@clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

lint: setup ## clang-format, clang-tidy, cppcheck and shellcheck, no changes made
	@cmake --preset debug -DQKV_NATIVE=$(NATIVE) >/dev/null
	@scripts/lint.sh build-debug

clean: ## remove what was built, except ggml
	@rm -rf build build-debug build-clang build-tsan build-coverage build-fuzz build-wheel demo

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 14
