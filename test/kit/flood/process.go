// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package flood

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// variable has the Options of a process that only attacks.
const variable = "CALLBRAID_FLOOD"

// RunIfChild attacks and ends the process if Spawn started it. A program that uses Spawn
// calls it first in main or TestMain.
func RunIfChild() {
	text := os.Getenv(variable)
	if text == "" {
		return
	}
	var o Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		fmt.Fprintf(os.Stderr, "expected the options of a flood in %s: %v\n", variable, err)
		os.Exit(1)
	}
	f := Start(o)
	go report(f)
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is the order to end
	os.Exit(0)
}

// reportInterval is the interval at which a process reports its counts.
const reportInterval = 100 * time.Millisecond

func report(f *Flood) {
	encoder := json.NewEncoder(os.Stdout)
	for range time.Tick(reportInterval) {
		if encoder.Encode(f.Counts()) != nil {
			return
		}
	}
}

// Process is an attack by a process of its own. So peers in this process have their time.
type Process struct {
	command *exec.Cmd
	stdin   io.Closer
	counts  *json.Decoder
}

// Spawn starts an attack in a process of its own, which runs this program again.
func Spawn(o Options) (*Process, error) {
	text, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p := &Process{command: exec.Command(program)}
	p.command.Env = append(os.Environ(), variable+"="+string(text))
	p.command.Stderr = os.Stderr
	if p.stdin, err = p.command.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.counts = json.NewDecoder(out)
	return p, p.command.Start()
}

// Await reads the counts of the attack until they satisfy a condition.
func (p *Process) Await(reached func(Counts) bool) (c Counts, err error) {
	for {
		if err := p.counts.Decode(&c); err != nil {
			return c, fmt.Errorf("read the counts of the flood: %w", err)
		}
		if reached(c) {
			return c, nil
		}
	}
}

// Stop ends the attack. It returns the last counts.
func (p *Process) Stop() (last Counts, err error) {
	_ = p.stdin.Close() // the process ends for it
	for p.counts.Decode(&last) == nil {
		continue
	}
	return last, p.command.Wait()
}
