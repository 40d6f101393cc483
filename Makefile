# Everything the project does, as targets: `make help`.
# Only Go, make and git are needed; tools are built from internal/tools into bin/tools.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

GO ?= go
# How long `make soak` runs.
SOAK ?= 10m
# How many times the usual load it makes.
SOAK_LOAD ?= 1
# Whether an attacker of each kind is beside it: 1 or 0.
SOAK_ATTACK ?= 1
# Which attacks `make attack` has (a regular expression of their names).
ATTACK_ONLY ?=
# For which platforms `make package` packs.
# Those of Windows have agentctl and agentsim only.
PLATFORMS ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64
# How long each fuzz test runs, e.g. FUZZTIME=30s.
FUZZTIME ?= 5m
# Which benchmarks run (a regular expression), and how often each.
BENCH ?= .
BENCH_COUNT ?= 5
# Which lines of the table `make bench` prints (a regular expression).
BENCH_ONLY ?=
# Which page `make bench` puts its table into: docs/performance.md; empty: none.
BENCH_PAGE ?=
# Another checkout: `make bench` compares the hot paths of both by turns instead.
BENCH_AGAINST ?=
# The Collector before the one of builder-config.yaml, for `make before-test`: the versions of its modules below 1.0, and of the others.
BEFORE ?= v0.158.0 v1.64.0
# Modules that the distribution then lacks, because a module proxy does not have them at that version.
BEFORE_WITHOUT ?= pprofextension
# The Go vulnerability database, for `make vulnerabilities`, or a copy of it: file:///folder.
VULNDB ?= https://vuln.go.dev
# Configuration of `make run`.
CONFIG ?= config/standalone.yaml
# Packages that may have several goroutines: their tests run under the race detector, which makes them many times slower, and so
# with -short. Tests that -short makes smaller also run in full, without the race detector.
RACE_PACKAGES ?= ./receiver/... ./processor/... ./connector/... ./exporter/... ./extension/... ./internal/bytefrog/sim/... ./internal/bytefrog/guard/... ./internal/bytefrog/hq/... \
	./internal/lttng/lttnglive/... ./internal/lttng/lttngagent/... ./internal/lttng/symbols/... ./internal/lttng/process/... ./internal/lttng/sim/... ./internal/rbkit/sim/... ./internal/rbkit/zmtp/... \
	./internal/javamethods/... ./internal/greys/... ./internal/arthas/... ./internal/call/calltree/... ./internal/call/engine/... ./internal/receiverkit/... ./internal/componentkit/...

# Packages below them whose tests start no goroutine, though packages that they import have some: the ends of their paths.
NO_RACE_PACKAGES ?= internal/metadata internal/metadatatest internal/functionmetrics internal/pathprofiles \
	ctffilereceiver/internal/recorded flamegraphexporter/internal/d3flamegraph flamegraphexporter/internal/speedscope \
	perfettoexporter/internal/tracefile \
	rbkitreceiver/internal/counters rbkitreceiver/internal/life rbkitreceiver/internal/origin rbkitreceiver/internal/process \
	rbkitreceiver/internal/profile rbkitreceiver/internal/records componentkit/logline componentkit/sharedexporter \
	javamethods/process lttng/process lttng/sim/capture lttng/sim/usttrace receiverkit/serverhealth receiverkit/sharedreceiver

