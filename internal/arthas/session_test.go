// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package arthas_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/arthas"
	"github.com/callbraid/callbraid/internal/arthas/sim/arthasserver"
	"github.com/callbraid/callbraid/internal/javamethods"
	"github.com/callbraid/callbraid/internal/testkit"
)

// bed has a simulated server with fast clocks, and a client of it.
type bed struct {
	*testing.T
	server *arthasserver.Server
	http   *httptest.Server
	client *arthas.Client
}

func newBed(t *testing.T, change ...func(*arthasserver.Settings, *arthas.Settings)) *bed {
	t.Helper()
	settings := arthasserver.Settings{
		Classes:  map[string][]string{"demo.Shop": {"<init>", "buy", "check", "save"}, "demo.Pay": {"charge"}},
		PullWait: 40 * time.Millisecond, Gather: 4 * time.Millisecond, Patience: 20 * time.Millisecond, Second: 5 * time.Millisecond,
		Zone: time.FixedZone("", 5*3600+1800),
	}
	client := arthas.Settings{Timeout: testkit.Patience}
	for _, c := range change {
		c(&settings, &client)
	}
	b := &bed{T: t, server: arthasserver.New(settings)}
	b.http = httptest.NewServer(b.server)
	t.Cleanup(func() {
		b.server.Close()
		b.http.Close()
	})
	b.client = b.newClient(client)
	return b
}

func (b *bed) newClient(settings arthas.Settings) *arthas.Client {
	b.Helper()
	transport := &http.Transport{}
	b.Cleanup(transport.CloseIdleConnections)
	c, err := arthas.NewClient(&http.Client{Transport: transport}, b.http.URL, settings)
	require.NoError(b, err)
	return c
}

func (b *bed) open() *arthas.Session {
	b.Helper()
	s, err := b.client.Open(context.Background())
	require.NoError(b, err)
	return s
}

func (b *bed) start(s *arthas.Session, c arthas.Command) *arthas.Job {
	b.Helper()
	j, err := s.Start(context.Background(), c)
	require.NoError(b, err)
	return j
}

// untilEnd pulls until the job ends.
func (b *bed) untilEnd(j *arthas.Job) (results []arthas.Result, end arthas.End) {
	b.Helper()
	for range 10_000 {
		page, err := j.Pull(context.Background())
		require.NoError(b, err)
		results = append(results, page.Results...)
		if page.End != nil {
			return results, *page.End
		}
	}
	b.Fatal("the job did not end")
	return nil, arthas.End{}
}

func target(t testing.TB, class, method string) arthas.Target {
	t.Helper()
	c, err := arthas.NewPattern(class)
	require.NoError(t, err)
	m, err := arthas.NewPattern(method)
	require.NoError(t, err)
	return arthas.Target{Target: javamethods.Target{Class: c, Method: m}}
}

func buy(cost time.Duration) arthasserver.Call {
	return arthasserver.Call{Class: "demo.Shop", Method: "buy", Thread: "worker-1", ThreadID: 13, Cost: cost}
}

func failing(cost time.Duration) arthasserver.Call {
	c := buy(cost)
	c.Throws, c.Message = "java.lang.IllegalStateException", "out of stock"
	return c
}

func of[T arthas.Result](results []arthas.Result) (found []T) {
	for _, r := range results {
		if t, is := r.(T); is {
			found = append(found, t)
		}
	}
	return found
}

func TestAMonitorCountsAllCallsUntilItIsInterrupted(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.MonitorCommand{Target: target(t, "demo.*", "buy"), Cycle: time.Second, Limit: arthas.MaxLimit})
	calls, failed, sum := int64(0), int64(0), time.Duration(0)
	enhanced := 0
	for i := range 10 {
		b.server.Call(buy(time.Nanosecond * time.Duration(i)))
		b.server.Call(failing(time.Nanosecond))
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		enhanced += len(of[*arthas.Enhanced](page.Results))
		for _, m := range of[*arthas.Monitor](page.Results) {
			calls, failed, sum = calls+m.Methods[0].Calls, failed+m.Methods[0].Failed, sum+m.Methods[0].Sum.Duration
		}
	}
	for calls < 20 {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		for _, m := range of[*arthas.Monitor](page.Results) {
			assert.True(t, m.Methods[0].Sum.Known)
			calls, failed, sum = calls+m.Methods[0].Calls, failed+m.Methods[0].Failed, sum+m.Methods[0].Sum.Duration
		}
	}
	require.NoError(t, j.Interrupt(context.Background()))
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.End{Reason: arthas.EndInterrupted}, end)
	assert.Equal(t, 1, enhanced)
	assert.EqualValues(t, 20, calls)
	assert.EqualValues(t, 10, failed)
	assert.Equal(t, 9*10/2*time.Nanosecond+10*time.Nanosecond, sum)
	assert.Zero(t, s.Loss())
	assert.Equal(t, []string{"demo.Shop"}, b.server.Instrumented(), "the end of a job leaves its classes instrumented")
	require.NoError(t, s.Close(context.Background()))
	sessions, _ := b.server.Sessions()
	assert.Zero(t, sessions)
}

