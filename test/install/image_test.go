// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"crypto/x509"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
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

// build builds an image, and returns the root of a container of it.
func (b *builder) build(t *testing.T, file, tag string, options ...string) string {
	t.Helper()
	// The format that has a check of health.
	b.run(t, "build", append(options, "--format=docker", "--isolation=chroot", "--file="+file, "--tag="+tag, ".")...)
	// Its name is behind a warning if it is for another platform.
	said := strings.Fields(b.run(t, "from", tag))
	container := said[len(said)-1]
	root := b.run(t, "mount", container)
	t.Cleanup(func() { b.run(t, "umount", container) })
	return root
}

// The image for each platform is built from a folder that has a text in place of each program.
func TestTheImageHasTheProgramsOfItsPlatform(t *testing.T) {
	b := imageBuilder(t)
	file, err := filepath.Abs("../../packaging/Dockerfile")
	require.NoError(t, err)
	b.project = t.TempDir()
	files := []string{
		"testdata/bytefrog/maven.zip", "dist/certificates/ca-certificates.crt", "config/standalone.yaml", "packaging/open.yaml", "dist/data/empty",
	}
	for _, processor := range []string{"amd64", "arm64"} {
		for _, program := range programs {
			files = append(files, "dist/bin/linux_"+processor+"/"+program)
		}
	}
	of := &system{root: b.project}
	for _, name := range files {
		of.write(t, name, filepath.Dir(name))
	}
	// docker takes a default in place of the platform, and buildah does not.
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^ARG TARGETOS\nARG TARGETARCH$`, string(text))
	for _, processor := range []string{"amd64", "arm64"} {
		s := &system{root: b.build(t, file, processor, "--platform=linux/"+processor)}
		for _, program := range programs {
			assert.Equal(t, "dist/bin/linux_"+processor, s.read(t, "/usr/bin/"+program), program)
		}
	}
}

// image is how a container of an image is run.
type image struct {
	User         string
	Env          []string
	Entrypoint   []string
	Cmd          []string
	ExposedPorts map[string]struct{}
	Volumes      map[string]struct{}
	Healthcheck  struct{ Test []string }
}

func (b *builder) inspect(t *testing.T, tag string) image {
	t.Helper()
	var said struct {
		Docker struct {
			Config image `json:"config"`
		}
	}
	require.NoError(t, json.Unmarshal([]byte(b.run(t, "inspect", "--type=image", tag)), &said))
	return said.Docker.Config
}

// inNetwork runs a command in its own network, like a container's: it has only loopback.
const inNetwork = `ip link set lo up && exec "$@"`

// container runs the program of the image in its own network. Arguments replace those of the image.
func (i image) container(t *testing.T, s *system, arguments ...string) *service {
	t.Helper()
	want(t, "ip", "iproute2")
	want(t, "nsenter", "util-linux")
	user, group, _ := strings.Cut(i.User, ":")
	p := program{user: user, group: group, environment: map[string]string{}, command: i.Entrypoint}
	for _, variable := range i.Env {
		key, value, _ := strings.Cut(variable, "=")
		p.environment[key] = value
	}
	if len(arguments) == 0 {
		arguments = i.Cmd
	}
	p.command = append(p.command, arguments...)
	c := s.command(p)
	alone := exec.Command("unshare", append([]string{"--net", "sh", "-c", inNetwork, "sh"}, c.Args...)...)
	alone.Env = append(c.Env, "PATH="+os.Getenv("PATH"))
	return startCommand(t, alone)
}

// in runs a command in the network of a container. Its error has the reason.
func (v *service) in(command ...string) (string, error) {
	c := exec.Command("nsenter", append([]string{"--net=/proc/" + v.pid() + "/ns/net"}, command...)...)
	output, err := c.CombinedOutput()
	return string(output), err
}

// listeners are the ports that a container listens on, by whether other machines reach them.
func (v *service) listeners(t *testing.T) (own, open []int) {
	t.Helper()
	for file, loopback := range map[string]string{"tcp": "0100007F", "tcp6": "00000000000000000000000001000000"} {
		text, err := os.ReadFile("/proc/" + v.pid() + "/net/" + file)
		require.NoError(t, err)
		for line := range strings.Lines(string(text)) {
			fields := strings.Fields(line)
			if fields[3] != "0A" { // listening
				continue
			}
			address, hex, _ := strings.Cut(fields[1], ":")
			port, err := strconv.ParseUint(hex, 16, 16)
			require.NoError(t, err)
			if address == loopback {
				own = append(own, int(port))
			} else {
				open = append(open, int(port))
			}
		}
	}
	return own, open
}

// awaitHealthy waits until the image's own health check succeeds.
func (i image) awaitHealthy(t *testing.T, s *system, v *service) {
	t.Helper()
	require.Equal(t, "CMD", i.Healthcheck.Test[0])
	testkit.Eventually(t, "the container is healthy", func() (bool, string) {
		said, err := v.in(append([]string{"chroot", "--userspec=" + i.User, s.root}, i.Healthcheck.Test[1:]...)...)
		return err == nil, said + v.said(t)
	})
}

func TestTheImageRuns(t *testing.T) {
	b := imageBuilder(t)
	s := &system{root: b.build(t, "packaging/Dockerfile", "otelcol-callbraid")}
	i := b.inspect(t, "otelcol-callbraid")
	assert.Equal(t, "65532:65532", i.User)
	assert.Contains(t, i.Volumes, "/var/lib/otelcol-callbraid")
	// Every container runtime writes this file.
	s.write(t, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost\n")
	published := []int{4040, 8765, 8889, 13133}
	for _, port := range published {
		assert.Contains(t, i.ExposedPorts, strconv.Itoa(port)+"/tcp")
	}
	const ownMetrics = 8888
	// compose.yaml and sidecar.yaml run these.
	for _, file := range []string{"/usr/bin/agentsim", "/usr/bin/bytefrog-guard", "/usr/share/otelcol-callbraid/testdata/bytefrog/maven.zip"} {
		assert.FileExists(t, filepath.Join(s.root, file))
	}
	authorities := x509.NewCertPool()
	// Go looks here first.
	require.True(t, authorities.AppendCertsFromPEM([]byte(s.read(t, "/etc/ssl/certs/ca-certificates.crt"))))
	assert.Greater(t, len(strings.Split(s.read(t, "/etc/ssl/certs/ca-certificates.crt"), "BEGIN CERTIFICATE")), 100)

	t.Run("the container listens only on loopback by default", func(t *testing.T) {
		collector := i.container(t, s)
		i.awaitHealthy(t, s, collector)
		own, open := collector.listeners(t)
		assert.ElementsMatch(t, append([]int{ownMetrics}, published...), own)
		assert.Empty(t, open)
		assert.NotContains(t, collector.said(t), "Other machines can connect")
		said, err := collector.in("chroot", "--userspec="+i.User, s.root, "/usr/bin/agentsim", "bytefrog", "load", "--events", "1000")
		require.NoError(t, err, said)
		collector.stop(t)
		assert.Equal(t, callsOfLoad, strings.Count(s.read(t, "/var/lib/otelcol-callbraid/spans.json"), `"spanId"`))
	})
	t.Run("open.yaml opens what can be published, and each of our listeners warns once", func(t *testing.T) {
		collector := i.container(t, s, append(i.Cmd, "--config=/etc/otelcol-callbraid/open.yaml")...)
		i.awaitHealthy(t, s, collector)
		own, open := collector.listeners(t)
		assert.Equal(t, []int{ownMetrics}, own)
		assert.ElementsMatch(t, published, open)
		assert.Equal(t, 2, strings.Count(collector.said(t), "Other machines can connect"), collector.said(t))
		collector.stop(t)
	})
	t.Run("a container whose collector does not answer is not healthy", func(t *testing.T) {
		collector := i.container(t, s, i.Cmd[0], "--set=extensions.health_check.endpoint=localhost:13134")
		testkit.Eventually(t, "the collector listens", func() (bool, string) {
			own, _ := collector.listeners(t)
			return slices.Contains(own, 13134) && strings.Contains(collector.said(t), "Everything is ready"), collector.said(t)
		})
		said, err := collector.in(append([]string{"chroot", s.root}, i.Healthcheck.Test[1:]...)...)
		require.Error(t, err)
		assert.Contains(t, said, "connection refused")
		collector.stop(t)
	})
}

func TestAnImageHasOnlyNecessaryFiles(t *testing.T) {
	b := imageBuilder(t)
	file := filepath.Join(t.TempDir(), "Dockerfile")
	require.NoError(t, os.WriteFile(file, []byte("FROM scratch\nCOPY . /\n"), 0o644))
	root := b.build(t, file, "context")
	files := []string{"config/standalone.yaml", "dist/certificates/ca-certificates.crt", "packaging/open.yaml", "testdata/bytefrog/maven.zip"}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		inside, err := filepath.Rel(root, path)
		if !slices.Contains(files, inside) {
			assert.Regexp(t, `^dist/bin/linux_[a-z0-9]+/(otelcol-callbraid|otelcol-callbraid-gateway|agentctl|agentsim|bytefrog-guard)$`, inside)
		}
		return err
	})
	require.NoError(t, err)
	for _, file := range files {
		assert.FileExists(t, filepath.Join(root, file))
	}
}
