// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	_ "github.com/goreleaser/nfpm/v2/deb" // formats
	_ "github.com/goreleaser/nfpm/v2/rpm"
)

// manifests are the contents of the packages, in nfpm's language.
var manifests = []string{"packaging/otelcol-callbraid.yaml", "packaging/bytefrog-guard.yaml"}

// packages makes the packages of a platform of Linux, and returns their paths.
func (r *release) packages(p platform, bom, licences string) ([]string, error) {
	values := map[string]string{
		"VERSION": r.version, "ARCH": p.arch, "BIN": r.bin(p), "MAN": filepath.Join(r.dist, "man"), "COMPLETIONS": filepath.Join(r.dist, "completions"), "SBOM": bom, "LICENCES": licences,
	}
	var made []string
	for _, manifest := range manifests {
		config, err := nfpm.ParseFileWithEnvMapping(manifest, func(name string) string { return values[name] })
		if err != nil {
			return nil, fmt.Errorf("%s: %w", manifest, err)
		}
		for _, format := range []string{"deb", "rpm"} {
			path, err := r.writePackage(&config, format)
			if err != nil {
				return nil, fmt.Errorf("%s as %s: %w", manifest, format, err)
			}
			made = append(made, path)
		}
	}
	return made, nil
}

func (r *release) writePackage(config *nfpm.Config, format string) (string, error) {
	info, err := config.Get(format)
	if err != nil {
		return "", err
	}
	info = nfpm.WithDefaults(info)
	info.MTime = r.time
	info.RPM.BuildHost = "callbraid" // instead of this machine's name
	packager, err := nfpm.Get(format)
	if err != nil {
		return "", err
	}
	path := filepath.Join(r.dist, packager.ConventionalFileName(info))
	f, err := os.Create(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if err := packager.Package(info, f); err != nil {
		return "", err
	}
	return path, f.Close()
}