# A line of Go code that starts a goroutine, or is for several. A test finds no race if no package of the project in it has one.
CONCURRENT := ^[^/"]*(\<go (func|[[:alnum:]_.]+\()|\.Go\(|\<chan\>|\<(sync|atomic|httptest|exec)\.|\.Serve\(|\.Parallel\(|AfterFunc)

# Decoders of data from other programs: also tested where int has 32 bits, because a size of 32 bits may not fit.
NARROW_PACKAGES ?= ./internal/bytefrog ./internal/lttng/ctf ./internal/lttng/lttnglive ./internal/lttng/lttngagent ./internal/rbkit ./internal/rbkit/zmtp ./internal/greys/console ./internal/greys/gp ./internal/arthas

# Where the programs are built; `make package` has a folder for each platform.
BIN ?= $(CURDIR)/bin
COLLECTOR := $(BIN)/otelcol-callbraid
AGENTSIM := $(BIN)/agentsim
AGENTCTL := $(BIN)/agentctl
GUARD := $(BIN)/bytefrog-guard
GATEWAY := $(BIN)/otelcol-callbraid-gateway
SMALL := $(BIN)/otelcol-callbraid-small
TOOLS := $(CURDIR)/bin/tools
DIST := $(CURDIR)/dist
# Of all programs and packages.
VERSION := $(shell sed -n 's/^  version: //p' builder-config.yaml)
# What our own programs are compiled with; ocb writes the collector's version.
LDFLAGS := -s -w -X github.com/callbraid/callbraid/cmd/internal/program.version=$(VERSION)
BACKENDS := $(CURDIR)/bin/backends
DEMO_DATA := $(CURDIR)/callbraid-data/demo
# The folder for screenshots of the tests in a browser.
SCREENSHOTS := $(CURDIR)/screenshots

# Variables that name the binaries for the end-to-end tests and the demo.
BINARIES := CALLBRAID_COLLECTOR=$(COLLECTOR) CALLBRAID_AGENTSIM=$(AGENTSIM) CALLBRAID_AGENTCTL=$(AGENTCTL) CALLBRAID_GUARD=$(GUARD) \
	CALLBRAID_GATEWAY=$(GATEWAY) CALLBRAID_BACKENDS=$(BACKENDS) CALLBRAID_BUILDER=$(TOOLS)/builder

# Everything is pure Go, and compiled without paths of this machine: tests, tools and checks use the same compiled code as
# the distribution. With another flag for one of them, a fresh machine would compile each package once more. Debug information
# is left out, because programs and tests are linked without it: their instructions are the same. Compiler and linker collect no
# garbage until they hold 1 GiB, and most packages need less. Both save processor time of a fresh machine.
COMPILE := -trimpath -gcflags=all=-dwarf=false '-toolexec=env GOGC=off GOMEMLIMIT=1GiB'
export CGO_ENABLED := 0
export GOFLAGS := $(filter-out $(COMPILE),$(shell $(GO) env GOFLAGS)) $(COMPILE)

# `make lint` vets, with all that go vet knows.
TEST := $(GO) test -vet=off
# The number of packages that are tested at the same time, and of parallel tests in each: most of the time, they wait.
AT_ONCE ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 4)
# The number of end-to-end tests that run at the same time, if they call t.Parallel: most of the time, they wait. Tests that
# flood a collector do not call it, and packages run one after the other: beside a flood, honest clients would wait too long.
E2E_AT_ONCE ?= 12

# The race detector needs a C compiler. At the end of each package it waits for accesses of goroutines that still run: a second
# by default. Tests leave none, so a tenth of that is enough.
HAVE_CC := $(shell command -v "$$($(GO) env CC)" 2>/dev/null)
RACE := $(if $(HAVE_CC),CGO_ENABLED=1 GORACE=atexit_sleep_ms=100 $(TEST) -race -short,$(TEST))

# A workspace of the components and the programs, for tests of both under the race detector: with -trimpath, the module of the
# programs alone would compile each package of the components once more, as one of another module.
WORK := $(CURDIR)/bin/go.work

# Go modules with code of the project: components, programs, tests, and tools. test/backends has no code.
MODULES := . cmd test internal/tools

# Programs of 386 run where those of amd64 do, on Linux.
RUNS_386 := $(filter linux/amd64 linux/386,$(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH))

# What binaries are made of: Go files and what those embed.
SOURCES := $(shell find cmd connector converter exporter extension internal processor receiver \
	\( -path internal/tools -o -path test/backends -o -name testdata \) -prune -o \
	-type f ! -name '*_test.go' ! -name '*.md' -print 2>/dev/null)

# Files of the project, new ones included, by pattern.
files = git ls-files --cached --others --exclude-standard --deduplicate -- $(1)

# Packages that are tested with the race detector. The first awk makes "package", or "package.test", of each file with a
# concurrent line, the second one prints each tested package of which the test has one of these.
race = { $(call files,'*.go') | xargs grep -lE '$(CONCURRENT)' | awk -v module="$$($(GO) list -m)" '{ test = sub(/_test.go$$/, "") ? ".test" : ""; \
	sub("/[^/]*$$", ""); print module "/" $$0 test }'; $(GO) list -test -f '{{if eq .Name "main"}}= {{.ImportPath}} {{join .Deps " "}}{{end}}' $(RACE_PACKAGES); } | \
	awk '$$1 != "=" { concurrent[$$1]; next } { for (i = 2; i <= NF; i++) if ($$i in concurrent) { print substr($$2, 1, length($$2) - 5); next } }' | \
	grep -vE "/($$(echo $(NO_RACE_PACKAGES) | tr ' ' '|'))$$"

