# `make help` lists the targets. Needed: Go (the version in go.mod), make, git and bash. What a target needs
# beyond that it builds from pinned sources (hack/tools) or, as root on Debian, installs (hack/need.sh).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := all
MAKEFLAGS += --no-print-directory

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
DATA    ?= ./data
IMAGE   ?= felix:$(VERSION)
LDFLAGS := -s -w -X main.version=$(VERSION)

# Packages whose tests need neither a long time nor a program from outside.
PACKAGES = $$(go list ./... | grep -v -E '/test/(chaos$$|(conformance|e2e)(/|$$))')

##@ Build

.PHONY: all
all: build ## Build everything (the default)

.PHONY: build
build: ## Build bin/felix, a static binary stamped with the version
	CGO_ENABLED=0 go build -buildvcs=false -trimpath -ldflags '$(LDFLAGS)' -o bin/felix ./cmd/felix

.PHONY: run
run: build ## Show it: a broker under ./data, a stream, a publisher and two readers (FOR=10s ends it by itself)
	bin/felix demo hello --data $(DATA) $(if $(FOR),--for $(FOR))

.PHONY: run-cluster
run-cluster: build ## Show it: three brokers, the leader is killed under load, nothing is lost (FOR=1m, KILLS=1)
	bin/felix demo failover $(if $(FOR),--for $(FOR)) $(if $(KILLS),--kills $(KILLS))

.PHONY: image
image: ## Build the container image (needs a container engine)
	@engine=$$(command -v docker || command -v podman || true); \
	if [ -z "$$engine" ]; then \
		echo "make image needs docker or podman, and neither is installed" >&2; exit 1; fi; \
	if ! "$$engine" info >/dev/null 2>&1; then \
		echo "make image needs a running engine: '$$engine info' fails, so there is none on this machine" >&2; exit 1; fi; \
	"$$engine" build --build-arg VERSION=$(VERSION) -t $(IMAGE) .

.PHONY: clean
clean: ## Remove what was built (not ./data: that is yours)
	rm -rf bin dist .venv

##@ Test

.PHONY: test
test: ## Unit and integration tests with the race detector, house rules included
	hack/test.sh -timeout 10m $(PACKAGES)

.PHONY: test-short
test-short: ## The quick ones, without the race detector
	RACE=0 hack/test.sh -short -timeout 5m $(PACKAGES)

.PHONY: test-race
test-race: ## Three times in random order, to find what depends on luck
	hack/test.sh -count=3 -shuffle=on -timeout 30m $(PACKAGES)

.PHONY: test-fault
test-fault: ## The tests that hold reported faults (ids B01...), several times and with more random cases
	selection=$$(go run ./hack/faults -packages); test -n "$$selection"; \
	RAPID_CHECKS=$${RAPID_CHECKS:-1000} hack/test.sh -count=3 -shuffle=on -timeout 30m $$selection

.PHONY: test-chaos
test-chaos: ## Brokers and clusters that are killed, cut off and disturbed under load (CHAOS_FOR=20m of seeds, FELIX_CHAOS_ROUNDS=50)
	RACE=0 hack/test.sh -tags chaos -count=1 -timeout 120m ./test/chaos/...

.PHONY: conformance
conformance: build ## The published Python client against our broker, and against a cluster of three
	hack/need.sh python
	test/conformance/run.sh

.PHONY: fuzz
fuzz: ## Every fuzz target for a short while (FUZZTIME, default 10s each)
	hack/fuzz.sh

.PHONY: bench
bench: ## Go benchmarks of the hot paths (COUNT, OLD=file to compare with)
	hack/bench.sh

##@ Source

.PHONY: fmt
fmt: ## Format (gofumpt, import groups)
	lint=$$(hack/tool.sh golangci-lint); "$$lint" fmt

.PHONY: lint
lint: ## golangci-lint with the list in .golangci.yml
	lint=$$(hack/tool.sh golangci-lint); "$$lint" run ./...

.PHONY: generate
generate: ## Regenerate generated code
	go generate ./...

.PHONY: verify
verify: ## Everything that can be checked without running: generated, tidy, vet, house, format, lint
	hack/verify.sh

.PHONY: sbom
sbom: ## List what the binary is made of (dist/felix.modules.txt)
	mkdir -p dist
	$(MAKE) build
	go version -m bin/felix > dist/felix.modules.txt

##@ Other

.PHONY: tools
tools: ## Build the pinned tools now
	for tool in golangci-lint gofumpt gotestsum benchstat; do hack/tool.sh $$tool; done

.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} \
		/^##@/ {printf "\n%s\n", substr($$0, 5)} \
		/^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
