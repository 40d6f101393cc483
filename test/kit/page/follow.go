// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/callbraid/callbraid/internal/testkit"
)

// Follow follows a page of docs/ in its order, and fails the test if an output differs. The project
// is the directory of the checkout.
func Follow(t testing.TB, project, name string) {
	t.Helper()
	follow(t, project, name, func() *machine { return newMachine(t, project) })
}

// FollowInstalled is Follow in a system in a folder, where the packages are installed and the page's services run.
func FollowInstalled(t testing.TB, project, name, root string) {
	t.Helper()
	follow(t, project, name, func() *machine { return installedMachine(t, root) })
}

func follow(t testing.TB, project, name string, on func() *machine) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(project, "docs", name))
	if err != nil {
		t.Fatal(err)
	}
	steps, err := stepsOf(string(text))
	if err != nil {
		t.Fatalf("docs/%s: %v", name, err)
	}
	if len(steps) == 0 {
		t.Fatalf("docs/%s: expected steps, got none", name)
	}
	r := &reader{page: "docs/" + name, steps: steps, machine: on()}
	for at := 0; at < len(steps); {
		at += r.follow(t, at)
	}
}

// reader follows the commands of a page.
type reader struct {
	page    string
	steps   []step
	machine *machine
}

// follow does a step, together with the blocks of its output, and returns their number.
func (r *reader) follow(t testing.TB, at int) (done int) {
	t.Helper()
	s := r.steps[at]
	switch s.kind {
	case run:
		if at+1 < len(r.steps) {
			switch next := r.steps[at+1]; next.kind {
			case shows, showsTheLike:
				r.lookUntil(t, s, newShown(next.text, next.kind == showsTheLike), next.text)
				return 2
			case showsNothing:
				r.lookOnce(t, s)
				return 2
			}
		}
		r.run(t, s)
	case terminal:
		r.start(t, s)
	case file:
		r.write(t, filepath.Join(r.machine.dir, filepath.FromSlash(s.name)), s.text)
	case says:
		r.awaitSaid(t, s)
	case saysOnlyInfo:
		r.checkOnlyInfo(t, s)
	case ends:
		r.end(t, s)
	case notRun:
	default:
		t.Fatalf("%s: %q: expected commands before the block with their output", r.where(s), s.kind)
	}
	return 1
}

// where is the place of a step.
func (r *reader) where(s step) string { return fmt.Sprintf("%s:%d", r.page, s.line) }

// noted is the path of a file about a step.
func (r *reader) noted(s step, ending string) string {
	return filepath.Join(r.machine.notes, fmt.Sprint(s.line)+ending)
}

func (r *reader) write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *reader) read(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// do runs the commands of a step in the shell. In form, $0 stands for the commands and $1 for the
// file of their output.
func (r *reader) do(t testing.TB, s step, form string) (status, said string, ok bool) {
	t.Helper()
	commands, output := r.noted(s, ".sh"), r.noted(s, ".txt")
	r.write(t, commands, s.text)
	status, ok = r.machine.do(strings.NewReplacer("$0", "'"+r.machine.inside(commands)+"'", "$1", "'"+r.machine.inside(output)+"'").Replace(form))
	return status, r.read(output), ok
}

// run runs commands, each of which has to succeed. Their variables stay for the next commands.
func (r *reader) run(t testing.TB, s step) {
	t.Helper()
	_, said, ok := r.do(t, s, "set -e; . $0 > $1 2>&1 < /dev/null; set +e")
	if !ok {
		t.Fatalf("%s: a command failed:\n%s\n%s%s", r.where(s), s.text, said, r.terminals())
	}
}

// pause is between two looks: they are programs that are started.
const pause = "sleep 0.2"

// look does commands that only look at something.
func (r *reader) look(t testing.TB, s step) (status, said string) {
	t.Helper()
	status, said, ok := r.do(t, s, "( set -e; . $0 ) > $1 2>&1 < /dev/null")
	if !ok {
		t.Fatalf("%s: the shell has ended: %s", r.where(s), r.machine.errors.String())
	}
	return status, said
}

// lookUntil looks until the output is that of the page.
func (r *reader) lookUntil(t testing.TB, s step, wanted shown, text string) {
	t.Helper()
	var status, said string
	defer func() {
		if t.Failed() {
			t.Logf("%s: %s\nshows\n%sand not\n%s%s", r.where(s), s.text, said, text, r.terminals())
		}
	}()
	testkit.Eventually(t, r.where(s)+" shows what the page says", func() (bool, string) {
		if status != "" {
			r.machine.do(pause)
		}
		status, said = r.look(t, s)
		return status == "0" && wanted.is(said), "exit status " + status
	})
}

// lookOnce checks that commands print nothing. It ignores their status: grep fails if it finds
// nothing.
func (r *reader) lookOnce(t testing.TB, s step) {
	t.Helper()
	if _, said := r.look(t, s); said != "" {
		t.Fatalf("%s: expected nothing, got\n%s", r.where(s), said)
	}
}

// start starts a terminal.
func (r *reader) start(t testing.TB, s step) {
	t.Helper()
	commands := r.noted(s, ".sh")
	r.write(t, commands, s.text)
	if _, ok := r.machine.do(fmt.Sprintf("( . '%[1]s' ) > '%[2]s' 2>&1 < /dev/null & echo $! > '%[2]s.pid'", r.machine.inside(commands), r.machine.inside(r.terminal(s.name)))); !ok {
		t.Fatalf("%s: the shell has ended: %s", r.where(s), r.machine.errors.String())
	}
}

// end asks the programs of a terminal to end, and waits for them.
func (r *reader) end(t testing.TB, s step) {
	t.Helper()
	status, ok := r.machine.do(fmt.Sprintf("pkill -TERM -P $(cat '%[1]s.pid') && wait $(cat '%[1]s.pid')", r.machine.inside(r.terminal(s.name))))
	if !ok || status != "0" {
		t.Fatalf("%s: expected that the programs of terminal %s end well, got status %q%s", r.where(s), s.name, status, r.terminals())
	}
}

// terminal is the path of a terminal's output.
func (r *reader) terminal(name string) string {
	return filepath.Join(r.machine.notes, name+".log")
}

// lastSaid bounds the part of a terminal's output in a failure, in bytes.
const lastSaid = 4 << 10

// terminals is the output of all terminals, for the message of a failure.
func (r *reader) terminals() string {
	var all strings.Builder
	for _, s := range r.steps {
		if s.kind == terminal {
			said := r.read(r.terminal(s.name))
			fmt.Fprintf(&all, "\nterminal %s:\n%s", s.name, said[max(0, len(said)-lastSaid):])
		}
	}
	return all.String()
}

// awaitSaid waits until a terminal has printed lines.
func (r *reader) awaitSaid(t testing.TB, s step) {
	t.Helper()
	wanted := newShown(s.text, false)
	testkit.Eventually(t, fmt.Sprintf("%s: terminal %s prints\n%s", r.where(s), s.name, s.text), func() (bool, string) {
		return wanted.in(r.read(r.terminal(s.name))), r.terminals()
	})
}

// checkOnlyInfo checks that a collector has logged no warning or error.
func (r *reader) checkOnlyInfo(t testing.TB, s step) {
	t.Helper()
	for line := range strings.Lines(r.read(r.terminal(s.name))) {
		if !strings.Contains(line, "\tinfo\t") {
			t.Errorf("%s: expected only information of terminal %s, got\n%s", r.where(s), s.name, line)
		}
	}
}