# Tests that -short makes smaller, as "folder name", or all tests if another function calls testing.Short.
shortened = $(call files,'*_test.go' ':!test' ':!cmd') | xargs awk '/^func / { name = $$2; sub(/\(.*/, "", name) } \
	/testing[.]Short\(\)/ { folder = FILENAME; sub("/[^/]*$$", "", folder); print "./" folder, name ~ /^Test/ ? name : ".*" }' | sort -u

# A recipe that prints its step, and how long the step took, is $(call step,...); ...; $(took)
step = set -e; echo "== $(1)"; began=$$(date +%s)
took = echo "== took $$(($$(date +%s) - began)) s"

.PHONY: help
help: ## Print the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: demo
demo: build ## Replay a captured Maven build into the collector, and show it (DEMO_SCREENSHOT=file.png writes a picture)
	@rm -rf $(DEMO_DATA) && mkdir -p $(DEMO_DATA)
	@$(BINARIES) CALLBRAID_DATA=$(DEMO_DATA) $(AGENTSIM) demo

.PHONY: run
run: build ## Run the collector in the foreground, waiting for real agents (CONFIG=config/standalone.yaml)
	@exec $(COLLECTOR) --config $(CONFIG)

.PHONY: build
build: $(COLLECTOR) $(AGENTSIM) $(AGENTCTL) $(GUARD) ## Build bin/otelcol-callbraid, bin/agentsim, bin/agentctl and bin/bytefrog-guard

.PHONY: gateway
gateway: $(GATEWAY) ## Build bin/otelcol-callbraid-gateway, the distribution for several collectors

.PHONY: small
small: $(SMALL) ## Build bin/otelcol-callbraid-small, the distribution with few components of others

.PHONY: backends
backends: $(BACKENDS)/all-in-one $(BACKENDS)/jaeger ## Build Jaeger 1 and 2, which end-to-end tests query (minutes, the first time)

# While tests of packages wait, the distributions are built for the end-to-end tests.
.PHONY: test
test: ## Run all tests: units first, then the built distribution from end to end
	@$(MAKE) --no-print-directory -j2 unit-test build-beside
	@$(MAKE) --no-print-directory e2e-test

# The lowest priority: tests have bounds of time. go list compiles the end-to-end tests.
.PHONY: build-beside
build-beside:
	@nice -n 19 $(MAKE) --no-print-directory build gateway
	@cd test && nice -n 19 $(GO) list -test -export ./... > /dev/null

# Tests of internal/tools read files outside of their module: go would not notice that these have changed.
.PHONY: unit-test
unit-test: $(WORK) ## Run only the tests of the packages, those with several goroutines under the race detector
	@$(call step,unit tests); race="$$($(race))"; shortened="$$($(shortened))"; \
	$(if $(HAVE_CC),$(TEST) -p $(AT_ONCE) -parallel $(AT_ONCE) -timeout 10m -run "^($$(echo "$$shortened" | cut -d ' ' -f 2 | paste -s -d '|' -))$$" \
		$$(echo "$$shortened" | cut -d ' ' -f 1 | uniq);) \
	$(TEST) -p $(AT_ONCE) -parallel $(AT_ONCE) -timeout 10m $$($(GO) list ./... | grep -vxF "$$race"); \
	cd internal/tools && $(TEST) -count=1 ./...; $(took)
	@$(call step,unit tests of concurrent packages $(if $(HAVE_CC),with,WITHOUT) the race detector$(if $(HAVE_CC),,: install gcc to have it)); \
	GOWORK=$(WORK) $(RACE) -p $(AT_ONCE) -parallel $(AT_ONCE) -timeout 10m $$($(race)) ./cmd/...; $(took)
	@$(call step,unit tests of decoders where int has 32 bits$(if $(RUNS_386),,: skipped since this machine runs no programs of 386)); \
	$(if $(RUNS_386),GOARCH=386 $(TEST) -p $(AT_ONCE) -parallel $(AT_ONCE) -timeout 10m $(NARROW_PACKAGES)); $(took)

