# Everything here is a short name for a command that Go alone can run; `make help` lists them.

TOOL := go tool -modfile=hack/tools/go.mod
FUZZTIME ?= 30s
BENCH ?= .

.PHONY: help build image image-iptables deploy demo test test-race test-cluster test-user test-vm fuzz bench bench-docs bench-cluster lint fmt docs ci

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

build: ## bin/sluice
	CGO_ENABLED=0 go build -trimpath -o bin/sluice ./cmd/sluice

# TAG names the image where it is loaded; PUSH=registry/name:tag pushes it too. PLATFORMS is linux/amd64,linux/arm64 by default.
IMAGE = go -C hack/image run . $(if $(TAG),-tag $(TAG)) $(if $(PUSH),-push $(PUSH)) $(if $(PLATFORMS),-platforms $(PLATFORMS))

image: ## bin/image: the container image, for amd64 and arm64, without Docker; TAG, PUSH, PLATFORMS
	$(IMAGE)

image-iptables: ## the same with iptables from Debian, for mode iptables; on Debian
	$(IMAGE) -iptables

deploy: ## the tests of deploy and of the image builder
	go -C deploy/test test -count=1 ./...
	go -C hack/image test -count=1 ./...

demo: ## a throw-away cluster that shows what Sluice does
	go run ./cmd/sluice demo

test: ## all tests; real packets run in namespaces of their own
	go test ./...

test-race: ## the same with the race detector
	go test -race ./...

test-cluster: ## tests in a real cluster, beside upstream kube-proxy; builds both first (run it as root)
	cd test/cluster && go test -p 1 -timeout=60m ./...

test-user: ## the tests that use namespaces, as an ordinary user (run it as root)
	hack/test-as-user

test-vm: ## mode ipvs, and all modes on Debian's kernel, in a virtual machine; it takes qemu-system-x86 and no root
	hack/test-vm

fuzz: ## every fuzz target for FUZZTIME
	hack/fuzz $(FUZZTIME)

bench: ## benchmarks, and tables beside the bare cost of the kernel; no pass or fail on time
	go test -run='^$$' -bench=. -benchmem -timeout=60m ./...

bench-docs: ## write those tables, or BENCH alone, into docs/benchmarks.md
	go test -run='^$$' -bench='$(BENCH)' -timeout=60m ./test/bench -update

bench-cluster: ## the same in a real cluster, beside upstream kube-proxy, in 10 minutes (run it as root); FLAGS=-update writes its tables
	cd test/cluster && go test -run='^$$' -bench=Cluster -benchtime=1x -timeout=60m ./bench $(FLAGS)

lint: ## go vet and golangci-lint, pinned in hack/tools/go.mod
	go vet ./...
	$(TOOL) golangci-lint run

fmt: ## rewrite every file in gofumpt's form
	$(TOOL) gofumpt -w -extra=group_params,clothe_returns cmd deploy hack internal test

docs: ## write the generated parts of the docs again
	go test ./test/conformance -run TestSupportTable -update

ci: ## what continuous integration runs
	.ci/run
