// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/pprof/profile"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// small is a profile of a function that calls another.
func small(file string) *profile.Profile {
	mapping := &profile.Mapping{ID: 1, File: file, HasFunctions: true}
	caller := &profile.Function{ID: 1, Name: "main.caller", Filename: "main.go"}
	callee := &profile.Function{ID: 2, Name: "main.callee", Filename: "main.go"}
	top := &profile.Location{ID: 1, Mapping: mapping, Line: []profile.Line{{Function: caller, Line: 10}}}
	leaf := &profile.Location{ID: 2, Mapping: mapping, Line: []profile.Line{{Function: callee, Line: 20}}}
	return &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "time", Unit: "nanoseconds"}},
		Sample:     []*profile.Sample{{Location: []*profile.Location{leaf, top}, Value: []int64{1000}}},
		Location:   []*profile.Location{top, leaf},
		Function:   []*profile.Function{caller, callee},
		Mapping:    []*profile.Mapping{mapping},
	}
}

func render(t *testing.T, name, query string) Page {
	t.Helper()
	values, err := url.ParseQuery(query)
	require.NoError(t, err)
	page, err := Render(context.Background(), name, values, small("shop"))
	require.NoError(t, err)
	return page
}

func TestPagesShowTheProfile(t *testing.T) {
	for _, name := range []string{FlameGraph, Top, Peek} {
		page := render(t, name, "")
		assert.Equal(t, http.StatusOK, page.Status)
		for _, want := range []string{"<title>shop time</title>", "main.caller", "main.callee"} {
			assert.Contains(t, string(page.Body), want, name)
		}
	}
}

func TestScriptsAndStylesHaveTheNonce(t *testing.T) {
	for _, name := range []string{FlameGraph, Top, Peek} {
		page := render(t, name, "")
		body := string(page.Body)
		assert.GreaterOrEqual(t, len(page.Nonce), 16)
		for _, tag := range []string{"<script", "<style"} {
			assert.Positive(t, strings.Count(body, tag))
			assert.Equal(t, strings.Count(body, tag), strings.Count(body, tag+` nonce="`+page.Nonce+`"`), "%s: %s", name, tag)
		}
		assert.NotEqual(t, page.Nonce, render(t, name, "").Nonce)
	}
}

func TestPagesHideWhatIsNotServed(t *testing.T) {
	for _, name := range []string{FlameGraph, Top, Peek} {
		body := string(render(t, name, "").Body)
		for _, id := range []string{"graphbtn", "list", "disasm", "config"} {
			assert.Contains(t, body, `id="`+id+`"`, "pprof has it: else the style is to be looked at")
			assert.Contains(t, string(style), "#"+id+",")
		}
		assert.Contains(t, body, string(style))
	}
	assert.Contains(t, string(render(t, FlameGraph, "").Body), `id="action-source"`)
}

func TestAQueryThatIsWrongIsSaidToBe(t *testing.T) {
	for _, query := range []string{"h=(", "g=nothing", "n=x"} {
		page := render(t, Top, query)
		assert.Equal(t, http.StatusBadRequest, page.Status, query)
		assert.NotEmpty(t, page.Body, query)
	}
}

func TestAnUnknownPageIsAnError(t *testing.T) {
	_, err := Render(context.Background(), "nothing", nil, small("shop"))
	assert.Error(t, err)
}

func TestARequestThatIsGivenUpIsNotRendered(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Render(ctx, Top, nil, small("shop"))
	assert.ErrorIs(t, err, context.Canceled)
}

func TestAProfileThatIsWrongIsAnError(t *testing.T) {
	p := small("shop")
	p.Sample[0].Value = nil
	_, err := Render(context.Background(), Top, nil, p)
	assert.ErrorContains(t, err, "pprof:")
}

// TestTheUsersSettingsAreNeitherReadNorWritten has settings where pprof looks for them.
func TestTheUsersSettingsAreNeitherReadNorWritten(t *testing.T) {
	directory := t.TempDir()
	settings := filepath.Join(directory, "pprof", "settings.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(settings), 0o755))
	require.NoError(t, os.WriteFile(settings, []byte(`{"configs":[{"name":"of the user"}]}`), 0o644))
	t.Setenv("XDG_CONFIG_HOME", directory)
	t.Setenv("HOME", directory)
	t.Setenv("PPROF_TMPDIR", directory)
	assert.NotContains(t, string(render(t, Top, "").Body), "of the user")
	assert.Equal(t, directory, os.Getenv("XDG_CONFIG_HOME"), "it is as it was")
	var found []string
	require.NoError(t, filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	assert.Equal(t, []string{directory, filepath.Dir(settings), settings}, found)
}

func TestTheEnvironmentStaysWhereTheUserHasNoSettings(t *testing.T) {
	settings := filepath.Join("pprof", "settings.json")
	for what, test := range map[string]struct {
		file string
		want bool
	}{
		"nothing": {"", true}, "those of another program": {"other.json", true}, "those of pprof": {settings, false},
	} {
		t.Run(what, func(t *testing.T) {
			directory := t.TempDir()
			t.Setenv("XDG_CONFIG_HOME", directory)
			if test.file != "" {
				file := filepath.Join(directory, test.file)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				require.NoError(t, os.WriteFile(file, []byte("{}"), 0o644))
			}
			restore, err := withoutSettings()
			require.NoError(t, err)
			assert.Equal(t, test.want, os.Getenv("XDG_CONFIG_HOME") == directory)
			restore()
			assert.Equal(t, directory, os.Getenv("XDG_CONFIG_HOME"))
		})
	}
}

func TestAnEnvironmentWithoutDirectoriesIsEnough(t *testing.T) {
	for _, variable := range []string{"XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(variable, "") // so that it is put back
		require.NoError(t, os.Unsetenv(variable))
	}
	assert.Equal(t, http.StatusOK, render(t, Top, "").Status)
	_, is := os.LookupEnv("XDG_CONFIG_HOME")
	assert.False(t, is, "it is as it was")
}

func TestTheVariableIsThatOfTheSystem(t *testing.T) {
	t.Setenv(configVariable(runtime.GOOS), t.TempDir())
	directory, err := os.UserConfigDir()
	require.NoError(t, err)
	assert.Contains(t, directory, os.Getenv(configVariable(runtime.GOOS)))
}

// TestNamesOfFilesAreNotOpened has a mapping whose name is that of a file that is there.
func TestNamesOfFilesAreNotOpened(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, file := range []string{executable, "../../etc/passwd", "http://localhost:1/", ""} {
		page, err := Render(context.Background(), Top, nil, small(file))
		require.NoError(t, err)
		assert.Contains(t, string(page.Body), "main.callee")
	}
}

func TestPagesAreRenderedWhoeverAsks(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			page, err := Render(context.Background(), []string{FlameGraph, Top, Peek}[i%3], nil, small("shop"))
			assert.NoError(t, err)
			assert.Equal(t, http.StatusOK, page.Status)
		})
	}
	all.Wait()
}