.PHONY: e2e-test
e2e-test: build gateway ## Run only the end-to-end tests, against the built distributions (E2E_ONLY=Greys)
	@$(call step,end-to-end tests); cd test; \
	$(BINARIES) CALLBRAID_SCREENSHOTS=$(SCREENSHOTS) $(TEST) -count=1 -p 1 -parallel $(E2E_AT_ONCE) -timeout 25m -run '$(E2E_ONLY)' ./...; $(took)

# The tests that take the documentation's pictures. A test checks the list.
PICTURE_TESTS := ^(TestACommandThatPausesAProgramAsksFirst|TestTheDemoWritesAPictureOfAMavenBuild|TestTheFlameGraphOfAMavenBuild|TestThePageOfAServiceFindsAFunctionThatBecameSlow|TestThePageOfAgentsKeepsItselfCurrent|TestThePagesOfAgentsFitAPhone)$$

.PHONY: pictures
pictures: build ## Take the pictures in docs/pictures again, with Chromium (each is checked to be new)
	@rm -f docs/pictures/*.png; cd test; \
	$(BINARIES) CALLBRAID_PICTURES=$(CURDIR)/docs/pictures CALLBRAID_REQUIRE_PEERS=1 $(TEST) -count=1 -parallel $(E2E_AT_ONCE) -timeout 25m -run '$(PICTURE_TESTS)' . \
		|| { echo "git checkout docs/pictures restores the pictures"; exit 1; }
	@cd test; $(TEST) -count=1 -run '^TestThePagesOfPicturesShowThoseThatTestsTake$$' .

# The versions of the Collector in the manifest, as in BEFORE.
NOW = $(shell sed -n -e 's|.*collector/receiver/otlpreceiver ||p' -e 's|.*collector/confmap/provider/envprovider ||p' builder-config.yaml)

# What `make before-test` shows of that distribution: it has the data of each tracer's captures and simulated programs, and accepts
# the shipped configurations.
BEFORE_TESTS := ^(TestCapturesBecomeTheSpansOfTheReference|TestSessionsOfARelayDaemonAreRead|TestARecordingOfLTTngHasTheCallsOfItsLiveSession|TestTheSimulatorPlaysLogAgents|TestRbkitServersOfBothDialectsAreReceived|TestGreysSumsEqualTheServers|TestArthasSumsEqualTheServers|TestTheDistributionAcceptsTheShippedConfigurations)$$

.PHONY: before-test
before-test: build ## Build the distribution with the Collector before this one, in build-before, and play the captures into it (BEFORE="v0.158.0 v1.64.0")
	@$(call step,build with the Collector $(BEFORE) in place of $(NOW)); rm -rf build-before; mkdir build-before; \
	$(call files,.) | tar --create --ignore-failed-read --files-from=- | tar --extract --directory=build-before; cd build-before; \
	sed -i $(foreach n,1 2,-e 's/ $(word $(n),$(NOW))$$/ $(word $(n),$(BEFORE))/' -e 's/ $(word $(n),$(NOW)) / $(word $(n),$(BEFORE)) /') \
		-e '/ gomod: .*\/\($(BEFORE_WITHOUT)\) /d' go.mod internal/tools/go.mod builder-config.yaml; \
	$(GO) -C internal/tools mod tidy; \
	$(MAKE) --no-print-directory BIN=$(BIN)/before $(BIN)/before/otelcol-callbraid; $(took)
	@$(call step,captures and simulated programs with the Collector before); cd test; \
	$(BINARIES) CALLBRAID_COLLECTOR=$(BIN)/before/otelcol-callbraid CALLBRAID_GATEWAY= CALLBRAID_LACKS_PPROF=1 $(TEST) -count=1 -parallel $(E2E_AT_ONCE) -timeout 15m -run '$(BEFORE_TESTS)' .; $(took)

.PHONY: race
race: $(WORK) ## Run the tests with several goroutines under the race detector at full size, as before a release (needs a C compiler)
	@GOWORK=$(WORK) CGO_ENABLED=1 $(TEST) -race -p $(AT_ONCE) -parallel $(AT_ONCE) -timeout 60m $$($(race)) ./cmd/...

.PHONY: bench
bench: $(if $(BENCH_AGAINST),,build gateway) ## Measure the project's claims, as ratios, or the hot paths beside another checkout (BENCH_COUNT=5, BENCH_ONLY=LTTng, BENCH_AGAINST=folder)
	@$(GO) -C test build -o $(BIN)/bench ./bench
	@$(BINARIES) $(BIN)/bench -count $(BENCH_COUNT) -only '$(BENCH_ONLY)' -page '$(BENCH_PAGE)' $(if $(BENCH_AGAINST),-against '$(BENCH_AGAINST)')

.PHONY: bench-all
bench-all: build gateway $(TOOLS)/benchstat ## Run all benchmarks and sum them up with benchstat (BENCH=., BENCH_COUNT=5)
	@{ for module in . test; do (cd $$module && $(BINARIES) $(GO) test -run '^$$' -bench '$(BENCH)' -benchmem -count $(BENCH_COUNT) -timeout 60m ./...) \
		|| echo "FAIL: a benchmark failed"; done; } | tee bench-last.txt
	@$(TOOLS)/benchstat bench-last.txt | sed -e 's/ ± ∞ ¹//' -e '/^¹ need/d'
	@! grep -q '^FAIL' bench-last.txt

.PHONY: fuzz
fuzz: ## Run every fuzz test in turn (FUZZTIME=5m for each)
	@set -e; mkdir -p bin; $(GO) test -list '^Fuzz' ./... > bin/fuzz-list.txt; \
	awk '/^Fuzz/ { name[++n] = $$1 } /^ok/ { for (i = 1; i <= n; i++) print name[i], $$2; n = 0 }' bin/fuzz-list.txt | \
	{ found=0; while read -r name package; do \
		echo "== $$package $$name for $(FUZZTIME)"; \
		$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x "$$package" < /dev/null || found=1; \
	done; exit $$found; }

# What mdatagen 0.159 makes of events imports a package that only resource attributes need.
without_unused = { logs=internal/metadata/generated_logs.go; ! test -f $$logs || grep -q 'filter\.' $$logs || \
	sed -i -e '/collector\/filter"$$/d' $$logs; }

.PHONY: generate
generate: $(TOOLS)/mdatagen ## Generate files from metadata.yaml files and go:generate lines
	@set -e; for f in $$($(call files,'*metadata.yaml')); do \
		echo "mdatagen $$f"; \
		(cd "$$(dirname "$$f")" && $(TOOLS)/mdatagen metadata.yaml && $(without_unused)); \
	done
	@set -e; for module in $(MODULES); do (cd $$module && PATH="$(TOOLS):$$PATH" $(GO) generate -skip mdatagen ./...); done

.PHONY: lint
lint: $(TOOLS)/staticcheck $(TOOLS)/actionlint ## Check format, licence headers, plain words, module files, go vet (for 64 and 32 bits) and staticcheck
	@echo "gofmt"; set -e; \
	bad="$$($(call files,'*.go') | xargs gofmt -s -l)"; \
	if [ -n "$$bad" ]; then printf 'Not formatted, run gofmt -s -w on:\n%s\n' "$$bad"; exit 1; fi
	@echo "licence headers"; \
	bad="$$($(call files,'*.go') | xargs grep -L -E 'SPDX-License-Identifier: Apache-2.0|^// Code generated .* DO NOT EDIT')"; \
	if [ -n "$$bad" ]; then printf 'Without "SPDX-License-Identifier: Apache-2.0":\n%s\n' "$$bad"; exit 1; fi
	@echo "plain words"; cd internal/tools && $(GO) run ./plainwords $(CURDIR)
	@echo "workflows"; $(TOOLS)/actionlint .github/workflows/*.yml
	@echo "go mod tidy"; set -e; for module in $(MODULES) test/backends; do (cd $$module && $(GO) mod tidy -diff); done
	@set -e; for module in $(MODULES); do echo "go vet in $$module"; (cd $$module && $(GO) vet ./...); done
	@set -e; for module in . cmd test; do echo "go vet in $$module, where int has 32 bits"; (cd $$module && GOARCH=386 $(GO) vet ./...); done
	@set -e; for module in $(MODULES); do echo "staticcheck in $$module"; (cd $$module && $(TOOLS)/staticcheck ./...); done

# Of all files that are packed, and of the man pages, whenever and wherever they are made.
package: export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct)
package: export TZ := UTC

.PHONY: package
package: build $(TOOLS)/release ## Pack dist/: deb, rpm, tar.gz and zip with SBOM and checksums (PLATFORMS="linux/amd64 darwin/arm64")
	@mkdir -p $(DIST) && find $(DIST) -mindepth 1 -maxdepth 1 ! -name bin -exec rm -rf {} +
	@set -e; for p in $(AGENTSIM) $(AGENTCTL) $(GUARD); do $$p man $(DIST)/man; $$p completions $(DIST)/completions; done; \
	cp packaging/*.1 $(DIST)/man/; mkdir -p $(DIST)/data
	@set -e; for p in $(PLATFORMS); do \
		echo "Building for $$p"; case $$p in windows/*) programs="agentctl agentsim";; *) programs="otelcol-callbraid agentsim agentctl bytefrog-guard";; esac; \
		bin=$(DIST)/bin/$${p%/*}_$${p#*/}; GOOS=$${p%/*} GOARCH=$${p#*/} $(MAKE) --no-print-directory BIN=$$bin $$(printf "$$bin/%s " $$programs); \
	done
	@$(TOOLS)/release -dist $(DIST) -version $(VERSION) $(PLATFORMS)