func TestAJobEndsByItsLimit(t *testing.T) {
	for _, tt := range []struct {
		name  string
		limit arthas.Limit
		calls int
	}{
		{"of the command", 7, 7},
		{"of the server, without one", 0, int(arthas.DefaultLimit)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := newBed(t)
			s := b.open()
			j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: tt.limit})
			watched, called := 0, 0
			for watched < tt.calls {
				for ; called < tt.calls && called < watched+15; called++ {
					b.server.Call(buy(time.Nanosecond))
				}
				page, err := j.Pull(context.Background())
				require.NoError(t, err)
				watched += len(of[*arthas.Watch](page.Results))
			}
			_, end := b.untilEnd(j)
			assert.Equal(t, arthas.EndFinished, end.Reason)
			assert.Zero(t, s.Loss())
			_, err := s.Start(context.Background(), arthas.VersionCommand{})
			require.NoError(t, err, "the session can start another command")
		})
	}
}

func TestResultsThatTheServerDroppedAreCounted(t *testing.T) {
	b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) { s.Patience = time.Hour })
	s := b.open()
	j := b.start(s, arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: 90})
	for range 90 {
		b.server.Call(buy(time.Nanosecond))
	}
	results, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Len(t, of[*arthas.Trace](results), 48, "a queue has 50 results, of which the last two end the job")
	assert.Equal(t, arthas.Loss{Results: 42, Overflows: 1}, s.Loss())
}

func TestFullPagesInARowAreCounted(t *testing.T) {
	b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) { s.Patience = time.Hour })
	s := b.open()
	j := b.start(s, arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: arthas.MaxLimit})
	for range 5 {
		for range 20 {
			b.server.Call(buy(time.Nanosecond))
		}
		_, err := j.Pull(context.Background())
		require.NoError(t, err)
	}
	assert.Equal(t, arthas.Loss{FullQueues: 2}, s.Loss())
}

func TestAJobWithoutPullsEndsAsUnhealthy(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: arthas.MaxLimit})
	testkit.Eventually(t, "the server interrupts the job", func() (bool, string) {
		b.server.Call(buy(time.Nanosecond))
		_, jobs := b.server.Sessions()
		return jobs == 0, ""
	})
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndUnhealthy, end.Reason)
	assert.Equal(t, "all consumers are unhealthy, current job was interrupted.", end.Message)
	assert.Zero(t, s.Loss().Results, "the limit was not reached, so the number of lost results is not known")
	j = b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 1})
	b.server.Call(buy(time.Nanosecond))
	_, end = b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason, "the message of the earlier job is not of this one")
}

func TestACommandThatMatchesNoMethodFails(t *testing.T) {
	b := newBed(t)
	s := b.open()
	results, end := b.untilEnd(b.start(s, arthas.TraceCommand{Target: target(t, "no.Such", "m")}))
	assert.Equal(t, arthas.EndFailed, end.Reason)
	assert.EqualValues(t, -1, end.Code)
	assert.Contains(t, end.Message, "No class or method is affected")
	require.Len(t, of[*arthas.Enhanced](results), 1)
	assert.False(t, of[*arthas.Enhanced](results)[0].Success)
	_, err := b.client.Exec(context.Background(), arthas.TraceCommand{Target: target(t, "no.Such", "m")}, time.Second)
	var failed *arthas.CommandError
	require.ErrorAs(t, err, &failed)
	assert.EqualValues(t, -1, failed.Code)
}

func TestAJobThatAnotherClientInterruptsHasLostNoResults(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.TraceCommand{Target: target(t, "demo.Shop", "buy"), Limit: arthas.MaxLimit})
	other, err := b.client.Join(context.Background(), s.ID())
	require.NoError(t, err)
	require.NoError(t, other.Interrupt(context.Background()))
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason, "the server reports the same status as for a job that ended by itself")
	assert.Zero(t, s.Loss().Results)
}

