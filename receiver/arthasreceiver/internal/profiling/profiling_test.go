// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package profiling_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/extension/xextension/storage"
	"go.uber.org/goleak"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/receiver/arthasreceiver/internal/profiling"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bed is a simulated server with a profiler, and the outputs of the receivers.
type bed struct {
	*testing.T
	sim    *arthasserver.Server
	client *arthas.Client
	// ahead is how far the server's clock is ahead.
	ahead atomic.Int64

	mu       sync.Mutex
	sum      time.Duration
	profiles int
	ended    time.Time
	outcomes map[profiling.Outcome]int
}

func newBed(t *testing.T) *bed {
	b := &bed{T: t, outcomes: map[profiling.Outcome]int{}}
	b.sim = arthasserver.New(arthasserver.Settings{Now: func() time.Time { return time.Now().Add(time.Duration(b.ahead.Load())) }})
	listening := httptest.NewServer(b.sim)
	t.Cleanup(listening.Close)
	t.Cleanup(b.sim.Close)
	var err error
	b.client, err = arthas.NewClient(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}, listening.URL, arthas.Settings{})
	require.NoError(t, err)
	return b
}

func (b *bed) Profile(p *arthas.Profiler, begun, ended time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.profiles++
	assert.False(b, begun.Before(b.ended), "periods do not overlap")
	assert.True(b, ended.After(begun))
	b.ended = ended
	var malformed int64
	for stack := range p.Stacks(&malformed) {
		b.sum += time.Duration(stack.Value)
	}
	assert.Zero(b, malformed)
}

func (b *bed) Period(outcome profiling.Outcome, why error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outcomes[outcome]++
	assert.Equal(b, outcome == profiling.Done, why == nil)
}

func (b *bed) count(outcome profiling.Outcome) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.outcomes[outcome]
}

func (b *bed) await(outcome profiling.Outcome, n int) {
	b.Helper()
	testkit.Eventually(b, fmt.Sprintf("%d times %v", n, outcome), func() (bool, string) {
		b.sim.Call(buy)
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.outcomes[outcome] >= n, fmt.Sprint(b.outcomes)
	})
}

func (b *bed) awaitProfiling(is bool) {
	b.Helper()
	testkit.Eventually(b, "the profiler", func() (bool, string) { return b.sim.IsProfiling() == is, fmt.Sprint(!is) })
}

var buy = arthasserver.Call{Class: "demo.Shop", Method: "buy", Cost: 3, Children: []arthasserver.Call{{Class: "demo.Shop", Method: "row", Cost: 1}}}

const (
	short = 20 * time.Millisecond
	long  = time.Hour
)

// running is a receiver that follows the server.
type running struct {
	profiler           *profiling.Profiler
	endServing, lose   context.CancelFunc
	serving, connected context.Context
	done               sync.WaitGroup
	err                error
}

// run runs a profiler until it ends.
func (b *bed) run(period time.Duration, stored storage.Client, process string) *running {
	r := &running{profiler: profiling.New(profiling.Settings{
		Client: b.client, Event: arthas.ProfileCPU, Period: period, MaxText: 1 << 20, Storage: stored, Key: "profiler", Leaving: b.Context(), Output: b, Now: time.Now,
	})}
	r.serving, r.endServing = context.WithCancel(b.Context())
	r.connect(process)
	b.Cleanup(r.end)
	return r
}

func (r *running) connect(process string) {
	r.connected, r.lose = context.WithCancel(r.serving)
	r.done.Go(func() { r.err = r.profiler.Run(r.serving, r.connected, process) })
}

func (r *running) disconnect() {
	r.lose()
	r.done.Wait()
}

func (r *running) end() {
	r.endServing()
	r.done.Wait()
	r.lose()
}

func TestEachPeriodHasAProfileOfItsOwn(t *testing.T) {
	b := newBed(t)
	r := b.run(short, nil, "1")
	b.await(profiling.Done, 3)
	r.end()
	require.NoError(t, r.err)
	truth := b.sim.Lives()[0]
	assert.False(t, truth.Profiling, "a shutdown stops the profiler")
	assert.EqualValues(t, b.profiles, truth.Profiles)
	assert.EqualValues(t, b.profiles, truth.ProfilesStopped)
	assert.Equal(t, truth.Profiled, b.sum, "each sample once")
	assert.Positive(t, b.sum)
	assert.Equal(t, map[profiling.Outcome]int{profiling.Done: b.profiles}, b.outcomes)
}

func TestAShutdownEndsAPeriodEarly(t *testing.T) {
	b := newBed(t)
	r := b.run(long, nil, "1")
	b.awaitProfiling(true)
	b.sim.Call(buy)
	r.end()
	assert.False(t, b.sim.IsProfiling())
	assert.EqualValues(t, 3, b.sum)
}

