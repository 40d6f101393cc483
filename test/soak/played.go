// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/callbraid/callbraid/test/kit"
)

// played counts the data of the agents and servers that agentsim simulates, over all their lives.
type played struct {
	// sessions is the number of times that a relay daemon's session was read.
	sessions atomic.Int64
	// Of Rbkit: published messages, including garbage, and messages for which the collector was too
	// slow.
	servers, messages, slow atomic.Int64
	// Of Greys and Arthas.
	greysTold, arthasTold told
	// Of LTTng's agents: the number of registrations.
	registrations atomic.Int64
}

// told counts calls in reports of monitors, and call trees.
type told struct{ calls, trees atomic.Int64 }

// lifetime is the time between two restarts of a simulated peer.
const lifetime = "20s"

// garbageEvery is the number of Rbkit messages for each garbage message.
const garbageEvery = 50

func (p *played) rbkit(ctx context.Context, t testing.TB, publish, request string) {
	repeat(ctx, t, func(said []byte) {
		messages, slow := number(t, `published ([\d,]+) messages`, said), number(t, `did not get ([\d,]+)`, said)
		p.servers.Add(1)
		p.messages.Add(messages + messages/garbageEvery)
		p.slow.Add(slow)
	}, "rbkit", "load", "--publish", publish, "--request", request, "--rate", "20", "--duration", lifetime,
		"--garbage", strconv.Itoa(garbageEvery))
}

func (p *played) greys(ctx context.Context, t testing.TB, address string) {
	p.greysTold.repeat(ctx, t, "greys", "--listen", address, "--protocol", "console", "--fault", "close,cut,silence,half,lost", "--fault-every", "20")
}

func (p *played) arthas(ctx context.Context, t testing.TB, address string) {
	p.arthasTold.repeat(ctx, t, "arthas", "--listen", address, "--fault", "close,cut,not-json,interrupt,expire", "--fault-every", "20")
}

// repeat runs servers one after the other, and adds the numbers that they write.
func (n *told) repeat(ctx context.Context, t testing.TB, arguments ...string) {
	truth := filepath.Join(t.TempDir(), "truth.json")
	repeat(ctx, t, func([]byte) {
		var lives []struct {
			Told  map[string]struct{ Calls int64 }
			Trees int64
		}
		text, err := os.ReadFile(truth)
		if err == nil {
			err = json.Unmarshal(text, &lives)
		}
		if err != nil {
			t.Errorf("numbers of %s: %v", arguments[0], err)
		}
		for _, life := range lives {
			n.trees.Add(life.Trees)
			for _, of := range life.Told {
				n.calls.Add(of.Calls)
			}
		}
	}, append(arguments, "--duration", lifetime, "--truth", truth)...)
}

func (p *played) agents(ctx context.Context, t testing.TB, portFile string) {
	repeat(ctx, t, func(said []byte) { p.registrations.Add(number(t, `([\d,]+) connections`, said)) },
		"lttng-agent", "--port-file", portFile, "--agents", "5", "--duration", lifetime)
}

func (p *played) relay(ctx context.Context, t testing.TB, address, session string) {
	repeat(ctx, t, func([]byte) { p.sessions.Add(1) }, "lttng", "--listen", address, session)
}

// number returns the number that an expression finds in the output of agentsim.
func number(t testing.TB, expression string, said []byte) int64 {
	found := regexp.MustCompile(expression).FindSubmatch(said)
	if found == nil {
		t.Errorf("expected %q in what agentsim says, got %q", expression, said)
		return 0
	}
	n, err := strconv.ParseInt(strings.ReplaceAll(string(found[1]), ",", ""), 10, 64)
	if err != nil {
		t.Errorf("%q: %v", expression, err)
	}
	return n
}

// repeat runs agentsim again and again until ctx ends, and the last time to its end. It calls ended
// with the output of each run.
func repeat(ctx context.Context, t testing.TB, ended func(said []byte), arguments ...string) {
	for ctx.Err() == nil {
		command := exec.Command(kit.AgentSim(t), arguments...)
		var said bytes.Buffer
		command.Stdout, command.Stderr = &said, &said
		if err := command.Run(); err != nil {
			t.Errorf("%s: %v\n%s", command, err, said.Bytes())
			return
		}
		ended(said.Bytes())
	}
}