# The chapter of the changelog for the version, or the one of the next version: without its heading.
changes = awk -v version='[$(VERSION)]' '/^\#\# / { if (found) exit; found = $$2 == version; next } found' CHANGELOG.md

.PHONY: release-notes
release-notes: ## Print the changes of the version that builder-config.yaml names
	@$(changes)

.PHONY: check-release
check-release: ## Check that a tag, the version and the changelog agree (TAG=v0.1.0)
	@if [ "$(TAG)" != "v$(VERSION)" ]; then echo "expected the tag v$(VERSION), the version in builder-config.yaml, got $(TAG)"; exit 1; fi
	@if [ -z "$$($(changes))" ]; then echo "CHANGELOG.md: expected a chapter ## [$(VERSION)] with changes"; exit 1; fi
	@cd internal/tools && $(GO) run ./setversion -check $(CURDIR)

.PHONY: set-version
set-version: ## Write a version into every file that has it, and its chapter into the changelog (TO=0.1.0)
	@cd internal/tools && $(GO) run ./setversion -to '$(TO)' $(CURDIR) && $(GO) generate ./manifests

# What govulncheck ends with if it found a vulnerability.
FOUND := 3

.PHONY: vulnerabilities
vulnerabilities: $(TOOLS)/govulncheck build/.generated build-gateway/.generated ## Look for known vulnerabilities in code that the programs can reach (VULNDB=file:///copy/of/the/database)
	@found=0; for module in . cmd build build-gateway; do \
		echo "== govulncheck in $$module"; $(TOOLS)/govulncheck -db $(VULNDB) -C $$module ./... || case $$? in \
		$(FOUND)) found=1;; \
		*) echo "Nothing is known about vulnerabilities: govulncheck did not end its search. It needs the Go vulnerability database at $(VULNDB)."; \
			echo "If this machine cannot reach it, name a folder with a copy of it: make vulnerabilities VULNDB=file:///folder"; exit 1;; esac; \
	done; exit $$found

