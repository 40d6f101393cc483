// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/rbkit"
	"github.com/callbraid/callbraid/internal/rbkit/sim/capture"
	"github.com/callbraid/callbraid/internal/rbkit/sim/rbkitserver"
)

// rbkitFlags are the flags of each command that simulates an Rbkit server.
type rbkitFlags struct {
	publish, request string
	mute, deaf       bool
	replyDelay       time.Duration
	garbage          int
	wait             bool
	linger           time.Duration
	verbose          bool
}

func rbkitCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "rbkit",
		Short: "Play an Rbkit server",
		Long: `Plays the server of Rbkit that runs inside a Ruby process: it publishes on one
port, and answers requests and obeys commands on another.`,
	}
	command.AddCommand(rbkitReplayCommand(), rbkitLoadCommand())
	return command
}

func (f *rbkitFlags) register(c *cobra.Command) {
	flags := c.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.publish, "publish", "localhost:5555", "address to publish on, host:port")
	flags.StringVar(&f.request, "request", "localhost:5556", "address to answer requests on, host:port (empty: none)")
	flags.BoolVar(&f.mute, "mute", false, "answer no request, as an old server on a new Ruby")
	flags.BoolVar(&f.deaf, "deaf", false, "acknowledge commands and don't obey them")
	flags.DurationVar(&f.replyDelay, "reply-delay", 0, "time before each answer")
	flags.IntVar(&f.garbage, "garbage", 0, "publish a message that is garbage after each so many (0: none)")
	flags.BoolVar(&f.wait, "wait", true, "wait for a subscriber before anything is published")
	flags.DurationVar(&f.linger, "linger", time.Second, "how long to answer requests when everything was published")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print each command")
}

func (f *rbkitFlags) check() error {
	switch {
	case f.replyDelay < 0:
		return fmt.Errorf("--reply-delay: expected at least 0, got %v", f.replyDelay)
	case f.garbage < 0:
		return fmt.Errorf("--garbage: expected at least 0, got %d", f.garbage)
	case f.linger < 0:
		return fmt.Errorf("--linger: expected at least 0, got %v", f.linger)
	}
	return nil
}

// rbkitRun is a simulated server.
type rbkitRun struct {
	*rbkitserver.Server
	flags *rbkitFlags
	bar   *progress.Progress
	// serving is until when requests are answered.
	serving context.Context
	// dumps has an item for each requested dump.
	dumps           chan struct{}
	messages, bytes atomic.Uint64
	garbage         int
}

