// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/callbraid/callbraid/internal/bytefrog/sim/bytefrogagent"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/capture"
	"github.com/callbraid/callbraid/internal/bytefrog/sim/replay"
)

func replayCommand() *cobra.Command {
	var (
		agent   agentFlags
		speed   string
		shuffle uint64
		window  int
		repeat  int
	)
	command := &cobra.Command{
		Use:   "replay CAPTURE.zip",
		Short: "Replay the messages of a real agent",
		Long: `Replays a capture as a real agent would behave. It sends the messages of the data
connections in buffers, over as many data connections as the receiver configures,
and the messages of the control connection at their places. Heartbeats and the
answers to the receiver's commands are the player's own.

When the receiver suspends the agent, a replay with a speed leaves out the calls
whose time passes, as the traced program would have run on. At full speed the
program stands still until unsuspend, and leaves out nothing.`,
		Example: `  agentsim bytefrog replay testdata/bytefrog/maven.zip
  agentsim bytefrog replay --speed real testdata/bytefrog/shop.zip
  agentsim bytefrog replay --connections 8 --shuffle 1 testdata/bytefrog/maven.zip
  agentsim bytefrog replay --repeat 10 --endpoint collector:8765 testdata/bytefrog/maven.zip`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			options, err := agent.options()
			if err != nil {
				return err
			}
			factor, err := parseSpeed(speed)
			if err != nil {
				return err
			}
			if repeat < 1 {
				return fmt.Errorf("--repeat: expected at least 1, got %d", repeat)
			}
			program, err := openReplay(args[0], replay.Options{
				Speed:   factor,
				Shuffle: c.Flags().Changed("shuffle"),
				Seed:    shuffle,
				Window:  window,
				Repeat:  repeat,
			})
			if err != nil {
				return err
			}
			_, err = player{
				out:     c.OutOrStdout(),
				status:  os.Stderr,
				label:   filepath.Base(args[0]),
				total:   program.Events(),
				verbose: agent.verbose,
			}.play(options, []bytefrogagent.Program{program})
			return err
		},
	}
	agent.register(command)
	flags := command.Flags()
	flags.StringVar(&speed, "speed", "full", "full, real, or a factor such as 2x or 0.5x")
	flags.Uint64Var(&shuffle, "shuffle", 0, "put buffers out of order by this seed")
	flags.IntVar(&window, "shuffle-window", replay.DefaultWindow, "how many buffers are shuffled together (0: all)")
	flags.IntVar(&repeat, "repeat", 1, "how often to play the capture; numbers and times go on, and a data break stands between")
	return command
}

func openReplay(path string, o replay.Options) (*replay.Program, error) {
	c, err := capture.Open(path)
	if err != nil {
		return nil, err
	}
	r, err := replay.Load(c)
	if err != nil {
		return nil, fmt.Errorf("capture %s: %w", path, err)
	}
	return replay.New(r, o), nil
}

// parseSpeed returns how many times as fast as captured; 0 for full speed.
func parseSpeed(text string) (float64, error) {
	switch text {
	case "full":
		return 0, nil
	case "real":
		return 1, nil
	}
	factor, err := strconv.ParseFloat(strings.TrimSuffix(text, "x"), 64)
	if err == nil && !(factor > 0 && factor <= 1e6) {
		err = errors.New("out of range")
	}
	if err != nil {
		return 0, fmt.Errorf("--speed: expected full, real, or a factor above 0 such as 2x, got %q", text)
	}
	return factor, nil
}
