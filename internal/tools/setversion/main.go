// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command setversion writes the version of the project into all files that have it: the manifest of the distribution, from which
// programs, packages and the image get theirs, the versions of the components' module in manifests, pages and modules, and the changelog.
// `make set-version` runs it. With -check it compares them instead, for `make check-release`.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"golang.org/x/mod/semver"
)

const (
	manifest  = "builder-config.yaml"
	changelog = "CHANGELOG.md"
)

// requiring are the files that require the components' module.
var requiring = []string{manifest, "README.md", "docs/ocb.md", "cmd/go.mod", "test/go.mod", "internal/tools/go.mod"}

var (
	number   = regexp.MustCompile(`(?m)^  version: (.*)$`)
	required = regexp.MustCompile(`(github\.com/callbraid/callbraid) (v[0-9][^ \n]*)`)
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "setversion:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("setversion", flag.ContinueOnError)
	check := flags.Bool("check", false, "compare the versions of all files")
	to := flags.String("to", "", "the new version, such as 0.1.0 or 0.2.0-dev")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return fmt.Errorf("expected the folder of the project, got %q", flags.Args())
	}
	if *check {
		return compare(flags.Arg(0))
	}
	return set(flags.Arg(0), *to, time.Now().UTC())
}

// set writes a version. A version without a suffix is a release: its changes get a chapter with the date.
func set(project, version string, today time.Time) error {
	if semver.Canonical("v"+version) != "v"+version {
		return fmt.Errorf("expected a version such as 0.1.0 or 0.2.0-dev, got %q", version)
	}
	if semver.Prerelease("v"+version) == "" {
		if err := cut(filepath.Join(project, changelog), version, today); err != nil {
			return err
		}
	}
	for _, name := range requiring {
		path := filepath.Join(project, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		changed := required.ReplaceAllString(string(text), "$1 v"+version)
		if name == manifest {
			changed = number.ReplaceAllString(changed, "  version: "+version)
		}
		if err := os.WriteFile(path, []byte(changed), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cut gives the unreleased changes a chapter, and begins an empty one above it.
func cut(path, version string, today time.Time) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const unreleased = "\n## [Unreleased]\n"
	if strings.Contains(string(text), "\n## ["+version+"]") || strings.Count(string(text), unreleased) != 1 {
		return fmt.Errorf("%s: expected one chapter Unreleased, and none for %s", changelog, version)
	}
	chapter := unreleased + "\n## [" + version + "] - " + today.Format(time.DateOnly) + "\n"
	return os.WriteFile(path, []byte(strings.Replace(string(text), unreleased, chapter, 1)), 0o644)
}

// compare is an error for each file with another version than the manifest.
func compare(project string) error {
	text, err := os.ReadFile(filepath.Join(project, manifest))
	if err != nil {
		return err
	}
	found := number.FindSubmatch(text)
	if found == nil {
		return fmt.Errorf("%s: expected a version", manifest)
	}
	want := "v" + string(found[1])
	var errs []error
	for _, name := range requiring {
		text, err := os.ReadFile(filepath.Join(project, name))
		if err != nil {
			return err
		}
		all := required.FindAllStringSubmatch(string(text), -1)
		if len(all) == 0 {
			errs = append(errs, fmt.Errorf("%s: expected %s %s, got no version", name, "github.com/callbraid/callbraid", want))
		}
		for _, has := range all {
			if has[2] != want {
				errs = append(errs, fmt.Errorf("%s: expected %s %s, got %s: run make set-version", name, has[1], want, has[2]))
				break
			}
		}
	}
	return errors.Join(errs...)
}