// play serves until do has published all messages, and clients had time for requests.
func (f *rbkitFlags) play(out io.Writer, label string, hello rbkit.HandshakeReply, do func(context.Context, *rbkitRun) error) error {
	publish, err := net.Listen("tcp", f.publish)
	if err != nil {
		return fmt.Errorf("--publish: %w", err)
	}
	var request net.Listener
	if f.request != "" {
		if request, err = net.Listen("tcp", f.request); err != nil {
			return errors.Join(fmt.Errorf("--request: %w", err), publish.Close())
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	serving, end := context.WithCancel(context.WithoutCancel(ctx))
	r := &rbkitRun{flags: f, bar: progress.New(os.Stderr, label, "messages", 0), serving: serving, dumps: make(chan struct{}, 1)}
	r.Server = rbkitserver.New(rbkitserver.Options{Hello: hello, Mute: f.mute, Deaf: f.deaf, Commanded: r.commanded})
	fmt.Fprintf(out, "publishing on %s, in the %s dialect\n", publish.Addr(), hello.Dialect)
	served := make(chan error, 1)
	go func() { served <- r.Serve(serving, publish, request) }()
	r.bar.Start(r.messages.Load)
	err = r.publish(ctx, do)
	r.bar.Stop()
	end()
	err = errors.Join(err, <-served)
	fmt.Fprintf(out, "published %s messages, %s; slow subscribers did not get %s; %d commands received\n",
		figures.Count(r.messages.Load()), figures.Bytes(r.bytes.Load()), figures.Count(r.Dropped()), len(r.Commands()))
	return err
}

// publish waits for a subscriber, publishes, and lingers. An interruption is no error.
func (r *rbkitRun) publish(ctx context.Context, do func(context.Context, *rbkitRun) error) error {
	for r.flags.wait && r.Subscribers() == 0 && ctx.Err() == nil {
		pause(ctx, 10*time.Millisecond)
	}
	err := do(ctx, r)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = r.Drain(ctx)
	}
	pause(ctx, r.flags.linger)
	return err
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// commanded is called for each command.
func (r *rbkitRun) commanded(command rbkit.Command) {
	if r.flags.verbose {
		r.bar.Println("command: " + string(command))
	}
	if command == rbkit.ObjectSpaceSnapshot {
		select {
		case r.dumps <- struct{}{}:
		default:
		}
	}
	pause(r.serving, r.flags.replyDelay)
}

// sent counts a message, and sends garbage after it when it is time.
func (r *rbkitRun) sent(bytes int) {
	r.bytes.Add(uint64(bytes))
	n := r.messages.Add(1)
	if r.flags.garbage > 0 && n%uint64(r.flags.garbage) == 0 {
		r.Publish(rbkitserver.Garbage(r.garbage))
		r.garbage++
	}
}

func rbkitReplayCommand() *cobra.Command {
	var f rbkitFlags
	var speed string
	var repeat int
	command := &cobra.Command{
		Use:   "replay CAPTURE.zip",
		Short: "Replay the messages of a real server",
		Long: `Publishes the messages of a capture, byte for byte. In a repetition their numbers
begin again, as those of a restarted server.`,
		Example: `  agentsim rbkit replay testdata/rbkit/released-30s.zip
  agentsim rbkit replay --speed real --verbose testdata/rbkit/documented-30s.zip
  agentsim rbkit replay --mute --garbage 10 testdata/rbkit/released-30s.zip`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			factor, err := parseSpeed(speed)
			if err != nil {
				return err
			}
			if repeat < 1 {
				return fmt.Errorf("--repeat: expected at least 1, got %d", repeat)
			}
			if err := f.check(); err != nil {
				return err
			}
			recording, err := capture.Open(args[0])
			if err != nil {
				return err
			}
			return f.play(c.OutOrStdout(), filepath.Base(args[0]), rbkitserver.Hello(recording), func(ctx context.Context, r *rbkitRun) error {
				for range repeat {
					if err := r.Replay(ctx, recording, factor, func(m capture.Message) { r.sent(len(m.Data)) }); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
	f.register(command)
	command.Flags().StringVar(&speed, "speed", "full", "full, real, or a factor such as 2x or 0.5x")
	command.Flags().IntVar(&repeat, "repeat", 1, "how often to play the capture")
	return command
}

// rbkitLoad has the options of the load command.
type rbkitLoad struct {
	options     rbkitserver.LoadOptions
	documented  bool
	rate        float64
	messages    int
	duration    time.Duration
	dumpObjects int
}

func rbkitLoadCommand() *cobra.Command {
	var f rbkitFlags
	var l rbkitLoad
	command := &cobra.Command{
		Use:   "load",
		Short: "Generate any number of events",
		Long: `Publishes the events of a simulated program: objects that are created and destroyed,
garbage collections and statistics, and a dump at a command. In the documented dialect
there are CPU samples and snapshots of allocations instead of objects. The same seed
gives the same events.

Without --messages and --duration it runs until it is interrupted. A subscriber
that is too slow for the rate loses messages, as with a real server.`,
		Example: `  agentsim rbkit load --duration 10s
  agentsim rbkit load --documented --rate 50 --events 1000 --messages 500`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := errors.Join(f.check(), l.check()); err != nil {
				return err
			}
			hello := rbkit.HandshakeReply{
				Dialect: l.dialect(), ServerVersion: "0.1.10", ProtocolVersion: "2.1", ProcessName: "load.rb",
				PID: uint64(os.Getpid()), Clock: "wall", CPUProfilingMode: "sampling",
			}
			var err error
			if hello.WorkingDirectory, err = os.Getwd(); err != nil {
				return err
			}
			return f.play(c.OutOrStdout(), "load", hello, l.publish)
		},
	}
	f.register(command)
	flags := command.Flags()
	flags.BoolVar(&l.documented, "documented", false, "speak the dialect of the document instead of the released one")
	flags.IntVar(&l.options.Events, "events", 400, "events of a message")
	flags.IntVar(&l.options.Classes, "classes", 50, "classes of objects")
	flags.IntVar(&l.dumpObjects, "dump-objects", 20_000, "objects of a dump, when one is asked for")
	flags.Float64Var(&l.rate, "rate", 10, "messages in a second (0: as many as possible)")
	flags.IntVar(&l.messages, "messages", 0, "end after so many messages (0: no end)")
	flags.DurationVar(&l.duration, "duration", 0, "end after this time (0: no end)")
	flags.Uint64Var(&l.options.Seed, "seed", 1, "seed of the program")
	return command
}

func (l *rbkitLoad) check() error {
	for _, flag := range []struct {
		name  string
		value int
		least int
	}{{"events", l.options.Events, 1}, {"classes", l.options.Classes, 1}, {"dump-objects", l.dumpObjects, 0}, {"messages", l.messages, 0}} {
		if flag.value < flag.least {
			return fmt.Errorf("--%s: expected at least %d, got %d", flag.name, flag.least, flag.value)
		}
	}
	if l.rate < 0 || l.duration < 0 {
		return fmt.Errorf("--rate, --duration: expected at least 0, got %v and %v", l.rate, l.duration)
	}
	return nil
}

func (l *rbkitLoad) dialect() rbkit.Dialect {
	if l.documented {
		return rbkit.Documented
	}
	return rbkit.Released
}

// publish publishes messages up to their number.
func (l *rbkitLoad) publish(ctx context.Context, r *rbkitRun) error {
	if l.duration > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeout(ctx, l.duration)
		defer end()
	}
	program, events := rbkitserver.NewLoad(l.dialect(), l.options), rbkit.NewCollection(l.dialect())
	begin := time.Now()
	for n := 0; (l.messages == 0 || n < l.messages) && ctx.Err() == nil; n++ {
		if l.rate > 0 {
			pause(ctx, time.Until(begin.Add(time.Duration(float64(n)/l.rate*float64(time.Second)))))
		}
		dump := false
		select {
		case <-r.dumps:
			dump = true
		default:
		}
		now := time.Now()
		events.Reset()
		err := program.Message(now, events)
		if err == nil && dump {
			err = program.Dump(now, l.dumpObjects, events)
		}
		if err != nil {
			return err
		}
		r.sent(r.PublishEvents(now, events))
	}
	return nil
}
