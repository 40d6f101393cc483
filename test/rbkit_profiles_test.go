// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/pprofile"

	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/test/kit"
)

// profiled is the content of profiles by type: the sum of values for each stack. Allocations are
// summed by place only.
type profiled map[string]map[string]int64

func (p profiled) add(kind, at string, n int64) {
	if p[kind] == nil {
		p[kind] = map[string]int64{}
	}
	p[kind][at] += n
}

// read adds profiles that were exported.
func (p profiled) read(all pprofile.Profiles) {
	d := all.Dictionary()
	text := func(i int32) string { return d.StringTable().At(int(i)) }
	for _, profile := range all.ResourceProfiles().At(0).ScopeProfiles().At(0).Profiles().All() {
		kind := text(profile.SampleType().TypeStrindex()) + " in " + text(profile.SampleType().UnitStrindex()) + " by " + text(profile.PeriodType().TypeStrindex())
		for _, s := range profile.Samples().All() {
			var stack []string
			for _, l := range d.StackTable().At(int(s.StackIndex())).LocationIndices().All() {
				line := d.LocationTable().At(int(l)).Lines().At(0)
				f := d.FunctionTable().At(int(line.FunctionIndex()))
				if line.Line() > 0 {
					// The place of an allocation.
					stack = []string{fmt.Sprintf("%s:%d", text(f.FilenameStrindex()), line.Line())}
					break
				}
				stack = append(stack, fmt.Sprintf("%s %s:%d", text(f.NameStrindex()), text(f.FilenameStrindex()), f.StartLine()))
			}
			thread := ""
			for _, i := range s.AttributeIndices().All() {
				if a := d.AttributeTable().At(int(i)); text(a.KeyStrindex()) == "thread.id" {
					thread = fmt.Sprintf("thread %d: ", a.Value().Int())
				}
			}
			for _, value := range s.Values().All() {
				p.add(kind, thread+strings.Join(stack, "; "), value)
			}
		}
	}
}

// decodedFrame is a frame of a CPU sample, as the reference decoded it.
type decodedFrame struct {
	Label  string `json:"13"`
	File   string `json:"6"`
	Line   int64  `json:"7"`
	Thread int64  `json:"15"`
}

// address matches the address of an object in a frame of its singleton method. Profiles do not have it.
var address = regexp.MustCompile(":0x[0-9a-f]+")

func (f decodedFrame) String() string {
	f.Label = address.ReplaceAllString(f.Label, "")
	if f.File == "<cfunc>" {
		return f.Label + " :0" // a method in C has no line
	}
	return fmt.Sprintf("%s %s:%d", f.Label, f.File, f.Line)
}

// decodeSamples adds the CPU samples of a message.
func (p profiled) decodeSamples(t *testing.T, m capture.Message, eventType uint64, clock string) {
	t.Helper()
	eachDecoded(t, m, eventType, func(frames []decodedFrame) {
		var stack []string
		for _, f := range frames {
			stack = append(stack, f.String())
		}
		thread := ""
		if frames[0].Thread != 0 {
			thread = fmt.Sprintf("thread %d: ", frames[0].Thread)
		}
		p.add("samples in count by "+clock, thread+strings.Join(stack, "; "), 1)
	})
}

// decodeAllocations adds the snapshots of a message of the documented dialect.
func (p profiled) decodeAllocations(t *testing.T, m capture.Message) {
	t.Helper()
	eachDecoded(t, m, snapshotType, func(s decodedSnapshot) {
		for file, places := range s.Allocations {
			for place, allocated := range places {
				words := strings.Fields(place) // the line, the class, the size
				size, err := strconv.ParseInt(words[len(words)-1], 10, 64)
				require.NoError(t, err)
				at := file + ":" + words[0]
				p.add("alloc_objects in count by ", at, allocated.Count)
				p.add("alloc_space in bytes by ", at, size*allocated.Count)
			}
		}
	})
}

// The samples of captures, as a backend of OTLP gets them from a server with libzmq: each
// stack as often as the reference has it.
func TestRbkitProfilesArriveByOTLP(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		sample uint64
		clock  string
	}{
		"released-30s":   {sample: 9, clock: "cpu"},
		"documented-30s": {sample: 8, clock: "wall"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var mu sync.Mutex
			got, want := profiled{}, profiled{}
			endpoint, stop := kit.ServeOTLPProfiles(t, func(p pprofile.Profiles) int {
				mu.Lock()
				defer mu.Unlock()
				got.read(p)
				return http.StatusOK
			})
			server, played := newRbkitServer(t), openRbkit(t, name)
			c := kit.Start(t, rbkitClient{
				servers: []rbkitServer{server}, exporters: toBackend(endpoint),
				pipelines: "profiles: {receivers: [rbkit], exporters: [otlp_http]}",
			}.config())
			s := server.start(t, played)
			awaitSubscriber(t, c, s)
			// The messages that the reference has decoded.
			messages := slices.DeleteFunc(played.Messages, func(m capture.Message) bool { return m.Decoded == nil })
			for _, m := range messages {
				s.Publish(m.Data)
				want.decodeSamples(t, m, test.sample, test.clock)
				if name == "documented-30s" {
					want.decodeAllocations(t, m)
				}
			}
			all, byType := eventsOf(messages...)
			c.AwaitMetric(t, all, rbkitEvents)
			c.Stop(t)
			stop()
			assert.Equal(t, want, got)
			samples := 0.0
			for _, n := range got["samples in count by "+test.clock] {
				samples += float64(n)
			}
			assert.Equal(t, byType[test.sample], samples)
		})
	}
}
