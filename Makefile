# A thin front to scripts/setup.sh and CMake. `make help` lists what there is.

PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
NATIVE ?= ON
FUZZ_SECONDS ?= 60
STRESS_SECONDS ?= 300

.DEFAULT_GOAL := all
.PHONY: all setup demo test test-asan stress fuzz coverage bench install fmt lint clean help

all: setup ## build the library and the program (build/qkv)
	@cmake --preset release -DQKV_NATIVE=$(NATIVE) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >build/configure.log 2>&1 \
	    || { cat build/configure.log; exit 1; }
	@cmake --build build -j $(JOBS)

setup: ## install missing packages, fetch and build ggml (once)
	@QKV_NATIVE=$(NATIVE) scripts/setup.sh
	@mkdir -p build

demo: all ## draw both figures with the default model
	@scripts/demo.sh

test: all ## build everything and run all tests
	@scripts/setup.sh tests
	@scripts/test.sh build

test-asan: setup ## the same tests under AddressSanitizer and UndefinedBehaviorSanitizer
	@scripts/setup.sh tests
	@cmake --preset debug -DQKV_NATIVE=$(NATIVE) >/dev/null
	@cmake --build build-debug -j $(JOBS)
	@scripts/test.sh build-debug

stress: all ## kill sweeps, start two at once, fill disks, mix sessions, for STRESS_SECONDS (300)
	@tests/stress/stress.sh $(STRESS_SECONDS)

fuzz: ## run every fuzzer for FUZZ_SECONDS (60), with clang and both sanitizers
	@QKV_NATIVE=$(NATIVE) scripts/fuzz.sh $(FUZZ_SECONDS)

coverage: setup ## line coverage of the tests (needs gcovr)
	@scripts/setup.sh tests
	@cmake --preset coverage -DQKV_NATIVE=$(NATIVE) >/dev/null
	@cmake --build build-coverage -j $(JOBS)
	@scripts/test.sh build-coverage
	@gcovr -r . build-coverage --filter src/ --print-summary

bench: all ## measure speed and memory, and whether the targets hold
	@build/qkv bench --shape gpt2-124m --shape smollm-135m
	@bench/peers.sh
	@/usr/bin/python3 bench/busy.py build/qkv

install: all ## install below PREFIX (default /usr/local)
	@cmake --install build

fmt: ## format the sources
	@clang-format -i $$(git ls-files -co --exclude-standard '*.c' '*.h')

lint: setup ## clang-format, clang-tidy, cppcheck and shellcheck, no changes made
	@cmake --preset debug -DQKV_NATIVE=$(NATIVE) >/dev/null
	@scripts/lint.sh build-debug

clean: ## remove what was built, except ggml
	@rm -rf build build-debug build-coverage build-fuzz demo

help: ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */\1\t/' | expand -t 14