.PHONY: package-test
package-test: package ## Install the packages of linux/amd64 in a clean Debian and run them there (as root)
	@$(call step,packages); rm -f $(BIN)/package-times.txt; cd test; \
	CALLBRAID_DIST=$(DIST) CALLBRAID_TIMES=$(BIN)/package-times.txt $(BINARIES) $(TEST) -count=1 -timeout 20m ./install; $(took)
	@if [ -f $(BIN)/package-times.txt ]; then echo "== from installation to removal, in a clean Debian"; cat $(BIN)/package-times.txt; fi

.PHONY: soak
soak: build ## Run all receivers under load and faults, and report the fate of all sent data (SOAK=10m, SOAK_LOAD=1, SOAK_ATTACK=1; the disk is filled as root only)
	@cd test && $(BINARIES) CALLBRAID_SOAK=$(SOAK) CALLBRAID_SOAK_LOAD=$(SOAK_LOAD) CALLBRAID_SOAK_ATTACK=$(SOAK_ATTACK) $(TEST) -count=1 -v -run TestSoak -timeout 0 ./soak

.PHONY: attack
attack: build ## Play hostile peers against the shipped configurations, and report their cost (ATTACK_ONLY=names)
	@cd test && $(BINARIES) CALLBRAID_ATTACK=full CALLBRAID_ATTACK_ONLY='$(ATTACK_ONLY)' $(TEST) -count=1 -v -run TestAttack -timeout 0 ./attack

