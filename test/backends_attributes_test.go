// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/ptrace"
)

// All attributes of each tracer's spans and their resources in Jaeger: a missing or additional
// attribute, or another type or value, is a difference.

// looks are regular expressions for spans and resources of a tracer, as lookOf and attributesOf
// describe them. Each has to match at least one.
type looks struct{ resources, spans []string }

// Attributes that several looks have.
const (
	anUUID = `"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"`

	ofBytefrog = `bytefrog.method.signature="demo/[^"]+;\d+;\([^"]+" callbraid.sequence=\d+ `
	inBytefrog = ` thread.id=[0-3] thread.name="(main|worker-\d(-draining)?|http-\d)"`

	ofJava = `callbraid.sequence=\d+ code.function.name="com.example.JulDemo.%[1]s" lttng.function="com.example.JulDemo.%[1]s" lttng.jul.arguments="%[2]s" `
	inJava = `thread.id=(1[5-9]|2[0-3]) thread.name="worker-[0-2]"`

	ofGreys      = `code.function.name="com.example.shop.Service\d.operation\d" `
	inGreys      = `thread.id=2[0-3] thread.name="worker-[0-3]"`
	ofArthas     = `code.function.name="com.example.stock.Service\d.operation\d" `
	leftByGreys  = `error.type="com.example.shop.OutOfStock" `
	thrownInside = `; exception exception.type="com.example.shop.OutOfStock"`
)

// wantedLooks are those of the simulated tracers.
func wantedLooks(lives playedMethodsOf) map[string]looks {
	return map[string]looks{
		"bytefrog": {
			resources: []string{`service.instance.id=` + anUUID + ` service.name="unknown_service:java"`},
			spans: []string{
				`Internal Unset ` + ofBytefrog + `code.function.name="demo.[^"]+" code.line.number=[1-9]\d*` + inBytefrog,
				`Internal Unset ` + ofBytefrog + `callbraid.truncated="suspended" code.function.name="demo.[^"]+"` + inBytefrog,
				`Internal Error ` + ofBytefrog + `code.function.name="demo.Loop.reject" error.type="java.lang.UnsupportedOperationException"` + inBytefrog +
					`; exception code.line.number=14 exception.type="java.lang.UnsupportedOperationException"`,
				`Internal Error ` + ofBytefrog + `code.function.name="demo.Shop\$Order.fail" error.type="java.lang.IllegalStateException"` + inBytefrog +
					`; exception code.line.number=22 exception.type="java.lang.IllegalStateException"`,
				`Internal Error ` + ofBytefrog + `code.function.name="demo.Shop\$Order.throwIt" error.type="java.lang.IllegalStateException"` + inBytefrog +
					`; exception code.line.number=23 exception.type="java.lang.IllegalStateException"`,
				`Internal Error ` + ofBytefrog + `code.function.name="demo.Shop\$Order.process" error.type="java.lang.IllegalStateException"` + inBytefrog +
					`; exception exception.type="java.lang.IllegalStateException"`,
			},
		},
		"lttnglive": {
			resources: []string{
				`host.name="vm" lttng.session.name="cygok" process.pid=18200 service.instance.id=` + anUUID + ` service.name="unknown_service:cyg"`,
				`host.name="vm" lttng.session.name="jul1" process.pid=11350 service.instance.id=` + anUUID + ` service.name="unknown_service:java"`,
			},
			spans: []string{
				`Internal Unset callbraid.sequence=\d+ code.function.name="cyg\+0x1[0-9a-f]{3}" lttng.function="cyg\+0x1[0-9a-f]{3}" thread.id=18(200|30[7-9]) thread.name="cyg"`,
				`Internal Unset ` + fmt.Sprintf(ofJava, "fib", `\d`) + `lttng.jul.return_value="\d" ` + inJava,
				`Internal Unset ` + fmt.Sprintf(ofJava, "query", `select \d`) + inJava,
				`Internal Unset ` + fmt.Sprintf(ofJava, "work", `\d [a-z]`) + inJava,
				`Internal Error ` + fmt.Sprintf(ofJava, "query", `bad \d`) + inJava + `; exception`,
			},
		},
		"rbkit": {
			resources: []string{`process.pid=18285 process.runtime.name="ruby" process.working_directory="/opt/d/rbkit-exp" rbkit.process.name="prog.rb" ` +
				`rbkit.protocol.version="2.1" rbkit.server.version="0.1.10" service.instance.id="[^":]+:\d+" service.name="prog.rb"`},
			spans: []string{`Internal Unset`},
		},
		"arthas": looksOfArthas(lives.arthas[0].ProcessID),
		"greys": {
			resources: []string{`greys.server.protocol="console" greys.server.version="1.7.6.6" process.pid=` + fmt.Sprint(lives.greys[0].ProcessID) +
				` service.instance.id="[^":]+:\d+" service.name="unknown_service:java"`},
			spans: []string{
				`Internal Unset ` + ofGreys + inGreys,
				`Internal Unset ` + ofGreys + `code.line.number=[1-9]\d* ` + inGreys,
				`Internal Error ` + ofGreys + leftByGreys + inGreys + thrownInside,
				`Internal Error ` + ofGreys + `code.line.number=[1-9]\d* ` + leftByGreys + inGreys + thrownInside,
			},
		},
	}
}

