// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/componentkit/logline"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/zmtp"
	"github.com/callbraid/callbraid/internal/receiverkit/servermemory"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/counters"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
)

// control sends commands to a server, one at a time, on a connection that it opens for the first
// of them. It is for several goroutines.
type control struct {
	*Settings
	logger *zap.Logger
	// correction asks the session to correct the state of the server now.
	correction chan struct{}
	// silent is a burst of requests without an answer, and ignored a burst of commands without an
	// effect.
	silent, ignored logline.Burst
	// dangerous limits warnings of settings that may end the program. warnedOf is the process of
	// the last warning. stateLock guards them.
	dangerous logline.Seldom
	warnedOf  uint64

	// switchedOn has the profiles that the receiver may have switched on, and wanted the state
	// that the server has to have.
	switchedOn switchedOn
	wanted     wanted

	// stateLock is held while the state of the server is read and changed, by the receiver
	// or by a command of an extension.
	stateLock contextLock
	// requestLock is held during a request, and guards the requester.
	requestLock contextLock
	requester   *zmtp.Requester
	// memory is the memory of the server, and buffer the part of the requester.
	memory *servermemory.Memory
	buffer *servermemory.Buffer
}

// newControl returns the control of a server that has an address for requests.
func newControl(settings *Settings, logger *zap.Logger, memory *servermemory.Memory) *control {
	return &control{
		Settings: settings, logger: logger, memory: memory, correction: make(chan struct{}, 1), wanted: newWanted(settings),
		stateLock: newContextLock(), requestLock: newContextLock(),
	}
}

// queryState asks the server for its state, and reports a server that doesn't answer.
func (c *control) queryState(ctx context.Context) (h rbkit.HandshakeReply, ok bool) {
	h, err := c.askState(ctx)
	return h, c.reportAnswer(ctx, err)
}

// askState asks the server for its state.
func (c *control) askState(ctx context.Context) (rbkit.HandshakeReply, error) {
	reply, err := c.request(ctx, rbkit.Handshake)
	if err != nil {
		return rbkit.HandshakeReply{}, err
	}
	return rbkit.DecodeHandshake(reply)
}

// sendAndReport sends a command and returns whether the server accepted it. It reports a
// server that doesn't answer.
func (c *control) sendAndReport(ctx context.Context, command rbkit.Command) bool {
	return c.reportAnswer(ctx, c.sendCommand(ctx, command))
}

// sendCommand sends a command, and waits until the server accepts it.
func (c *control) sendCommand(ctx context.Context, command rbkit.Command) error {
	reply, err := c.request(ctx, command)
	if err != nil {
		return err
	}
	if err := rbkit.CheckOK(reply); err != nil {
		return fmt.Errorf("the reply to %s: %w", command, err)
	}
	return nil
}

// reportAnswer counts and logs the result of a request.
func (c *control) reportAnswer(ctx context.Context, err error) bool {
	if err == nil {
		if c.silent.Over() {
			c.logger.Info("The server answers requests again")
		}
		return true
	}
	if ctx.Err() != nil {
		return false // the caller has stopped waiting
	}
	c.Counters.ConnectionFailed(counters.SocketRequest)
	c.Run.LogSeldom(&c.silent, c.logger.Warn, "The server doesn't answer requests: its messages are received, but the receiver can't change its state",
		zap.String("request", c.Request), zap.Error(err))
	return false
}

// request sends a command and returns a copy of the reply.
func (c *control) request(ctx context.Context, command rbkit.Command) ([]byte, error) {
	if err := c.requestLock.lock(ctx); err != nil {
		return nil, err
	}
	defer c.requestLock.unlock()
	if err := c.connect(ctx); err != nil {
		return nil, err
	}
	reply, err := c.requester.Ask(ctx, []byte(command))
	if err == nil && len(reply) != 1 {
		err = fmt.Errorf("expected a reply of one part, got %d", len(reply))
	}
	if err != nil {
		c.disconnect()
		return nil, err
	}
	return append([]byte(nil), reply[0]...), nil
}

// connect opens a connection, if there is none. The lock is held.
func (c *control) connect(ctx context.Context) error {
	if c.requester != nil {
		return nil
	}
	within, end := context.WithTimeoutCause(ctx, c.Connection.Timeout, zmtp.ErrTimeout)
	defer end()
	conn, err := c.Dial(within, c.Request)
	if err != nil {
		return err
	}
	options, buffer := c.Connection, c.memory.Connected(conn)
	options.Room = func(bytes int) error { return c.memory.HoldBuffer(buffer, bytes) }
	if c.requester, err = zmtp.Request(within, conn, options); err != nil {
		c.memory.Disconnected(buffer)
		return err
	}
	c.buffer = buffer
	return nil
}

// disconnect closes the connection, if there is one. The lock is held.
func (c *control) disconnect() {
	if c.requester != nil {
		_ = c.requester.Close() // no request is under way
		c.memory.Disconnected(c.buffer)
		c.requester, c.buffer = nil, nil
	}
}

// close closes the connection, because the server that answered may have ended.
func (c *control) close() {
	_ = c.requestLock.lock(context.Background()) // other requests end at their deadlines
	defer c.requestLock.unlock()
	c.disconnect()
}