func TestASessionHasOneJob(t *testing.T) {
	b := newBed(t)
	s := b.open()
	monitor := arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Second}
	b.start(s, monitor)
	before, _ := b.server.Requests()
	_, err := s.Start(context.Background(), monitor)
	require.ErrorIs(t, err, arthas.ErrJobRunning)
	after, _ := b.server.Requests()
	assert.Equal(t, before, after, "the client refuses the command itself")

	other, err := b.client.Join(context.Background(), s.ID())
	require.NoError(t, err)
	_, err = other.Start(context.Background(), monitor)
	require.ErrorIs(t, err, arthas.ErrJobRunning)
	var refused *arthas.RefusedError
	require.ErrorAs(t, err, &refused, "the server refuses the command")
	assert.Equal(t, "REFUSED", refused.State)
	require.NoError(t, other.Interrupt(context.Background()))
	require.NoError(t, other.Interrupt(context.Background()), "no job runs")
	j := b.start(other, arthas.VersionCommand{})
	results, end := b.untilEnd(j)
	assert.Equal(t, []string{"4.3.4"}, []string{of[*arthas.Version](results)[0].Text})
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.NotZero(t, other.Loss().Stale, "the results of the job before")
}

func TestARemovedQueueIsJoinedAgainWithoutALoss(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 12})
	watched := 0
	for range 5 {
		b.server.Call(buy(time.Nanosecond))
	}
	for watched < 5 {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		watched += len(of[*arthas.Watch](page.Results))
	}
	b.server.EvictConsumers(0, time.Hour)
	for range 4 {
		b.server.Call(buy(time.Nanosecond))
	}
	_, err := j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
	_, err = j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
	require.NoError(t, s.Rejoin(context.Background()))
	for range 3 {
		b.server.Call(buy(time.Nanosecond))
	}
	results, end := b.untilEnd(j)
	assert.Len(t, of[*arthas.Watch](results), 7, "only those that were not pulled before")
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Equal(t, arthas.Loss{Evictions: 1}, s.Loss())
}

// The repeated results have those of a page that got lost, which the session has never seen.
func TestALostPageBeforeARemovedQueueRepeatsNoResult(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 10})
	call := func(n int) {
		for range n {
			b.server.Call(buy(time.Nanosecond))
		}
	}
	pull := func(n int) {
		t.Helper()
		for watched := 0; watched < n; {
			page, err := j.Pull(context.Background())
			require.NoError(t, err)
			watched += len(of[*arthas.Watch](page.Results))
		}
	}
	call(3)
	pull(3)
	call(2)
	b.server.Inject("pull_results", arthasserver.FaultCut)
	_, err := j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrCut)
	call(2)
	pull(2)
	b.server.EvictConsumers(0, time.Hour)
	call(3)
	_, err = j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
	require.NoError(t, s.Rejoin(context.Background()))
	results, end := b.untilEnd(j)
	assert.Len(t, of[*arthas.Watch](results), 3)
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Equal(t, arthas.Loss{Evictions: 1, BrokenPages: 1, Results: 2}, s.Loss())
}

func TestARemovedQueueIsJoinedAgainWithAGap(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 101})
	b.server.Call(buy(time.Nanosecond))
	watched := 0
	for watched < 1 {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		watched += len(of[*arthas.Watch](page.Results))
	}
	b.server.EvictConsumers(0, time.Hour)
	for i := range 60 {
		b.server.Call(buy(time.Duration(i)))
	}
	_, err := j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
	require.NoError(t, s.Rejoin(context.Background()))
	for watched < 49 {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		watched += len(of[*arthas.Watch](page.Results))
	}
	for range 40 {
		b.server.Call(buy(time.Nanosecond))
	}
	_, end := b.untilEnd(j)
	assert.Equal(t, arthas.EndFinished, end.Reason)
	assert.Equal(t, arthas.Loss{Evictions: 1, Gaps: 1, Results: 11}, s.Loss(), "a new queue of 50 has 49 of the last results, and the state of input")
}

// The server repeats 20 results in a page. The session ends before the next one.
func TestASessionThatEndsWhileItsResultsAreRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		pulled, fresh int
		want          arthas.Loss
	}{
		"with new ones":               {5, 10, arthas.Loss{Evictions: 1}},
		"with none that was the last": {30, 0, arthas.Loss{Evictions: 1, Gaps: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t)
			s := b.open()
			j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 100})
			for watched, called := 0, 0; watched < c.pulled; {
				for ; called < min(c.pulled, watched+10); called++ {
					b.server.Call(buy(time.Duration(called)))
				}
				page, err := j.Pull(context.Background())
				require.NoError(t, err)
				watched += len(of[*arthas.Watch](page.Results))
			}
			b.server.EvictConsumers(0, time.Hour)
			for i := range 15 {
				b.server.Call(buy(time.Duration(1000 + i)))
			}
			_, err := j.Pull(context.Background())
			require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
			require.NoError(t, s.Rejoin(context.Background()))
			page, err := j.Pull(context.Background())
			require.NoError(t, err)
			require.Empty(t, page.Results, "more are repeated")
			b.server.Restart()
			page, err = j.Pull(context.Background())
			require.NoError(t, err)
			require.NotNil(t, page.End)
			assert.Len(t, of[*arthas.Watch](page.Results), c.fresh)
			assert.Equal(t, c.want, s.Loss())
		})
	}
}

