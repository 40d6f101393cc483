// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/package-url/packageurl-go"
	"golang.org/x/mod/semver"
)

// contents is the list of modules in a platform's programs.
type contents struct {
	programs []program
	modules  []*debug.Module // each once, by path and version; without our own
	golang   string          // such as "go1.26.8"
}

// program is one executable file.
type program struct {
	name, path, sha256 string
	modules            []*debug.Module
}

// readContents reads the build information that Go's linker wrote into the programs of a folder.
func readContents(bin string, programs []string) (*contents, error) {
	c := &contents{}
	for _, name := range programs {
		path := filepath.Join(bin, name)
		info, err := buildinfo.ReadFile(path)
		if err != nil {
			return nil, err
		}
		sum, err := sha256Of(path)
		if err != nil {
			return nil, err
		}
		p := program{name: name, path: path, sha256: sum}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if semver.IsValid(m.Version) { // ours, in the distribution, has none
				p.modules = append(p.modules, m)
			}
		}
		c.golang = info.GoVersion
		c.modules = append(c.modules, p.modules...)
		c.programs = append(c.programs, p)
	}
	slices.SortFunc(c.modules, func(a, b *debug.Module) int {
		if a.Path != b.Path {
			if a.Path < b.Path {
				return -1
			}
			return 1
		}
		return semver.Compare(a.Version, b.Version)
	})
	c.modules = slices.CompactFunc(c.modules, func(a, b *debug.Module) bool { return a.Path == b.Path && a.Version == b.Version })
	return c, nil
}

// goModule is the address of a module, by the package URL specification.
func goModule(path, version string) string {
	return packageurl.NewPackageURL(packageurl.TypeGolang, filepath.Dir(path), filepath.Base(path), version, nil, "").ToString()
}

// standardLibrary is its address: "std" is not in a folder.
func (c *contents) standardLibrary() string {
	return packageurl.NewPackageURL(packageurl.TypeGolang, "", "std", c.golang[len("go"):], nil, "").ToString()
}

// scriptPackages are the addresses of the packages of npm that are compiled into the collector. Their folders list them,
// as NAME@VERSION.
func scriptPackages() ([]*packageurl.PackageURL, error) {
	var all []*packageurl.PackageURL
	for _, folder := range scripts {
		file := filepath.Join(folder, "release/release.txt")
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		before := len(all)
		for line := range strings.Lines(string(text)) {
			if name, version, ok := strings.Cut(strings.TrimSpace(line), "@"); ok {
				all = append(all, packageurl.NewPackageURL(packageurl.TypeNPM, "", name, version, nil, ""))
			}
		}
		if len(all) == before {
			return nil, fmt.Errorf("%s: expected a line NAME@VERSION, got none", file)
		}
	}
	return all, nil
}

// writeBOM writes a software bill of materials, CycloneDX in JSON: the programs, their modules, and
// the dependencies between them.
func (r *release) writeBOM(path string, c *contents) error {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{
		Timestamp: r.time.Format("2006-01-02T15:04:05Z"),
		Component: &cdx.Component{BOMRef: "callbraid", Type: cdx.ComponentTypeApplication, Name: "callbraid", Version: r.version},
	}
	components := []cdx.Component{{
		BOMRef: c.standardLibrary(), PackageURL: c.standardLibrary(), Type: cdx.ComponentTypeLibrary, Name: "std", Version: c.golang[len("go"):],
	}}
	for _, m := range c.modules {
		components = append(components, cdx.Component{
			BOMRef: goModule(m.Path, m.Version), PackageURL: goModule(m.Path, m.Version),
			Type: cdx.ComponentTypeLibrary, Name: m.Path, Version: m.Version,
		})
	}
	ofScripts, err := scriptPackages()
	if err != nil {
		return err
	}
	for _, p := range ofScripts {
		components = append(components, cdx.Component{
			BOMRef: p.ToString(), PackageURL: p.ToString(), Type: cdx.ComponentTypeLibrary, Name: p.Name, Version: p.Version,
		})
	}
	var all []string
	var dependencies []cdx.Dependency
	for _, p := range c.programs {
		all = append(all, p.name)
		components = append(components, cdx.Component{
			BOMRef: p.name, Type: cdx.ComponentTypeApplication, Name: p.name, Version: r.version,
			Hashes: &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: p.sha256}},
		})
		of := []string{c.standardLibrary()}
		for _, m := range p.modules {
			of = append(of, goModule(m.Path, m.Version))
		}
		if p.name == collector {
			for _, script := range ofScripts {
				of = append(of, script.ToString())
			}
		}
		dependencies = append(dependencies, cdx.Dependency{Ref: p.name, Dependencies: &of})
	}
	dependencies = append(dependencies, cdx.Dependency{Ref: "callbraid", Dependencies: &all})
	bom.Components, bom.Dependencies = &components, &dependencies

	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := cdx.NewBOMEncoder(f, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bom); err != nil {
		return err
	}
	return f.Close()
}
