// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// unit is the content of a systemd unit: the values of each setting, in order.
type unit map[string][]string

func (s *system) unit(t *testing.T, name string) unit {
	t.Helper()
	u := unit{}
	for line := range strings.Lines(s.read(t, unitPath(name))) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(key, "#") {
			u[key] = append(u[key], value)
		}
	}
	return u
}

func unitPath(name string) string { return "/usr/lib/systemd/system/" + name + ".service" }

// last is the effective value of a setting with one value.
func (u unit) last(key string) string {
	if values := u[key]; len(values) > 0 {
		return values[len(values)-1]
	}
	return ""
}

// environment is the environment of a unit: its own variables, and those of its file.
func (s *system) environment(t *testing.T, u unit) map[string]string {
	t.Helper()
	variables := map[string]string{}
	lines := u["Environment"]
	if file := u.last("EnvironmentFile"); file != "" {
		lines = append(lines, strings.Split(s.read(t, file), "\n")...)
	}
	for _, line := range lines {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(key, "#") {
			variables[key] = strings.Trim(value, `"`)
		}
	}
	return variables
}

// word matches a word of a command line: text in quotes, or between spaces.
var word = regexp.MustCompile(`'[^']*'|\S+`)

// words are those of a unit's command, as systemd splits it: $NAME alone is the words of a
// variable, ${NAME} is its value.
func words(command string, variables map[string]string) []string {
	var all []string
	for _, w := range word.FindAllString(command, -1) {
		switch {
		case strings.HasPrefix(w, "'"):
			all = append(all, strings.Trim(w, "'"))
		case strings.HasPrefix(w, "${"):
			all = append(all, variables[strings.Trim(w, "${}")])
		case strings.HasPrefix(w, "$"):
			all = append(all, strings.Fields(variables[w[1:]])...)
		default:
			all = append(all, w)
		}
	}
	return all
}

// startUnit runs the command of a unit: as its user, with its environment and its state directory.
func (s *system) startUnit(t *testing.T, u unit) *service {
	t.Helper()
	user, group := u.last("User"), u.last("Group")
	if u.last("DynamicUser") == "yes" {
		user, group = "nobody", "nogroup" // systemd makes them
	}
	if state := u.last("StateDirectory"); state != "" {
		s.run(t, "install", "--directory", "--owner="+user, "--group="+group, "--mode="+u.last("StateDirectoryMode"), "/var/lib/"+state)
	}
	variables := s.environment(t, u)
	return s.start(t, program{user: user, group: group, environment: variables, command: words(u.last("ExecStart"), variables)})
}

// reload does the same as systemctl reload for a running unit: it stops at the first command that
// fails. It returns the output and that error.
func (s *system) reload(t *testing.T, u unit, running *service) (string, error) {
	t.Helper()
	variables := s.environment(t, u)
	variables["MAINPID"] = running.pid()
	for _, command := range u["ExecReload"] {
		p := program{user: u.last("User"), group: u.last("Group"), environment: variables, command: words(command, variables)}
		if said, err := s.command(p).CombinedOutput(); err != nil {
			return string(said), err
		}
	}
	return "", nil
}

// command is a program's, that runs in the system.
func (s *system) command(p program) *exec.Cmd {
	c := exec.Command("chroot", append([]string{"--userspec=" + p.user + ":" + p.group, s.root}, p.command...)...)
	c.Env = []string{"PATH=/usr/sbin:/usr/bin"}
	for key, value := range p.environment {
		c.Env = append(c.Env, key+"="+value)
	}
	return c
}
