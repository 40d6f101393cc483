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
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/progress"
	"github.com/callbraid/callbraid/internal/componentkit/figures"
	"github.com/callbraid/callbraid/internal/lttng/lttnglive"
	"github.com/callbraid/callbraid/internal/lttng/sim/lttngrelay"
)

// lttngFlags are the flags of the command that simulates a relay daemon.
type lttngFlags struct {
	listen     string
	speed      string
	host, name string
	minor      uint32
	again      bool
	linger     time.Duration
	clear      int
	fault      string
	times      int
	verbose    bool
}

func lttngCommand() *cobra.Command {
	var f lttngFlags
	command := &cobra.Command{
		Use:   "lttng CAPTURE.zip|FOLDER",
		Short: "Play an LTTng relay daemon",
		Long: `Plays the relay daemon of LTTng to any viewer: it serves a capture of the live
protocol, or a folder of CTF traces as if they were recorded now.

At full speed all data is there when a viewer attaches the session. Otherwise
streams, metadata and packets arrive at their recorded times, counted from the
moment the first viewer attaches, and idle streams report that they are idle.

It ends when viewers have read every packet and disconnected, when none connects
again after a fault, or when it is interrupted.`,
		Example: `  agentsim lttng testdata/lttng/live/cygok.zip
  agentsim lttng --speed real --listen :5344 ~/lttng-traces/my-session
  agentsim lttng --fault stall:20 testdata/lttng/live/cyg1.zip
  babeltrace2 --input-format=lttng-live net://localhost:5344/host/HOST/NAME`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			return f.run(c.OutOrStdout(), args[0])
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.listen, "listen", "localhost:5344", "address to listen on, host:port")
	flags.StringVar(&f.speed, "speed", "full", "full, real, or a factor such as 2x or 0.5x")
	flags.StringVar(&f.host, "host", "", "host of the session (default: as recorded)")
	flags.StringVar(&f.name, "name", "", "name of the session (default: as recorded, or that of the folder)")
	flags.Uint32Var(&f.minor, "minor", lttnglive.MaxMinor, fmt.Sprintf("minor version of the protocol to announce, %d to %d", lttnglive.MinMinor, lttnglive.MaxMinor))
	flags.BoolVar(&f.again, "again", false, "begin again for every viewer, and do not end")
	flags.DurationVar(&f.linger, "linger", 2*time.Second, "how long viewers may stay when everything was read, and stay away after a fault")
	flags.IntVar(&f.clear, "clear", 0, "of each stream, remove so many packets after the first so many, as \"lttng clear\" does (0: none)")
	flags.StringVar(&f.fault, "fault", "", "fault after N packets of a connection: hangup:N, stall:N (in the middle of a reply) or announce:N (a packet that doesn't arrive)")
	flags.IntVar(&f.times, "fault-times", 1, "on how many connections it goes wrong")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print the requests of viewers")
	return command
}

// options checks the flags.
func (f *lttngFlags) options() (o lttngrelay.Options, err error) {
	o = lttngrelay.Options{Minor: f.minor, Restart: f.again, Forever: f.again, Linger: f.linger}
	if o.Speed, err = parseSpeed(f.speed); err != nil {
		return o, err
	}
	if f.minor < lttnglive.MinMinor || f.minor > lttnglive.MaxMinor {
		return o, fmt.Errorf("--minor: expected %d to %d, got %d", lttnglive.MinMinor, lttnglive.MaxMinor, f.minor)
	}
	if f.clear < 0 {
		return o, fmt.Errorf("--clear: expected at least 0, got %d", f.clear)
	}
	if f.times < 1 {
		return o, fmt.Errorf("--fault-times: expected at least 1, got %d", f.times)
	}
	if o.Fault, err = parseFault(f.fault); err != nil {
		return o, err
	}
	if o.Fault.Times = f.times; o.Fault.Kind != lttngrelay.NoFault {
		o.Restart = true // otherwise only one viewer could connect
	}
	return o, nil
}

// faultKinds are the faults by their names in flags.
var faultKinds = map[string]lttngrelay.FaultKind{
	"hangup": lttngrelay.HangUp, "stall": lttngrelay.Stall, "announce": lttngrelay.Announce,
}

// parseFault returns a fault of a kind and a number of packets.
func parseFault(text string) (lttngrelay.Fault, error) {
	if text == "" {
		return lttngrelay.Fault{}, nil
	}
	name, number, _ := strings.Cut(text, ":")
	after, err := strconv.Atoi(number)
	kind := faultKinds[name]
	if err != nil || after < 0 || kind == lttngrelay.NoFault {
		return lttngrelay.Fault{}, fmt.Errorf("--fault: expected hangup:N, stall:N or announce:N, got %q", text)
	}
	return lttngrelay.Fault{Kind: kind, After: after}, nil
}

// run serves the sessions of a path.
func (f *lttngFlags) run(out io.Writer, path string) (err error) {
	options, err := f.options()
	if err != nil {
		return err
	}
	source, err := lttngrelay.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := source.Name(f.host, f.name); err != nil {
		return fmt.Errorf("--host, --name: %w", err)
	}
	if f.clear > 0 {
		fmt.Fprintf(out, "%s packets are cleared\n", figures.Count(source.Clear(f.clear)))
	}
	bar := progress.New(os.Stderr, filepath.Base(path), "events", source.Events)
	if f.verbose {
		options.Log = func(format string, args ...any) { bar.Println(fmt.Sprintf(format, args...)) }
	}
	server, err := lttngrelay.NewServer(source, options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", f.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	for _, r := range source.Recordings {
		fmt.Fprintf(out, "serving %s: %s events in %s packets of %d streams\n", lttngrelay.Address(listener.Addr(), r.Session),
			figures.Count(source.Events), figures.Count(source.Packets), source.Streams)
	}
	begin := time.Now()
	bar.Start(func() uint64 { return server.Stats().Events })
	err = server.Serve(ctx, listener)
	bar.Stop()
	reportServed(out, server.Stats(), time.Since(begin))
	return err
}

// reportServed prints the numbers of served packets.
func reportServed(w io.Writer, s lttngrelay.Stats, took time.Duration) {
	fmt.Fprintf(w, "sent %s events, %s in %s packets, in %v to %d viewers; %d connections broke, %d by a fault\n",
		figures.Count(s.Events), figures.Bytes(s.Bytes), figures.Count(s.Packets), took.Round(time.Millisecond),
		s.Viewers, s.Broken, s.Faults)
}