// The server is lost while it repeats results. Those that it has repeated are not.
func TestRepeatedResultsOfALostServerAreReturned(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.WatchCommand{Target: target(t, "demo.Shop", "buy"), Limit: 100})
	b.server.Call(buy(time.Nanosecond))
	for watched := 0; watched < 1; {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		watched += len(of[*arthas.Watch](page.Results))
	}
	b.server.EvictConsumers(0, time.Hour)
	for i := range 25 {
		b.server.Call(buy(time.Duration(1000 + i)))
	}
	_, err := j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrConsumerNotFound)
	require.NoError(t, s.Rejoin(context.Background()))
	page, err := j.Pull(context.Background())
	require.NoError(t, err)
	require.Empty(t, page.Results, "more are repeated")
	rest := len(of[*arthas.Watch](j.Rest().Results))
	assert.Positive(t, rest)
	assert.Less(t, rest, 25, "the page had 20 results")
	assert.Empty(t, j.Rest().Results, "they are returned once")
	assert.Equal(t, arthas.Loss{Evictions: 1}, s.Loss())
}

// A text with the ID of a session would be another one each time, and so another line of the log.
func TestTheTextOfALostSessionHasNoID(t *testing.T) {
	for _, id := range []string{"3f2a", "9b71"} {
		err := &arthas.RefusedError{State: "FAILED", Message: "session not found: " + id}
		assert.EqualError(t, err, "the server answered FAILED: session not found")
		require.ErrorIs(t, err, arthas.ErrSessionNotFound)
	}
	unknown := &arthas.RefusedError{State: "REFUSED", Message: "busy"}
	assert.EqualError(t, unknown, "the server answered REFUSED: busy")
	assert.NoError(t, errors.Unwrap(unknown))
}

func TestASessionThatTheServerForgotIsLost(t *testing.T) {
	b := newBed(t)
	s := b.open()
	j := b.start(s, arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Second})
	b.server.Restart()
	page, err := j.Pull(context.Background())
	require.NoError(t, err)
	require.NotNil(t, page.End)
	assert.Equal(t, arthas.EndSessionLost, page.End.Reason)
	assert.Contains(t, page.End.Message, "session not found")
	_, err = s.Start(context.Background(), arthas.VersionCommand{})
	require.ErrorIs(t, err, arthas.ErrSessionNotFound)
	require.NoError(t, j.Interrupt(context.Background()))
	require.NoError(t, s.Close(context.Background()))
	require.NoError(t, s.Close(context.Background()))
	_, err = s.Start(context.Background(), arthas.VersionCommand{})
	require.ErrorIs(t, err, arthas.ErrClosedSession)
	_, err = b.client.Join(context.Background(), s.ID())
	require.ErrorIs(t, err, arthas.ErrSessionNotFound)

	idle := b.open()
	b.server.Restart()
	_, err = idle.Start(context.Background(), arthas.VersionCommand{})
	require.ErrorIs(t, err, arthas.ErrSessionNotFound)
	require.ErrorIs(t, idle.Rejoin(context.Background()), arthas.ErrSessionNotFound)
}

func TestAClosedSessionEndsItsJob(t *testing.T) {
	b := newBed(t, func(s *arthasserver.Settings, _ *arthas.Settings) { s.PullWait = time.Hour })
	s := b.open()
	j := b.start(s, arthas.MonitorCommand{Target: target(t, "demo.Shop", "buy"), Cycle: time.Hour})
	for {
		page, err := j.Pull(context.Background())
		require.NoError(t, err)
		if len(page.Results) > 0 {
			break
		}
	}
	before, _ := b.server.Requests()
	pulled := make(chan error)
	go func() {
		page, err := j.Pull(context.Background())
		if err == nil && page.End != nil && page.End.Reason != arthas.EndInterrupted {
			err = errors.New(page.End.Reason.String())
		}
		pulled <- err
	}()
	testkit.Eventually(t, "an open pull", func() (bool, string) {
		now, _ := b.server.Requests()
		return now["pull_results"] > before["pull_results"], ""
	})
	_, err := j.Pull(context.Background())
	require.ErrorIs(t, err, arthas.ErrPulling)
	require.NoError(t, s.Close(context.Background()))
	require.NoError(t, <-pulled)
	page, err := j.Pull(context.Background())
	require.NoError(t, err)
	assert.Equal(t, &arthas.End{Reason: arthas.EndInterrupted}, page.End)
}
