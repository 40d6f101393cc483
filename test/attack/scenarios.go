// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package attack

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// scenario is one attack on a collector with a shipped configuration.
type scenario struct {
	name string
	// onlyFull: the short form has a similar attack and leaves this one out.
	onlyFull bool
	// alone: in the short form, no other attack runs at the same time.
	alone bool
	// configuration is a file of config/. settings change it.
	configuration string
	settings      []string
	// attackers attack at the same time.
	attackers func(p places, f form) []Attacker
	// length is the time of the attack. Attackers may end earlier by themselves.
	length func(f form) time.Duration
	// starting is the number of honest agents that start during the attack.
	starting func(f form) int
	// pages are requested every second during the attack: path by port.
	pages map[int]string
	// requests: an honest client sends OTLP requests during the attack.
	requests bool
	// terminate is the part of length after which the test sends SIGTERM; 0: after the attack.
	terminate float64
	// afterwards makes another check after the attack.
	afterwards func(t testing.TB, p places, r *row)
}

// form is the size of attacks: full or short.
type form struct{ full bool }

// of returns the first number in the full form, and the second in the short one.
func (f form) of(full, short int) int {
	if f.full {
		return full
	}
	return short
}

// seconds returns a time as of does, in seconds.
func (f form) seconds(full, short int) time.Duration {
	return time.Duration(f.of(full, short)) * time.Second
}

// Settings that add receivers for honest agents and attackers to configurations without them.
const (
	withBytefrog = `
receivers: {bytefrog: {endpoint: "localhost:8765"}}
service: {pipelines: {traces: {receivers: [otlp, bytefrog]}}}
`
	// Spans of other programs count in the trees.
	withOTLP = `
receivers: {otlp: {protocols: {grpc: {endpoint: "localhost:4320"}}}}
exporters: {flame_graph: {count_spans: true}}
service: {pipelines: {traces: {receivers: [otlp, bytefrog]}}}
`
	// The limit is the one that docs/ocb.md recommends.
	withHTTP = `
receivers: {otlp: {protocols: {http: {endpoint: "localhost:4318", max_request_body_size: 2097152}}}}
`
	// No client of agent_control orders agents to trace there. The test counts the spans of the file.
	withTracingAndFile = `
receivers: {bytefrog: {start: tracing}}
exporters: {otlp_json_file/spans: {path: "${env:CALLBRAID_DATA}/spans.json", create_directory: true}}
service: {pipelines: {traces: {exporters: [flame_graph, otlp_json_file/spans]}}}
`
	// The connector counts all calls, and keeps the traces of honest programs.
	withHonestTraces = `
connectors: {stack_pairing: {keep: {ratio: 0, max_spans_per_second: 0, functions: [{name: '(load\.|unknown\.method#).*'}]}}}
`
	limitOf1GiB = `
processors: {memory_limiter: {limit_mib: 1024, spike_limit_mib: 256}}
`
)

