// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/test/testbed"
)

// builder builds images from the folder that the packages' folder is in.
type builder struct{ project, state string }

func imageBuilder(t *testing.T) *builder {
	t.Helper()
	packages := dist(t)
	want(t, "buildah", "buildah")
	return &builder{project: filepath.Dir(packages), state: t.TempDir()}
}

func (b *builder) run(t *testing.T, command string, arguments ...string) string {
	t.Helper()
	state := []string{"--storage-driver=vfs", "--root=" + b.state + "/root", "--runroot=" + b.state + "/run", command}
	c := exec.Command("buildah", append(state, arguments...)...)
	c.Dir = b.project
	return strings.TrimSpace(run(t, c))
}

// build builds an image, and gives the root of a container of it.
func (b *builder) build(t *testing.T, file, tag string) string {
	t.Helper()
	b.run(t, "build", "--isolation=chroot", "--file="+file, "--tag="+tag, ".")
	container := b.run(t, "from", tag)
	root := b.run(t, "mount", container)
	t.Cleanup(func() { b.run(t, "umount", container) })
	return root
}

// image is how a container of an image is run.
type image struct {
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	ExposedPorts map[string]struct{}
	Volumes      map[string]struct{}
}

func (b *builder) inspect(t *testing.T, tag string) image {
	t.Helper()
	var said struct {
		OCIv1 struct{ Config image }
	}
	require.NoError(t, json.Unmarshal([]byte(b.run(t, "inspect", "--type=image", tag)), &said))
	return said.OCIv1.Config
}

// program is what a container of the image runs, with its addresses replaced by those of e.
func (i image) program(t *testing.T, e endpoints) program {
	t.Helper()
	user, group, _ := strings.Cut(i.User, ":")
	p := program{user: user, group: group, environment: map[string]string{}, command: i.Entrypoint}
	for _, variable := range i.Env {
		key, value, _ := strings.Cut(variable, "=")
		p.environment[key] = value
	}
	command := strings.Join(i.Cmd, "\n")
	for port, free := range map[string]string{"4040": e.flameGraph, "8765": e.bytefrog, "8889": e.prometheus, "13133": e.health} {
		require.Contains(t, i.ExposedPorts, port+"/tcp")
		all := "endpoint=0.0.0.0:" + port
		require.Equal(t, 1, strings.Count(command, all), all)
		command = strings.Replace(command, all, "endpoint="+free, 1)
	}
	p.command = append(p.command, strings.Split(command, "\n")...)
	p.command = append(p.command, "--set=service.telemetry.metrics.readers="+e.readers())
	return p
}

func TestTheImageRuns(t *testing.T) {
	b := imageBuilder(t)
	s := &system{root: b.build(t, "packaging/Dockerfile", "otelcol-callbraid")}
	i := b.inspect(t, "otelcol-callbraid")
	assert.Equal(t, "65532:65532", i.User)
	assert.Contains(t, i.Volumes, "/var/lib/otelcol-callbraid")
	e := freeEndpoints(t)
	collector := s.start(t, i.program(t, e))
	e.awaitHealthy(t, collector)
	run(t, exec.Command(testbed.AgentSim(t), "bytefrog", "load", "--endpoint", e.bytefrog, "--events", "1000"))
	collector.stop(t)
	assert.Equal(t, callsOfLoad, strings.Count(s.read(t, "/var/lib/otelcol-callbraid/spans.json"), `"spanId"`))
}

func TestAnImageIsBuiltFromWhatItNeedsAlone(t *testing.T) {
	b := imageBuilder(t)
	file := filepath.Join(t.TempDir(), "Dockerfile")
	require.NoError(t, os.WriteFile(file, []byte("FROM scratch\nCOPY . /\n"), 0o644))
	root := b.build(t, file, "context")
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if inside != filepath.Join("config", "standalone.yaml") {
			assert.Regexp(t, `^dist/bin/linux_[a-z0-9]+/otelcol-callbraid$`, inside)
		}
		return err
	})
	require.NoError(t, err)
	assert.FileExists(t, filepath.Join(root, "config", "standalone.yaml"))
}
