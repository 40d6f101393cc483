// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

// archive packs a platform's programs with the man pages, the shipped configurations, the SBOM and
// the licences into one folder, and returns the archive's path.
func (r *release) archive(p platform, bom, licences string) (_ string, err error) {
	name := r.name(p) + ".tar.gz"
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	compressed := gzip.NewWriter(f)
	a := &archive{w: tar.NewWriter(compressed), release: r, top: filepath.Base(r.name(p))}
	defer func() { err = errors.Join(err, a.w.Close(), compressed.Close(), f.Close()) }()

	for _, program := range programs {
		a.add("bin/"+program, filepath.Join(r.bin(p), program), 0o755)
	}
	a.addAll("man/man1", filepath.Join(r.dist, "man", "*.1"))
	a.addAll("config", filepath.Join("config", "*.yaml"))
	a.addAll("grafana", filepath.Join("packaging", "grafana", "*.json"))
	a.addAll("prometheus", filepath.Join("packaging", "prometheus", "*.yaml"))
	a.addAll("compose", filepath.Join("packaging", "compose", "*.yaml"))
	a.addAll("compose/grafana", filepath.Join("packaging", "compose", "grafana", "*.yaml"))
	a.addAll("kubernetes", filepath.Join("packaging", "kubernetes", "*.yaml"))
	a.add("README.md", "README.md", 0o644)
	a.add("SECURITY.md", "SECURITY.md", 0o644)
	a.add("CHANGELOG.md", "CHANGELOG.md", 0o644)
	a.add("LICENSE", "LICENSE", 0o644)
	a.add("THIRD_PARTY_LICENCES.txt", licences, 0o644)
	a.add("sbom.cdx.json", bom, 0o644)
	return name, a.err
}

// archive is a tar file that is being written, and its first error.
type archive struct {
	release *release
	w       *tar.Writer
	top     string
	err     error
}

func (a *archive) addAll(folder, pattern string) {
	files, err := filepath.Glob(pattern)
	if err == nil && len(files) == 0 {
		err = errors.New("no file is " + pattern)
	}
	a.err = errors.Join(a.err, err)
	slices.Sort(files)
	for _, file := range files {
		a.add(path.Join(folder, filepath.Base(file)), file, 0o644)
	}
}

func (a *archive) add(name, file string, mode int64) {
	if a.err != nil {
		return
	}
	f, err := os.Open(file)
	if err != nil {
		a.err = err
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		a.err = err
		return
	}
	a.err = a.w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: path.Join(a.top, name), Size: info.Size(), Mode: mode, ModTime: a.release.time,
	})
	if a.err == nil {
		_, a.err = io.Copy(a.w, f)
	}
}
