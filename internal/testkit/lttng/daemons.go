// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttng

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Daemons are a session daemon and a relay daemon.
type Daemons struct {
	// Home is the home of the daemons and of the traced programs.
	*Home
	Relay *Relay

	sessiond *process
}

// Start starts both daemons and waits until they are ready. They end with the test. Without LTTng, the test is
// skipped as in Require.
func Start(t testing.TB) *Daemons {
	t.Helper()
	Require(t)
	d := &Daemons{Home: NewHome(t)}
	d.Relay = &Relay{
		Live: testkit.Address(t), Output: filepath.Join(d.Dir, "relay"),
		daemons: d, control: testkit.Address(t), data: testkit.Address(t),
	}
	d.Relay.Start(t)
	_, port, err := net.SplitHostPort(testkit.Address(t))
	if err != nil {
		t.Fatal(err)
	}
	d.sessiond = start(t, d.command("lttng-sessiond", "--no-kernel", "--agent-tcp-port="+port), filepath.Join(d.Dir, "sessiond.log"))
	d.sessiond.await(t, "the session daemon answers", func() error {
		return d.command("lttng", "--no-sessiond", "list").Run()
	})
	return d
}

// EndSessionDaemon ends the session daemon in order, with all its sessions.
func (d *Daemons) EndSessionDaemon(t testing.TB) {
	t.Helper()
	if d.sessiond.hasEnded() {
		t.Fatalf("expected the session daemon to run, it has ended: %v\n%s", d.sessiond.exit, d.sessiond.said())
	}
	d.sessiond.terminate()
}

// lttng runs the command line client and returns its output.
func (d *Daemons) lttng(t testing.TB, arguments ...string) string {
	t.Helper()
	said, err := d.try(arguments...)
	if err != nil {
		t.Fatalf("lttng %s: %v\n%s", strings.Join(arguments, " "), err, said)
	}
	return said
}

// try is lttng, but it returns errors.
func (d *Daemons) try(arguments ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*testkit.Patience)
	defer cancel()
	said, err := d.commandFor(ctx, "lttng", append([]string{"--no-sessiond"}, arguments...)...).CombinedOutput()
	return string(said), err
}