// scenarios returns all attacks.
func scenarios() []scenario {
	names := func(p places, f form) []Attacker {
		return []Attacker{&Names{Endpoint: p.at(bytefrogPort), Agents: f.of(200, 25), Bytes: 60 << 20, Stay: f.seconds(10, 1)}}
	}
	idle := func(port int) func(places, form) []Attacker {
		return func(p places, f form) []Attacker {
			return []Attacker{&Idle{Endpoint: p.at(port), Connections: f.of(10_000, 5_000)}}
		}
	}
	twenty := func(f form) int { return f.of(20, 5) }
	few := func(f form) int { return f.of(5, 1) }
	all := []scenario{
		{
			name: "nested", configuration: "gateway-pair.yaml", requests: true, starting: few,
			settings: []string{withBytefrog, withHTTP}, attackers: func(p places, f form) []Attacker {
				sizes := []int{1, 2, 4, 8, 12, 16, 20}
				if !f.full {
					sizes = []int{1, 20}
				}
				return []Attacker{&Nested{GRPC: p.at(otlpPort), HTTP: p.at(otlpHTTPPort), Sizes: sizes, Pause: 50 * time.Millisecond}}
			},
			length: func(f form) time.Duration { return f.seconds(90, 20) },
		},
		{
			name: "names", configuration: "standalone.yaml", settings: []string{limitOf1GiB}, attackers: names, starting: few,
			length: func(f form) time.Duration { return f.seconds(120, 8) },
			pages:  map[int]string{flamesPort: "/", prometheusPort: "/metrics"},
		},
		{
			name: "idle connections of bytefrog", alone: true, configuration: "standalone.yaml", attackers: idle(bytefrogPort), starting: twenty,
			length: func(f form) time.Duration { return f.seconds(20, 3) },
			pages:  map[int]string{flamesPort: "/", prometheusPort: "/metrics"},
		},
		{
			name: "idle connections of flame_graph", alone: true, configuration: "standalone.yaml", attackers: idle(flamesPort), starting: twenty,
			length: func(f form) time.Duration { return f.seconds(20, 2) },
			pages:  map[int]string{flamesPort: "/", prometheusPort: "/metrics"},
		},
		{
			name: "relay", configuration: "jaeger-prometheus.yaml", starting: few, attackers: func(p places, f form) []Attacker {
				return []Attacker{&Relay{Endpoint: p.at(relayPort), Sessions: f.of(64, 4), Metadata: f.of(16_000_000, 250_000), Packets: f.of(64, 1)}}
			},
			length: func(f form) time.Duration { return f.seconds(60, 4) },
			pages:  map[int]string{prometheusPort: "/metrics"},
		},
		{
			name: "1,000 services", configuration: "standalone.yaml", settings: []string{withOTLP}, attackers: func(p places, _ form) []Attacker {
				return []Attacker{&Services{Endpoint: p.at(otlpPort), Names: 1_000}}
			},
			length: func(f form) time.Duration { return f.seconds(30, 10) },
			pages:  map[int]string{flamesPort: "/"}, afterwards: newcomerIsShown,
		},
		{
			name: "batches", configuration: "gateway-pair.yaml", settings: []string{withBytefrog}, requests: true, starting: few,
			attackers: func(p places, f form) []Attacker {
				return []Attacker{&Batches{Endpoint: p.at(otlpPort), Streams: f.of(1_000_000, 10_000)}}
			},
			length: func(f form) time.Duration { return f.seconds(120, 10) },
		},
		{
			name: "servers", configuration: "jaeger-prometheus.yaml", starting: few,
			settings: []string{"receivers:\n  rbkit: {servers: [" + servers(50, "{publish: \"localhost:%d\"}", rbkitPort+1000) + "]}\n" +
				"  greys: {servers: [" + servers(50, "{endpoint: \"localhost:%d\"}", greysPort+10_000) + "]}\n" +
				"  arthas: {servers: [" + servers(50, "{endpoint: \"http://localhost:%d\"}", arthasPort+10_000) + "], profiles: {period: 2s}}\n" +
				"exporters: {nop: }\nservice: {pipelines: {profiles: {receivers: [arthas], processors: [memory_limiter], exporters: [nop]}}}\n"},
			attackers: func(p places, f form) []Attacker {
				of := func(first int) (endpoints []string) {
					for i := range f.of(50, 5) {
						endpoints = append(endpoints, p.at(first+i))
					}
					return endpoints
				}
				return []Attacker{
					&Rbkit{Endpoints: of(rbkitPort + 1000), Pause: f.seconds(1, 0) + 200*time.Millisecond},
					&Greys{Endpoints: of(greysPort + 10_000), Classes: f.of(20_000, 1_000)},
					&Arthas{Endpoints: of(arthasPort + 10_000), Classes: f.of(20_000, 1_000)},
				}
			},
			length: func(f form) time.Duration { return f.seconds(60, 4) },
			pages:  map[int]string{prometheusPort: "/metrics"},
		},
		{
			name: "calls", alone: true, configuration: "standalone.yaml", settings: []string{withHonestTraces}, starting: few,
			attackers: func(p places, f form) []Attacker {
				// The short form has no agent with long names.
				return []Attacker{&Calls{Endpoint: p.at(bytefrogPort), Agents: f.of(16, 3), Events: f.of(10_000_000, 20_000)}}
			},
			length: func(f form) time.Duration { return f.seconds(90, 10) },
			pages:  map[int]string{flamesPort: "/", prometheusPort: "/metrics"},
		},
		{
			name: "slow readers and writers", configuration: "standalone.yaml", starting: few, attackers: func(p places, f form) []Attacker {
				const request, hello = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ", "\x00"
				return []Attacker{
					&SlowReaders{Endpoint: p.at(flamesPort), Readers: f.of(300, 30), Paths: []string{
						"/services/unknown_service:java/ui/flamegraph", "/services/unknown_service:java/profile.folded", "/services/unknown_service:java/traces.json", "/",
					}},
					&SlowReaders{Endpoint: p.at(prometheusPort), Readers: f.of(300, 30), Paths: []string{"/metrics"}},
					&SlowWriters{Endpoint: p.at(flamesPort), Writers: f.of(1000, 100), Text: request},
					&SlowWriters{Endpoint: p.at(prometheusPort), Writers: f.of(1000, 100), Text: request},
					&SlowWriters{Endpoint: p.at(bytefrogPort), Writers: f.of(1000, 100), Text: hello},
				}
			},
			length: func(f form) time.Duration { return f.seconds(40, 3) },
			pages:  map[int]string{flamesPort: "/", prometheusPort: "/metrics"},
		},
		{
			name: "log flood", configuration: "standalone.yaml", starting: few, attackers: func(p places, f form) []Attacker {
				return []Attacker{&LogFlood{Endpoint: p.at(bytefrogPort), Peers: f.of(50, 5)}}
			},
			length: func(f form) time.Duration { return f.seconds(20, 3) },
			pages:  map[int]string{flamesPort: "/"},
		},
	}
	return append(all, more(names, idle, twenty)...)
}