// Identified notes the identity after a new connection; other says that it is another life.
func (c *control) Identified(other bool) { c.switchedOn.connected(other) }

// ConnectedToOther notes that the connection has been to another life since its begin.
func (c *control) ConnectedToOther() { c.switchedOn.connectedToOther() }

// RequestCorrection asks the session to identify the server and to correct its state.
func (c *control) RequestCorrection() {
	select {
	case c.correction <- struct{}{}:
	default:
	}
}

// correctState switches on the wanted state, and has the server confirm it. It calls said with each
// state of the server. ok is false if the server doesn't answer.
func (c *control) correctState(ctx context.Context, said func(rbkit.HandshakeReply)) (ok bool) {
	if c.stateLock.lock(ctx) != nil {
		return false // the session ends
	}
	defer c.stateLock.unlock()
	h, ok := c.queryState(ctx)
	if !ok {
		return false
	}
	said(h)
	c.switchedOn.noteState(h)
	c.warnOfDangers(&h)
	if c.isRight(h) {
		return true
	}
	for _, command := range c.missingCommands(h) {
		// The server may carry it out even if its answer doesn't arrive.
		c.switchedOn.noteCommand(command)
		if !c.sendAndReport(ctx, command) {
			return false
		}
	}
	if h, ok = c.queryState(ctx); !ok {
		return false
	}
	said(h)
	if c.isRight(h) {
		c.ignored.Over()
	} else {
		c.Run.LogSeldom(&c.ignored, c.logger.Warn, "The server accepted commands, but its state has not changed",
			zap.Bool("memory_profile", h.ObjectTraceEnabled), zap.Bool("cpu_profile", h.CPUProfiling))
	}
	return true
}

func (c *control) isRight(h rbkit.HandshakeReply) bool { return len(c.missingCommands(h)) == 0 }

// missingCommands returns the commands that lead to the wanted state. Profiles that others switched
// on stay on, with their clock: a clock takes effect when sampling starts.
func (c *control) missingCommands(h rbkit.HandshakeReply) (commands []rbkit.Command) {
	wanted, clock := c.wanted.current()
	if wanted.tracing && !h.ObjectTraceEnabled {
		commands = append(commands, rbkit.StartMemoryProfile)
	}
	if wanted.profiling && !h.CPUProfiling {
		if clock != "" {
			commands = append(commands, clock)
		}
		commands = append(commands, rbkit.StartCPUProfiling)
	}
	return commands
}

// restoreTime is how long a shutdown tries to restore the server.
const restoreTime = time.Second

var errRestoreTime = errors.New("the time to restore the server at a shutdown is over")

// restore switches off everything that the receiver switched on, and closes the connection.
func (c *control) restore(ctx context.Context) {
	_ = c.stateLock.lock(context.Background()) // the commands of extensions have ended
	defer c.stateLock.unlock()
	ctx, end := context.WithTimeoutCause(ctx, min(restoreTime, c.RestoreTimeout), errRestoreTime)
	defer end()
	defer c.close()
	on := c.switchedOn.allProfiles()
	left := true
	if on.tracing {
		left = c.sendAndReport(ctx, rbkit.StopMemoryProfile)
	}
	if on.profiling {
		left = c.sendAndReport(ctx, rbkit.StopCPUProfiling) && left
	}
	if !left {
		c.logger.Warn("The receiver could not switch off profiles that it switched on in the server",
			zap.Bool("memory_profile", on.tracing), zap.Bool("cpu_profile", on.profiling))
	}
}

// contextLock is a lock. A goroutine waits for it no longer than its context.
type contextLock chan struct{}

func newContextLock() contextLock { return make(contextLock, 1) }

// lock waits for the lock. Its error is the cause for which the context ended. A call without an
// error needs a call of unlock.
func (t contextLock) lock(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t contextLock) unlock() { <-t }

// dangers returns the settings that make an old server crash a program on a current Ruby.
func (c *control) dangers(h *rbkit.HandshakeReply) (settings []string) {
	if !isOld(h.ServerVersion) {
		return nil
	}
	if wanted, _ := c.wanted.current(); wanted.tracing && !h.ObjectTraceEnabled {
		settings = append(settings, "memory_profile")
	}
	if c.SnapshotInterval > 0 {
		settings = append(settings, "objectspace_snapshot_interval")
	}
	return settings
}

// warnOfDangers logs, before commands are sent, that settings may end the program: once for each
// process, and seldom if processes follow each other quickly. stateLock is held.
func (c *control) warnOfDangers(h *rbkit.HandshakeReply) {
	settings := c.dangers(h)
	if len(settings) == 0 || c.warnedOf == h.PID {
		return
	}
	c.warnedOf = h.PID
	c.Run.LogSeldom(&c.dangerous, c.logger.Warn, "Settings may crash the program: on Ruby 3.1 an old Rbkit server causes a segmentation fault. "+
		"Remove the settings, unless this gem is known to work with this Ruby",
		zap.Strings("settings", settings), zap.String("process", names.ValidString(h.ProcessName)), zap.Uint64("pid", h.PID),
		zap.String("version", names.ValidString(h.ServerVersion)))
}