// looksOfArthas are the looks of the call trees of an Arthas server. Every method of a tree is traced, so each exception is known.
func looksOfArthas(pid int64) looks {
	const (
		failed   = `error.type="com.example.shop.OutOfStock" `
		thrown   = `; exception exception.message="none left" exception.type="com.example.shop.OutOfStock"`
		repeated = `callbraid.repeated.calls=\d+ callbraid.repeated.greatest=\d+ callbraid.repeated.least=\d+ callbraid.repeated.total=\d+ `
		line     = `code.line.number=[1-9]\d* `
	)
	return looks{
		resources: []string{`arthas.server.version="4.3.4" host.name="simulated" process.pid=` + fmt.Sprint(pid) +
			` service.instance.id="[^":]+:\d+" service.name="unknown_service:java"`},
		spans: []string{
			`Internal Unset ` + ofArthas + inGreys,
			`Internal Unset arthas.time.estimated=true ` + ofArthas + line + inGreys,
			`Internal Unset arthas.time.estimated=true ` + repeated + ofArthas + line + inGreys,
			`Internal Error none left ` + ofArthas + failed + inGreys + thrown,
			`Internal Error none left arthas.time.estimated=true (` + repeated + `)?` + ofArthas + line + failed + inGreys + thrown,
		},
	}
}

// checkLooks compares all attributes in the data of each tracer with the expected ones.
func (s *jaegerSpans) checkLooks(t *testing.T, lives playedMethodsOf) {
	for tracer, want := range wantedLooks(lives) {
		var spans []string
		for _, span := range s.byTracer[receiverOf(tracer+"receiver")] {
			spans = append(spans, lookOf(span))
		}
		compareLooks(t, tracer+": a span", want.spans, spans)
		compareLooks(t, tracer+": a resource", want.resources, slices.Collect(maps.Keys(s.resources[receiverOf(tracer+"receiver")])))
	}
}

// compareLooks reports looks that match no wanted one, and wanted ones without a match.
func compareLooks(t *testing.T, what string, want, got []string) {
	t.Helper()
	var patterns []*regexp.Regexp
	for _, pattern := range want {
		patterns = append(patterns, regexp.MustCompile("^"+pattern+"$"))
	}
	found := make([]bool, len(want))
	var wrong differences
	for _, look := range got {
		i := slices.IndexFunc(patterns, func(p *regexp.Regexp) bool { return p.MatchString(look) })
		if i < 0 {
			wrong.add("%s: expected none like %s", what, look)
			continue
		}
		found[i] = true
	}
	for i, pattern := range want {
		if !found[i] {
			wrong.add("%s: expected one like %s, got none", what, pattern)
		}
	}
	wrong.report(t, "attributes")
}

// lookOf is all of a span but its name, IDs and times: kind, status, attributes, and events and
// links with theirs.
func lookOf(s ptrace.Span) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s", s.Kind(), s.Status().Code())
	add := func(text string) {
		if text != "" {
			b.WriteString(" " + text)
		}
	}
	add(s.Status().Message())
	add(attributesOf(s.Attributes()))
	for _, e := range s.Events().All() {
		b.WriteString("; " + e.Name())
		add(attributesOf(e.Attributes()))
	}
	for _, l := range s.Links().All() {
		b.WriteString("; a link")
		add(attributesOf(l.Attributes()))
	}
	return b.String()
}

// attributesOf writes attributes as key=value, in order; texts are quoted.
func attributesOf(m pcommon.Map) string {
	raw := m.AsRaw()
	var all []string
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if text, ok := raw[key].(string); ok {
			all = append(all, fmt.Sprintf("%s=%q", key, text))
			continue
		}
		all = append(all, fmt.Sprintf("%s=%v", key, raw[key]))
	}
	return strings.Join(all, " ")
}
