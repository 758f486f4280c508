# GNU make 3.81 or newer and a POSIX shell. `make` alone lists the targets.

# Tests on a real Postgres: the one at FILA_TEST_DATABASE_URL, else a container, else local binaries.
WITH_POSTGRES := go run ./internal/pgtest/server --
TOOL          := go tool -modfile=tools.mod

VERSION = $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  = $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS = -X main.version=$(VERSION) -X main.commit=$(COMMIT)

# The race detector needs a C compiler; without one the suite still runs.
RACE = $(shell command -v "$$(go env CC)" >/dev/null 2>&1 && echo -race)

# What the suite runs on; PKG=./internal/turn/... and ARGS='-run Gate -v' narrow it.
PKG  ?= ./...
ARGS ?=

# The version is passed by hand above. The stamping by go itself fails in a checkout that another user owns.
export GOFLAGS += -buildvcs=false

.DEFAULT_GOAL := help

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

.PHONY: build
build: ## Build bin/fila
	@test -x bin/fila || echo "Building bin/fila; the first time fetches the modules and takes a minute or two."
	@mkdir -p bin
	@go build -trimpath -ldflags '$(LDFLAGS)' -o bin/fila ./cmd/fila

.PHONY: run
run: build ## Serve two example clinics with a demo agent on http://127.0.0.1:8080; Ctrl-C ends it
	bin/fila serve --config config/fila.yaml

.PHONY: test
test: ## Run the whole suite on a real Postgres (PKG= and ARGS= narrow it)
	@test -n "$(RACE)" || echo "No C compiler found: the tests run without the race detector."
	$(WITH_POSTGRES) go test $(RACE) -shuffle=on $(ARGS) $(PKG)

.PHONY: test-docker
test-docker: ## Check that tests find a Postgres in a container; needs a Docker engine
	FILA_TEST_DOCKER=1 go test -count=1 -v -run TestContainer ./internal/pgtest/server

.PHONY: lint
lint: ## Run the linters and check the import rules
	@echo "golangci-lint; the first time it is built, which takes about two minutes."
	@$(TOOL) golangci-lint run --allow-parallel-runners ./...
	@if command -v shellcheck >/dev/null 2>&1; then shellcheck .ci/*; else echo "shellcheck is not installed: the scripts in .ci were not looked at."; fi

.PHONY: fmt
fmt: ## Format the code
	$(TOOL) gofumpt -w cmd config internal migrations sql

.PHONY: schema
schema: build ## Dump the migrated schema to docs/schema.sql
	$(WITH_POSTGRES) .ci/schema write

.PHONY: verify
verify: build ## Check that go.mod is tidy, the code formatted and docs/schema.sql true
	go mod tidy -diff
	@unformatted=$$($(TOOL) gofumpt -l cmd config internal migrations sql); \
	if [ -n "$$unformatted" ]; then echo "Not formatted, run make fmt:"; echo "$$unformatted"; exit 1; fi
	$(WITH_POSTGRES) .ci/schema check

.PHONY: vuln
vuln: ## Look for known vulnerabilities in the modules; needs the network
	$(TOOL) govulncheck ./...

.PHONY: bench
bench: build ## Measure the service beside pgbench, a no-op and the design that it replaces (ARGS= of fila bench)
	bin/fila bench --baseline $(ARGS)

.PHONY: benchmarks
benchmarks: ## Run the Go benchmarks: lateness at rest, commits a second, bytes a waiting conversation (PKG= and ARGS= narrow it)
	$(WITH_POSTGRES) go test -run '^$$' -bench . $(ARGS) $(PKG)

.PHONY: clean
clean: ## Remove what was built; .fila, the data of make run, is kept
	rm -rf bin coverage.out
