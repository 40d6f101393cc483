// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"context"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
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
	for _, name := range []string{Top, Peek} {
		page := render(t, name, "")
		assert.Equal(t, http.StatusOK, page.Status)
		for _, want := range []string{"<title>shop time</title>", "main.caller", "main.callee"} {
			assert.Contains(t, string(page.Body), want, name)
		}
	}
}

func TestScriptsAndStylesHaveTheNonce(t *testing.T) {
	for _, name := range []string{Top, Peek} {
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

func TestPagesHideLinksToPagesThatAreNotServed(t *testing.T) {
	for _, name := range []string{Top, Peek} {
		body := string(render(t, name, "").Body)
		for _, id := range []string{"graphbtn", "list", "disasm", "config"} {
			assert.Contains(t, body, `id="`+id+`"`, "pprof has it: else the style is to be looked at")
			assert.Contains(t, string(style), "#"+id)
		}
		assert.Contains(t, body, string(style))
	}
}

func TestAListWithoutFunctionsIsAList(t *testing.T) {
	assert.Contains(t, string(render(t, Top, "h=.*").Body), "makeTopTable( 1000 , [] );")
}

func TestPagesHaveTheWidthOfAPhone(t *testing.T) {
	for _, name := range []string{Top, Peek} {
		assert.Contains(t, string(render(t, name, "").Body), `<meta name="viewport" content="width=device-width, initial-scale=1">`)
	}
}

func TestAnInvalidQueryIsAnError(t *testing.T) {
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

func TestACancelledRequestIsNotRendered(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := Render(ctx, Top, nil, small("shop"))
	assert.ErrorIs(t, err, context.Canceled)
}

func TestAnInvalidProfileIsAnError(t *testing.T) {
	p := small("shop")
	p.Sample[0].Value = nil
	_, err := Render(context.Background(), Top, nil, p)
	assert.ErrorContains(t, err, "pprof:")
}

// The driver looks for settings below HOME, and finds some. Their names do not get into a page.
func TestTheUsersSettingsAreNeitherShownNorWritten(t *testing.T) {
	directory := t.TempDir()
	settings := filepath.Join(directory, "pprof", "settings.json")
	require.NoError(t, os.MkdirAll(filepath.Dir(settings), 0o755))
	require.NoError(t, os.WriteFile(settings, []byte(`{"configs":[{"name":"of the user"},{"name":"</div><b>of another"}]}`), 0o644))
	t.Setenv("XDG_CONFIG_HOME", directory)
	t.Setenv("HOME", directory)
	t.Setenv("PPROF_TMPDIR", directory)
	for _, name := range []string{Top, Peek} {
		body := string(render(t, name, "").Body)
		assert.NotContains(t, body, "of the user", name)
		assert.NotContains(t, body, "of another", name)
		assert.Contains(t, body, `id="save-config"`, "pprof's scripts look for it")
	}
	var found []string
	require.NoError(t, filepath.WalkDir(directory, func(path string, _ os.DirEntry, err error) error {
		found = append(found, path)
		return err
	}))
	assert.Equal(t, []string{directory, filepath.Dir(settings), settings}, found)
}

func TestTheEnvironmentStaysAsItIsWhilePagesAreRendered(t *testing.T) {
	directory := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(directory, "pprof"), 0o755))
	t.Setenv("XDG_CONFIG_HOME", directory)
	before := os.Environ()
	rendering := make(chan struct{})
	go func() {
		defer close(rendering)
		for range 50 {
			page, err := Render(context.Background(), Top, url.Values{}, small("shop"))
			assert.NoError(t, err)
			assert.Equal(t, http.StatusOK, page.Status)
		}
	}()
	for {
		assert.Equal(t, before, os.Environ())
		select {
		case <-rendering:
			return
		default:
		}
	}
}

func TestWithoutAUserDirectoryThePageNamesTheRemedy(t *testing.T) {
	for _, variable := range []string{"XDG_CONFIG_HOME", "HOME"} {
		t.Setenv(variable, "") // the test restores it
		require.NoError(t, os.Unsetenv(variable))
	}
	page := render(t, Top, "")
	assert.Equal(t, http.StatusServiceUnavailable, page.Status)
	assert.Contains(t, string(page.Body), "HOME")
}

// The mapping has the name of an existing file.
func TestNamesOfFilesAreNotOpened(t *testing.T) {
	executable, err := os.Executable()
	require.NoError(t, err)
	for _, file := range []string{executable, "../../etc/passwd", "http://localhost:1/", ""} {
		page, err := Render(context.Background(), Top, nil, small(file))
		require.NoError(t, err)
		assert.Contains(t, string(page.Body), "main.callee")
	}
}

func TestSeveralClientsGetPagesAtTheSameTime(t *testing.T) {
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			page, err := Render(context.Background(), []string{Top, Peek}[i%2], nil, small("shop"))
			assert.NoError(t, err)
			assert.Equal(t, http.StatusOK, page.Status)
		})
	}
	all.Wait()
}
