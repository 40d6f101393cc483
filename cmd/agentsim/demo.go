// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/callbraid/callbraid/cmd/agentsim/internal/demo"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
)

func demoCommand() *cobra.Command {
	var (
		o       demo.Options
		capture string
	)
	command := &cobra.Command{
		Use:   "demo",
		Short: "Start a collector, replay a capture into it, and summarise the counted calls",
		Long: `Starts the collector as a child process, plays a capture of a real agent into it
through the real protocol, waits until all calls are in its call tree, and prints a
summary of them, and the address of the program's page.

On a terminal the collector runs until it is interrupted, so that its pages can be
looked at; elsewhere it ends. --keep, or DEMO_KEEP=true or false in the environment,
changes this.

With DEMO_SCREENSHOT=file.png in the environment a picture of the page is left in
that file, if Chromium is there.

Collector, configuration and capture are those of the working directory, or else those of the
archive or package that agentsim is from. If the installed service runs, stop it before, because
the demo uses the same ports.

The configuration has to show all calls as flame graphs, and to write its output into the
directory that the environment variable CALLBRAID_DATA names, as config/standalone.yaml does.`,
		Example: `  agentsim demo
  agentsim demo --keep=false
  DEMO_SCREENSHOT=maven.png agentsim demo
  agentsim demo --capture testdata/bytefrog/shop.zip --data /tmp/shop`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			// Unless they are given, the files are those of a checkout, an unpacked archive or an installed package.
			for name, file := range map[string]*string{"collector": &o.Collector, "config": &o.Config, "capture": &capture} {
				if !c.Flags().Changed(name) {
					*file = shipped(*file, roots())
				}
			}
			program, err := openReplay(capture, replay.Options{})
			if err != nil {
				return err
			}
			o.Out, o.Status = c.OutOrStdout(), os.Stderr
			o.Calls = program.Calls()
			o.Agent = func() error {
				_, err := player{
					out:    c.OutOrStdout(),
					status: os.Stderr,
					label:  filepath.Base(capture),
					total:  program.Events(),
				}.play(bytefrogagent.Options{Endpoint: o.Endpoint}, []bytefrogagent.Program{program})
				return err
			}
			o.Screenshot = os.Getenv("DEMO_SCREENSHOT")
			o.Service = strings.TrimSuffix(filepath.Base(capture), filepath.Ext(capture))
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			defer stop()
			err = demo.Run(ctx, o)
			if errors.Is(err, context.Canceled) {
				return fmt.Errorf("interrupted")
			}
			return err
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&o.Collector, "collector", fromEnvironment("CALLBRAID_COLLECTOR", "bin/otelcol-callbraid"), "path of the collector")
	flags.StringVar(&o.Config, "config", "config/standalone.yaml", "path of its configuration")
	flags.StringVar(&capture, "capture", "testdata/bytefrog/maven.zip", "path of the capture")
	flags.StringVar(&o.Data, "data", fromEnvironment("CALLBRAID_DATA", "callbraid-data/demo"), "directory for the collector's output")
	flags.StringVar(&o.Endpoint, "endpoint", "localhost:8765", "address of the configuration's receiver")
	flags.StringVar(&o.Health, "health", "http://localhost:13133", "the configuration's health check")
	flags.StringVar(&o.Metrics, "metrics", "http://localhost:8889/metrics", "the configuration's Prometheus exporter")
	flags.StringVar(&o.Pages, "pages", "http://localhost:4040", "the configuration's flame graphs")
	flags.BoolVar(&o.Keep, "keep", keepsRunning(), "keep the collector running until an interrupt, so that you can look at its pages")
	return command
}

// roots are the folders that can have the project's files, the nearest first: the working directory, an unpacked archive, and the
// folder of an installed package. agentsim is in the folder bin of the latter two.
func roots() []string {
	found := []string{"."}
	program, err := os.Executable()
	if err != nil { // no /proc, as in some chroots
		program, err = exec.LookPath(os.Args[0])
	}
	if err == nil {
		above := filepath.Dir(filepath.Dir(program))
		found = append(found, above, filepath.Join(above, "share", "otelcol-callbraid"))
	}
	return found
}

// shipped is the path of a file in the first of the roots that has it, or the path below the first one, for an error.
func shipped(file string, roots []string) string {
	if filepath.IsAbs(file) {
		return file // from the environment
	}
	for _, root := range roots {
		path := filepath.Join(root, file)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return file
}

// keepsRunning is the default of --keep: the value of the environment, or true on a terminal.
func keepsRunning() bool {
	if keep, err := strconv.ParseBool(os.Getenv("DEMO_KEEP")); err == nil {
		return keep
	}
	return term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("CI") == ""
}

// fromEnvironment returns a variable, or the default if it is not set.
func fromEnvironment(variable, standard string) string {
	if value := os.Getenv(variable); value != "" {
		return value
	}
	return standard
}
