// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

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
)

// control asks a server and gives it orders, one at a time, on a connection that is made
// when it is needed. It is for several goroutines.
type control struct {
	env    *environment
	config *ServerConfig
	logger *zap.Logger
	// soon says that the state of the server should be corrected now.
	soon chan struct{}
	// silent is a burst of requests that got no answer, ignored one of orders that
	// changed nothing.
	silent, ignored logline.Burst
	// dangerous limits warnings of settings that may end the program, and warnedOf is the process
	// that the last one was about. The turn to steer guards it.
	dangerous logline.Seldom
	warnedOf  uint64

	// switched is what may have been switched on, wanted what is to be.
	switched switched
	wanted   wanted

	// steering is held while the state of the server is looked at and changed: by the
	// receiver, or by somebody who steers it.
	steering turn
	// asking is held while something is asked, and guards the requester.
	asking    turn
	requester *zmtp.Requester
	// memory is that of the server, and buffer what the requester has of it.
	memory *servermemory.Memory
	buffer *servermemory.Buffer
}

func newControl(env *environment, config *ServerConfig, logger *zap.Logger) *control {
	return &control{env: env, config: config, logger: logger, soon: make(chan struct{}, 1), wanted: newWanted(env.config), steering: newTurn(), asking: newTurn(), memory: servermemory.New(nil, 0)}
}

// handshake asks the server for its state. That it doesn't answer is counted and said.
func (c *control) handshake(ctx context.Context) (h rbkit.HandshakeReply, ok bool) {
	h, err := c.greet(ctx)
	return h, c.answered(ctx, err)
}

// greet asks the server for its state.
func (c *control) greet(ctx context.Context) (rbkit.HandshakeReply, error) {
	reply, err := c.ask(ctx, rbkit.Handshake)
	if err != nil {
		return rbkit.HandshakeReply{}, err
	}
	return rbkit.DecodeHandshake(reply)
}

// order gives an order, and reports whether the server says that it has it.
func (c *control) order(ctx context.Context, command rbkit.Command) bool {
	return c.answered(ctx, c.tell(ctx, command))
}

// tell gives an order, and waits until the server says that it has it.
func (c *control) tell(ctx context.Context, command rbkit.Command) error {
	reply, err := c.ask(ctx, command)
	if err != nil {
		return err
	}
	if err := rbkit.CheckOK(reply); err != nil {
		return fmt.Errorf("the reply to %s: %w", command, err)
	}
	return nil
}

// answered counts and says what came of a request.
func (c *control) answered(ctx context.Context, err error) bool {
	if err == nil {
		if c.silent.Over() {
			c.logger.Info("The server answers requests again")
		}
		return true
	}
	if ctx.Err() != nil {
		return false // nobody waits for it any more
	}
	c.env.telemetry.connectionFailed(socketRequest)
	c.env.LogSeldom(&c.silent, c.logger.Warn, "The server doesn't answer requests: its messages are received, but the receiver can't change its state",
		zap.String("request", c.config.Request), zap.Error(err))
	return false
}

// ask sends a command and gives its reply, which is the caller's.
func (c *control) ask(ctx context.Context, command rbkit.Command) ([]byte, error) {
	if err := c.asking.take(ctx); err != nil {
		return nil, err
	}
	defer c.asking.give()
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

// connect makes a connection, if there is none. The lock is held.
func (c *control) connect(ctx context.Context) error {
	if c.requester != nil {
		return nil
	}
	within, end := context.WithTimeoutCause(ctx, c.env.config.Timeout, zmtp.ErrTimeout)
	defer end()
	conn, err := c.env.dial(within, c.config.Request)
	if err != nil {
		return err
	}
	options, buffer := c.env.zmtpOptions(c.config), c.memory.Connected(conn)
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
		_ = c.requester.Close() // nothing is under way
		c.memory.Disconnected(c.buffer)
		c.requester, c.buffer = nil, nil
	}
}

// hangUp closes the connection: the server that answered may be gone.
func (c *control) hangUp() {
	_ = c.asking.take(context.Background()) // it is given by the deadlines of what is asked
	defer c.asking.give()
	c.disconnect()
}

// correctSoon has the state of the server corrected by whoever attends it.
func (c *control) correctSoon() {
	select {
	case c.soon <- struct{}{}:
	default:
	}
}

