// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogagent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/callbraid/callbraid/internal/bytefrog"
)

// play executes the whole run.
func (r *run) play(ctx context.Context) Result {
	conn, err := dial(ctx, r.options)
	if err != nil {
		if ctx.Err() != nil {
			r.change(func(l *life) { l.kill() })
		} else {
			r.change(func(l *life) {
				l.end(Untraced, fmt.Sprintf("no HQ answered within %v", r.options.ConnectTimeout))
			})
			r.noteError(err)
		}
		return r.result()
	}
	r.control = conn
	stopKill := context.AfterFunc(ctx, func() { r.change(func(l *life) { l.kill() }) })
	defer stopKill()
	r.background.Add(1)
	go r.closeAtEnd(ctx)

	if r.handshake() {
		r.trace()
	}
	r.background.Wait()
	return r.result()
}

// trace opens the data connections, runs the program, and closes them.
func (r *run) trace() {
	if r.options.Prepare != nil {
		r.options.Prepare()
	}
	r.change(func(l *life) { l.prepared() })
	if r.isIdle() {
		// It reports for a class that it ignores the class.
		r.writeControl(bytefrog.ClassReport{Result: bytefrog.TypeClassIgnored, Class: "demo/Main"})
	}
	if !r.openData() {
		<-r.final
		return
	}
	r.startSenders()
	r.change(func(l *life) { l.listens() })
	err := r.program.Run(&Tracer{run: r})
	if err != nil && !errors.Is(err, ErrUntraced) && !errors.Is(err, ErrHung) && !errors.Is(err, ErrSuspended) {
		r.noteError(err)
		r.fail("the program failed: " + err.Error())
	}
	r.change(func(l *life) { l.programEnded() })
	r.sendHeartbeat() // mode X
	close(r.queue)
	r.awaitSenders()
	r.change(func(l *life) { l.allSent() })
	// The state is not final if a connection was lost and the meaning of the loss is not known yet.
	<-r.final
}

// closeAtEnd closes the remaining connections in the final state, the control connection last. For a hung program it
// waits for the hang timeout before.
func (r *run) closeAtEnd(ctx context.Context) {
	defer r.background.Done()
	<-r.final
	r.waitHang(ctx)
	r.closeAll()
}

// waitHang waits for the hang timeout if the program hangs.
func (r *run) waitHang(ctx context.Context) {
	r.mu.Lock()
	isHung := r.life.state == hung
	r.mu.Unlock()
	if !isHung || r.options.HangTimeout <= 0 {
		return
	}
	patience := time.NewTimer(r.options.HangTimeout)
	defer patience.Stop()
	select {
	case <-patience.C:
	case <-ctx.Done():
	}
}

func (r *run) closeAll() {
	r.mu.Lock()
	data := r.data
	r.mu.Unlock()
	for _, conn := range data {
		conn.Close() // the peer may have closed it already
	}
	r.control.Close() // the peer may have closed it already
}

func (r *run) result() Result {
	stats := r.statistics()
	r.mu.Lock()
	defer r.mu.Unlock()
	return Result{
		Outcome:       r.life.outcome,
		Reason:        r.life.reason,
		Err:           r.firstErr,
		Configuration: r.configuration,
		Stats:         stats,
	}
}