func TestTheProfilerOfSomebodyElseGoesOn(t *testing.T) {
	b := newBed(t)
	b.sim.StartProfiler()
	r := b.run(short, nil, "1")
	b.await(profiling.Foreign, 2)
	assert.True(t, b.sim.IsProfiling())
	assert.Zero(t, b.profiles)
	b.sim.StopProfiler()
	b.await(profiling.Done, 1)
	r.end()
	assert.False(t, b.sim.IsProfiling())

	b.sim.StartProfiler()
	r = b.run(long, nil, "1")
	b.await(profiling.Foreign, 3)
	r.end()
	assert.True(t, b.sim.IsProfiling(), "a shutdown does not stop it")
}

func TestAPeriodThatSomebodyElseEndedIsLost(t *testing.T) {
	for name, change := range map[string]func(*bed){
		"stopped": func(b *bed) { b.sim.StopProfiler() },
		"stopped and started again later": func(b *bed) {
			b.sim.StopProfiler()
			b.ahead.Store(-int64(time.Minute))
			b.sim.StartProfiler()
			b.ahead.Store(0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			r := b.run(long, nil, "1")
			b.awaitProfiling(true)
			change(b)
			was := b.sim.IsProfiling()
			r.end()
			assert.Equal(t, map[profiling.Outcome]int{profiling.Lost: 1}, b.outcomes)
			assert.Zero(t, b.profiles, "the stacks of an earlier start are not sent again")
			assert.Equal(t, was, b.sim.IsProfiling())
		})
	}
}

func TestTheProfilerStopsByItself(t *testing.T) {
	b := newBed(t)
	r := b.run(short, nil, "1")
	b.await(profiling.Done, 1)
	// The receiver must not disconnect between two periods.
	testkit.Eventually(t, "a lost connection during a period", func() (bool, string) {
		b.awaitProfiling(true)
		if r.disconnect(); b.sim.IsProfiling() {
			return true, ""
		}
		r.connect("1")
		return false, "no period"
	})
	b.ahead.Store(int64(31 * time.Second))
	assert.False(t, b.sim.IsProfiling(), "the receiver does not answer")
	r.connect("1")
	b.await(profiling.Lost, 1)
	b.await(profiling.Done, 2)
}

func TestAPeriodGoesOnAfterALostConnection(t *testing.T) {
	b := newBed(t)
	r := b.run(long, nil, "1")
	b.awaitProfiling(true)
	b.sim.Call(buy)
	r.disconnect()
	assert.True(t, b.sim.IsProfiling())
	b.sim.Call(buy)
	r.connect("1")
	r.end()
	assert.EqualValues(t, 6, b.sum)
	assert.Equal(t, map[profiling.Outcome]int{profiling.Done: 1}, b.outcomes)
}

func TestAPeriodOfAnEndedProcessIsLost(t *testing.T) {
	b := newBed(t)
	r := b.run(long, nil, "1")
	b.awaitProfiling(true)
	r.disconnect()
	b.sim.Restart()
	r.connect("2")
	b.await(profiling.Lost, 1)
	b.awaitProfiling(true)
	r.end()
	assert.Equal(t, 1, b.count(profiling.Done))
}

// memory is a storage.
type memory struct {
	storage.Client
	mu     sync.Mutex
	values map[string][]byte
}

func (m *memory) Get(_ context.Context, key string) ([]byte, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key], nil
}

func (m *memory) Set(_ context.Context, key string, value []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.values[key] = value
	return nil
}

func (m *memory) Delete(_ context.Context, key string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.values, key)
	return nil
}

func TestThePeriodOfAKilledCollectorGoesOnInTheNext(t *testing.T) {
	b := newBed(t)
	stored := &memory{values: map[string][]byte{}}
	killed := b.run(long, stored, "1")
	testkit.Eventually(t, "the stored period", func() (bool, string) {
		value, _ := stored.Get(t.Context(), "profiler")
		return value != nil, ""
	})
	b.sim.Call(buy)
	killed.disconnect()
	next := b.run(long, stored, "1")
	next.end()
	assert.False(t, b.sim.IsProfiling())
	assert.EqualValues(t, 3, b.sum)
	assert.Empty(t, stored.values)

	killed = b.run(long, stored, "1")
	b.awaitProfiling(true)
	killed.disconnect()
	b.sim.Restart()
	b.sim.StartProfiler()
	next = b.run(long, stored, "2")
	b.await(profiling.Foreign, 1)
	next.end()
	assert.True(t, b.sim.IsProfiling(), "the profiler of another process is not that of the killed collector")
}

func TestAServerThatIsGoneEndsTheRun(t *testing.T) {
	b := newBed(t)
	r := b.run(short, nil, "1")
	b.await(profiling.Done, 1)
	b.sim.Inject("exec", arthasserver.FaultUnauthorized)
	r.done.Wait()
	assert.ErrorIs(t, r.err, arthas.ErrUnauthorized)
}