// correct switches on what is wanted and is off, and has the server confirm it. said is told
// each time what the server says of itself. ok is false where it doesn't answer.
func (c *control) correct(ctx context.Context, said func(*rbkit.HandshakeReply)) (ok bool) {
	if c.steering.take(ctx) != nil {
		return false // it is left
	}
	defer c.steering.give()
	h, ok := c.handshake(ctx)
	if !ok {
		return false
	}
	said(&h)
	c.switched.seen(h)
	c.warnOfDangers(&h)
	if c.isRight(h) {
		return true
	}
	for _, command := range c.missing(h) {
		// It may have it, also where its answer doesn't come any more.
		c.switched.note(command)
		if !c.order(ctx, command) {
			return false
		}
	}
	if h, ok = c.handshake(ctx); !ok {
		return false
	}
	said(&h)
	if c.isRight(h) {
		c.ignored.Over()
	} else {
		c.env.LogSeldom(&c.ignored, c.logger.Warn, "The server accepted commands, but its state has not changed",
			zap.Bool("memory_profile", h.ObjectTraceEnabled), zap.Bool("cpu_profile", h.CPUProfiling))
	}
	return true
}

func (c *control) isRight(h rbkit.HandshakeReply) bool { return len(c.missing(h)) == 0 }

// missing are the commands that make the state what is wanted. What others switched on
// stays on, by their clock: it takes effect at a start.
func (c *control) missing(h rbkit.HandshakeReply) (commands []rbkit.Command) {
	wanted, clock := c.wanted.now()
	if wanted.tracing && !h.ObjectTraceEnabled {
		commands = append(commands, rbkit.StartMemoryProfile)
	}
	if wanted.profiling && !h.CPUProfiling {
		switch clock {
		case ClockWall:
			commands = append(commands, rbkit.UseWallTime)
		case ClockCPU:
			commands = append(commands, rbkit.UseCPUTime)
		}
		commands = append(commands, rbkit.StartCPUProfiling)
	}
	return commands
}

// farewell is how long a shutdown tries to leave the server as it was found.
const farewell = time.Second

var errFarewell = errors.New("the time to restore the server at a shutdown is over")

// leave switches off what the receiver switched on, and closes the connection.
func (c *control) leave(ctx context.Context) {
	_ = c.steering.take(context.Background()) // whoever had it do something gives up
	defer c.steering.give()
	ctx, end := context.WithTimeoutCause(ctx, min(farewell, c.env.config.ShutdownTimeout), errFarewell)
	defer end()
	defer c.hangUp()
	on := c.switched.on()
	left := true
	if on.tracing {
		left = c.order(ctx, rbkit.StopMemoryProfile)
	}
	if on.profiling {
		left = c.order(ctx, rbkit.StopCPUProfiling) && left
	}
	if !left {
		c.logger.Warn("The receiver could not switch off profiles that it switched on in the server",
			zap.Bool("memory_profile", on.tracing), zap.Bool("cpu_profile", on.profiling))
	}
}

// turn is a lock that nobody waits for longer than their context.
type turn chan struct{}

func newTurn() turn { return make(turn, 1) }

// take waits for the lock. The error is why the context has ended; without one, give has to
// be called.
func (t turn) take(ctx context.Context) error {
	select {
	case t <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (t turn) give() { <-t }

// dangers are the settings that have an old server do what ends a program on a Ruby of today.
func (c *control) dangers(h *rbkit.HandshakeReply) (settings []string) {
	if !isOld(h.ServerVersion) {
		return nil
	}
	if wanted, _ := c.wanted.now(); wanted.tracing && !h.ObjectTraceEnabled {
		settings = append(settings, "memory_profile")
	}
	if c.env.config.ObjectSpaceSnapshotInterval > 0 {
		settings = append(settings, "objectspace_snapshot_interval")
	}
	return settings
}

// warnOfDangers logs, before commands are sent, that settings may end the program: once for each
// process, and seldom where processes follow each other closely. The turn to steer is held.
func (c *control) warnOfDangers(h *rbkit.HandshakeReply) {
	settings := c.dangers(h)
	if len(settings) == 0 || c.warnedOf == h.PID {
		return
	}
	c.warnedOf = h.PID
	c.env.LogSeldom(&c.dangerous, c.logger.Warn, "Settings may crash the program: on Ruby 3.1 an old Rbkit server causes a segmentation fault. "+
		"Remove the settings, unless this gem is known to work with this Ruby",
		zap.Strings("settings", settings), zap.String("process", text(h.ProcessName)), zap.Uint64("pid", h.PID),
		zap.String("version", text(h.ServerVersion)))
}
