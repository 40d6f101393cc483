// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/collector/pdata/ptrace"

	"github.com/callbraid/callbraid/internal/bytefrog"
	"github.com/callbraid/callbraid/internal/call/callevent"
)

// watchedConnection counts the reads and the batches of a data connection.
type watchedConnection struct {
	*dataConnection
	net.Conn
	agent          net.Conn
	reads, batches atomic.Int64
}

func (w *watchedConnection) Read(b []byte) (int, error) {
	w.reads.Add(1)
	return w.Conn.Read(b)
}

// watch joins a connection to a run. It is not read before serve.
func watch(t *testing.T, r *run) *watchedConnection {
	w := &watchedConnection{}
	w.agent, w.Conn = net.Pipe()
	var err error
	w.dataConnection, err = newDataConnection(r, w)
	require.NoError(t, err)
	require.NoError(t, r.data.attach(w.in))
	w.batch.SetSend(func(callevent.Packed) { w.batches.Add(1) })
	return w
}

func (w *watchedConnection) receive(t *testing.T, b []byte) {
	_, err := w.agent.Write(b)
	require.NoError(t, err)
	synctest.Wait()
}

var (
	nameless      = bytefrog.AppendEvent(nil, bytefrog.Event{Type: bytefrog.TypeMethodEntry, Method: 5, Thread: 3})
	namesOfMethod = encode(bytefrog.MapMethod{Method: 5, Signature: "demo/Shop.late;1;()V"}, bytefrog.MapThreadName{Thread: 3, Name: "worker"})
)

// A connection that waits for names sleeps until something happens.
func TestAWaitForNamesIsEndedByAWakeUp(t *testing.T) {
	for name, c := range map[string]struct {
		nameWait time.Duration
		// wake lets the event be packed. The other connection is not read before.
		wake func(t *testing.T, other *watchedConnection)
	}{
		"a name on another connection": {time.Hour, func(t *testing.T, other *watchedConnection) {
			go other.readToEnd()
			other.receive(t, namesOfMethod)
		}},
		"another connection has handled all after name_wait": {time.Second, func(_ *testing.T, other *watchedConnection) {
			go other.readToEnd()
		}},
		"another connection ends after name_wait": {time.Second, func(_ *testing.T, other *watchedConnection) {
			other.member.Leave()
		}},
	} {
		for _, ended := range []bool{false, true} {
			which := map[bool]string{false: ", while the connection is read", true: ", after its end"}[ended]
			t.Run(name+which, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					env := defaultEnvironment(t, discard(func(ptrace.Traces) {}))
					env.Settings.NameWait = c.nameWait
					r := startedRunIn(t, env, runMemory)
					silent, other := watch(t, r), watch(t, r)
					go silent.readToEnd()
					silent.receive(t, nameless)
					if ended {
						_ = silent.agent.Close()
					}
					time.Sleep(time.Minute)
					synctest.Wait()
					reads := silent.reads.Load()
					time.Sleep(time.Minute)
					synctest.Wait()
					assert.Equal(t, reads, silent.reads.Load(), "a connection that waits for names polls")
					require.Zero(t, silent.batches.Load())
					c.wake(t, other)
					time.Sleep(time.Second)
					synctest.Wait()
					assert.EqualValues(t, 1, silent.batches.Load())
					_, _ = silent.agent.Close(), other.agent.Close()
					r.giveUp(nil)
					synctest.Wait()
				})
			})
		}
	}
}