.PHONY: clean
clean: ## Remove the files that make built and the collector wrote
	rm -rf bin build build-before build-gateway build-small dist callbraid-data screenshots

# The distribution, the one for several collectors, and the small one. A change of the manifest or the module
# generates their main packages again, which takes long. The Go build cache speeds up compiling.
build/.generated: builder-config.yaml
build-gateway/.generated: builder-config-gateway.yaml
build-small/.generated: builder-config-small.yaml
build/.generated build-gateway/.generated build-small/.generated: %/.generated: go.mod go.sum $(TOOLS)/builder
	@echo "Generating the distribution in $*"
	@CGO_ENABLED=0 $(TOOLS)/builder --config $(patsubst build%,builder-config%.yaml,$*) --skip-compilation
	@touch $@

$(COLLECTOR): build/.generated
$(GATEWAY): build-gateway/.generated
$(SMALL): build-small/.generated
$(COLLECTOR) $(GATEWAY) $(SMALL): $(SOURCES)
	@echo "Compiling bin/$(@F)"
	@cd $(dir $(filter %/.generated,$^)) && CGO_ENABLED=0 $(GO) build -mod=mod -trimpath -ldflags '-s -w' -o $@ .
	@touch $@

$(AGENTSIM): cmd/go.mod cmd/go.sum $(SOURCES)
	@echo "Compiling bin/$(@F)"
	@$(GO) -C cmd build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./agentsim
	@touch $@

$(AGENTCTL): cmd/go.mod cmd/go.sum $(SOURCES)
	@echo "Compiling bin/$(@F)"
	@$(GO) -C cmd build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./agentctl
	@touch $@

$(GUARD): cmd/go.mod cmd/go.sum $(SOURCES)
	@echo "Compiling bin/$(@F)"
	@$(GO) -C cmd build -trimpath -ldflags '$(LDFLAGS)' -o $@ ./bytefrog-guard
	@touch $@

$(WORK): go.mod
	@mkdir -p $(@D) && printf '%s\n\nuse (\n\t..\n\t../cmd\n)\n' "$$(grep '^go ' go.mod)" > $@

# Tools, each at the version of internal/tools/go.mod.
$(TOOLS)/builder: PACKAGE := go.opentelemetry.io/collector/cmd/builder
$(TOOLS)/mdatagen: PACKAGE := go.opentelemetry.io/collector/cmd/mdatagen
$(TOOLS)/staticcheck: PACKAGE := honnef.co/go/tools/cmd/staticcheck
$(TOOLS)/actionlint: PACKAGE := github.com/rhysd/actionlint/cmd/actionlint
$(TOOLS)/govulncheck: PACKAGE := golang.org/x/vuln/cmd/govulncheck
$(TOOLS)/benchstat: PACKAGE := golang.org/x/perf/cmd/benchstat
$(TOOLS)/release: PACKAGE := ./release
$(TOOLS)/release: $(wildcard internal/tools/release/*.go)
$(TOOLS)/%: internal/tools/go.mod internal/tools/go.sum
	@echo "Building bin/tools/$*"
	@cd internal/tools && CGO_ENABLED=0 $(GO) build -o $@ $(PACKAGE)
	@touch $@

# Jaeger, at the version of test/backends/go.mod. Its module has no pages in it, only the APIs behind them.
$(BACKENDS)/%: test/backends/go.mod test/backends/go.sum
	@echo "Building bin/backends/$*"
	@cd test/backends && CGO_ENABLED=0 $(GO) build -trimpath -ldflags '-s -w' -o $@ github.com/jaegertracing/jaeger/cmd/$*
	@touch $@
