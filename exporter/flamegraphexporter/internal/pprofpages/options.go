// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package pprofpages

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/google/pprof/driver"
	"github.com/google/pprof/profile"
)

// options makes the driver serve the profile and nothing else: it has no command line, files,
// network, object files, terminal or browser.
func options(p *profile.Profile, serve func(*driver.HTTPServerArgs) error) *driver.Options {
	return &driver.Options{
		Flagset:       flags{},
		Fetch:         fetcher{p},
		Sym:           noSymbols{},
		Obj:           noObjects{},
		Writer:        noFiles{},
		HTTPTransport: noNetwork{},
		UI:            silent{},
		HTTPServer:    serve,
	}
}

// flags are a command line that demands pages. Nothing listens on the address. All other flags
// have their defaults.
type flags struct{}

func (flags) Bool(name string, standard bool, _ string) *bool {
	value := standard || name == "no_browser"
	return &value
}

func (flags) Int(_ string, standard int, _ string) *int { return &standard }

func (flags) Float64(_ string, standard float64, _ string) *float64 { return &standard }

func (flags) String(name, standard, _ string) *string {
	if name == "http" {
		standard = "localhost:0"
	}
	return &standard
}

func (flags) StringList(_, standard, _ string) *[]*string { return &[]*string{&standard} }

func (flags) ExtraUsage() string { return "" }

func (flags) AddExtraUsage(string) {}

// Parse returns the profile's source, which [fetcher] does not use.
func (flags) Parse(func()) []string { return []string{"call tree"} }

// fetcher has the profile already.
type fetcher struct{ profile *profile.Profile }

func (f fetcher) Fetch(string, time.Duration, time.Duration) (*profile.Profile, string, error) {
	return f.profile, "", nil
}

// noSymbols looks up nothing: all names are known.
type noSymbols struct{}

func (noSymbols) Symbolize(string, driver.MappingSources, *profile.Profile) error { return nil }

// errNothing stops the driver when it wants to read outside of the profile.
var errNothing = errors.New("pages show the profile and nothing else")

type noObjects struct{}

func (noObjects) Open(string, uint64, uint64, uint64, string) (driver.ObjFile, error) {
	return nil, errNothing
}

func (noObjects) Disasm(string, uint64, uint64, bool) ([]driver.Inst, error) {
	return nil, errNothing
}

type noFiles struct{}

func (noFiles) Open(string) (io.WriteCloser, error) { return nil, errNothing }

type noNetwork struct{}

func (noNetwork) RoundTrip(*http.Request) (*http.Response, error) { return nil, errNothing }

// silent is a terminal without a user. The driver's messages about a request are in its
// answer.
type silent struct{}

func (silent) ReadLine(string) (string, error) { return "", io.EOF }

func (silent) Print(...any) {}

func (silent) PrintErr(...any) {}

func (silent) IsTerminal() bool { return false }

func (silent) WantBrowser() bool { return false }

func (silent) SetAutoComplete(func(string) string) {}