// more returns the attacks that only the full form has.
func more(names func(places, form) []Attacker, idle func(int) func(places, form) []Attacker, twenty func(form) int) (all []scenario) {
	length := func(f form) time.Duration { return f.seconds(40, 4) }
	for i, at := range []string{"early", "while all are", "at the end"} {
		all = append(all, scenario{
			name: "names, SIGTERM " + at, onlyFull: true, configuration: "standalone.yaml", settings: []string{limitOf1GiB}, attackers: names, length: length,
			terminate: []float64{0.1, 0.5, 0.95}[i],
		})
	}
	for _, of := range []struct {
		name          string
		configuration string
		port          int
	}{
		{"prometheus", "standalone.yaml", prometheusPort},
		{"health_check", "standalone.yaml", healthPort},
		{"agent_control", "control.yaml", controlPort},
		{"lttng_jul", "jaeger-prometheus.yaml", lttngJULPort},
		{"otlp", "gateway-pair.yaml", otlpPort},
	} {
		s := scenario{
			name: "idle connections of " + of.name, onlyFull: true, configuration: of.configuration, attackers: idle(of.port),
			starting: twenty,
			length:   func(f form) time.Duration { return f.seconds(20, 2) },
			pages:    map[int]string{of.port: "/"},
		}
		switch of.port {
		case prometheusPort:
			s.pages[of.port] = "/metrics"
		case controlPort:
			s.settings = []string{withTracingAndFile}
		case lttngJULPort:
			s.pages = map[int]string{prometheusPort: "/metrics"}
		case otlpPort:
			s.settings, s.requests, s.pages = []string{withBytefrog}, true, nil
		}
		all = append(all, s)
	}
	return append(all, scenario{
		name: "100,000 services", onlyFull: true, configuration: "standalone.yaml", settings: []string{withOTLP}, attackers: func(p places, _ form) []Attacker {
			return []Attacker{&Services{Endpoint: p.at(otlpPort), Names: 100_000}}
		},
		length: func(f form) time.Duration { return f.seconds(60, 10) },
		pages:  map[int]string{flamesPort: "/"}, afterwards: newcomerIsShown,
	})
}

// servers returns a list with n entries, each with its own port from first on.
func servers(n int, entry string, first int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(entry, first+i))
	}
	return strings.Join(all, ", ")
}
