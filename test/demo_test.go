// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"bytes"
	"image/color"
	"image/png"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/test/kit"
	"github.com/callbraid/callbraid/test/kit/browser"
)

// `make demo`: agentsim's demo, with the distribution and its configuration, except for the
// addresses.

// demo runs it with a capture, and with another Chromium first in PATH; empty: without one. It
// returns the output and the picture.
func demo(t *testing.T, capture, chromium string) (said string, picture []byte, err error) {
	t.Helper()
	dir := t.TempDir()
	agents, pages, health, metrics, own := testkit.Address(t), testkit.Address(t), testkit.Address(t), testkit.Address(t), testkit.Address(t)
	_, ownPort, err := net.SplitHostPort(own)
	require.NoError(t, err)
	configuration := filepath.Join(dir, "standalone.yaml")
	require.NoError(t, os.WriteFile(configuration, []byte(shipped(t, "standalone.yaml", map[string]string{
		"endpoint: localhost:8765": agents, "endpoint: localhost:4040": pages, "endpoint: localhost:13133": health,
		"endpoint: localhost:8889": metrics, "disable_stacktrace: true": "true\n    metrics: {readers: [{pull: {exporter: {prometheus: {host: localhost, port: " + ownPort + "}}}}]}",
	})), 0o600))
	command := exec.CommandContext(t.Context(), kit.AgentSim(t), "demo", "--collector", kit.Binary(t), "--config", configuration,
		"--capture", capturePath(capture), "--endpoint", agents, "--pages", "http://"+pages, "--health", "http://"+health,
		"--metrics", "http://"+metrics+"/metrics", "--data", filepath.Join(dir, "data"), "--keep=false")
	file := filepath.Join(dir, "demo.png")
	command.Env = append(command.Environ(), "DEMO_SCREENSHOT="+file)
	if chromium != "" {
		bin := filepath.Join(dir, "bin")
		require.NoError(t, os.Mkdir(bin, 0o755))
		require.NoError(t, os.WriteFile(filepath.Join(bin, "chromium"), []byte("#!/bin/sh\n"+chromium), 0o755))
		command.Env = append(command.Env, "PATH="+bin+":"+os.Getenv("PATH"))
	}
	output, err := command.CombinedOutput()
	picture, notRead := os.ReadFile(file)
	if err == nil {
		require.NoError(t, notRead, "%s", output)
	}
	return string(output), picture, err
}

func TestTheDemoWritesAPictureOfAMavenBuild(t *testing.T) {
	t.Parallel()
	browser.Path(t)
	said, picture, err := demo(t, "maven", "")
	require.NoError(t, err, "%s", said)
	browser.SavePicture(t, "service", picture)
	for _, want := range []string{"A picture of the page is in", "/services/maven/ while the collector runs", "calls  442,770", "org.codehaus.plexus.classworlds.realm.ClassRealm.findClassInternal", "Where to look"} {
		assert.Contains(t, said, want)
	}
	assert.NotContains(t, said, "parent not seen")
	decoded, err := png.Decode(bytes.NewReader(picture))
	require.NoError(t, err)
	assert.Equal(t, browser.Width, decoded.Bounds().Dx())
	assert.Equal(t, browser.Height, decoded.Bounds().Dy())
	// A part of it is bars and links, and a part text.
	coloured, dark := 0, 0
	for y := range browser.Height {
		for x := range browser.Width {
			switch c := color.NRGBAModel.Convert(decoded.At(x, y)).(color.NRGBA); {
			case max(c.R, c.G, c.B) < 80:
				dark++
			case max(c.R, c.G, c.B)-min(c.R, c.G, c.B) > 100:
				coloured++
			}
		}
	}
	const pixels = browser.Width * browser.Height
	t.Logf("%.1f %% bars and links, %.1f %% text", 100*float64(coloured)/pixels, 100*float64(dark)/pixels)
	assert.Greater(t, coloured, pixels/200)
	assert.Less(t, coloured, pixels/5)
	assert.Greater(t, dark, pixels/200)
	assert.Less(t, dark, pixels/4)
}

// The README's command runs as it is written, in a network of its own, because the demo has the usual ports. The collector is built already.
func TestTheReadmesCommandShowsTheDemo(t *testing.T) {
	t.Parallel()
	kit.RequireUnshare(t)
	command := exec.CommandContext(t.Context(), "unshare", "--map-root-user", "--net", "sh", "-c",
		"ip link set lo up && exec "+kit.Command(t, "..", "try it")+` "$@"`, "sh",
		"--old-file=build", "BIN="+filepath.Dir(kit.Binary(t)), "DEMO_DATA="+filepath.Join(t.TempDir(), "data"))
	command.Dir = ".."
	command.Env = append(command.Environ(), "DEMO_KEEP=false")
	said, err := command.CombinedOutput()
	require.NoError(t, err, "%s", said)
	assert.Contains(t, string(said), "calls  442,770")
}

func TestADemoWhoseBrowserFailsPrintsItsResult(t *testing.T) {
	t.Parallel()
	said, picture, err := demo(t, "shop", "echo no display; exit 1")
	assert.Error(t, err, "the picture was asked for")
	assert.Empty(t, picture)
	assert.Regexp(t, `(?s)calls  4,793.*Where to look:.*no picture of the page: .*chromium failed: exit status 1\n    no display\n`, said)
}
