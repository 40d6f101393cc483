// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// archive packs a platform's programs with the man pages, the shipped configurations, the SBOM and
// the licences into one folder, and returns the archive's path.
func (r *release) archive(p platform, bom, licences string) (_ string, err error) {
	name := r.name(p) + ".tar.gz"
	if p.os == windows {
		name = r.name(p) + ".zip"
	}
	f, err := os.Create(name)
	if err != nil {
		return "", err
	}
	a := &archive{time: r.time, top: filepath.Base(r.name(p))}
	if p.os == windows {
		a.w = zipFile{zip.NewWriter(f)}
	} else {
		compressed := gzip.NewWriter(f)
		a.w = tarFile{tar.NewWriter(compressed), compressed}
	}
	defer func() { err = errors.Join(err, a.w.Close(), f.Close()) }()

	if p.os == windows {
		for _, program := range programsOf(p) {
			a.add("bin/"+program+".exe", filepath.Join(r.bin(p), program), 0o755)
		}
	} else {
		r.addDistribution(a, p)
	}
	a.add("README.md", "README.md", 0o644)
	a.add("SECURITY.md", "SECURITY.md", 0o644)
	a.add("CHANGELOG.md", "CHANGELOG.md", 0o644)
	a.add("LICENSE", "LICENSE", 0o644)
	a.add("THIRD_PARTY_LICENCES.txt", licences, 0o644)
	a.add("sbom.cdx.json", bom, 0o644)
	return name, a.err
}

// captures are recordings of traced programs that agentsim plays, as README.md does. packaging/otelcol-callbraid.yaml has the same.
var captures = []string{
	"testdata/bytefrog/maven.zip", "testdata/bytefrog/shop.zip",
	"testdata/lttng/live/cygok.zip", "testdata/lttng/live/jul1.zip",
	"testdata/rbkit/released-30s.zip",
}

// addDistribution adds everything that Windows does not have.
func (r *release) addDistribution(a *archive, p platform) {
	for _, program := range programsOf(p) {
		a.add("bin/"+program, filepath.Join(r.bin(p), program), 0o755)
	}
	a.addAll("man/man1", filepath.Join(r.dist, "man", "*.1"))
	a.addAll("completions", filepath.Join(r.dist, "completions", "*"))
	a.addAll("config", filepath.Join("config", "*.yaml"))
	for _, capture := range captures {
		a.add(capture, capture, 0o644)
	}
	a.add("config/schema.json", filepath.Join("config", "schema.json"), 0o644)
	a.addAll("grafana", filepath.Join("packaging", "grafana", "*.json"))
	a.addAll("prometheus", filepath.Join("packaging", "prometheus", "*.yaml"))
	a.addAll("compose", filepath.Join("packaging", "compose", "*.yaml"))
	a.addAll("compose/grafana", filepath.Join("packaging", "compose", "grafana", "*.yaml"))
	a.addAll("kubernetes", filepath.Join("packaging", "kubernetes", "*.yaml"))
}

// archive is a file that is being written, and its first error.
type archive struct {
	w    packed
	time time.Time // of all files
	top  string    // the folder
	err  error
}

// packed is a format of archives.
type packed interface {
	// next begins a file.
	next(name string, size int64, mode fs.FileMode, modified time.Time) (io.Writer, error)
	io.Closer
}

type tarFile struct {
	*tar.Writer
	compressed *gzip.Writer
}

func (t tarFile) next(name string, size int64, mode fs.FileMode, modified time.Time) (io.Writer, error) {
	return t, t.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: size, Mode: int64(mode), ModTime: modified})
}

func (t tarFile) Close() error { return errors.Join(t.Writer.Close(), t.compressed.Close()) }

type zipFile struct{ *zip.Writer }

func (z zipFile) next(name string, _ int64, mode fs.FileMode, modified time.Time) (io.Writer, error) {
	header := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: modified}
	header.SetMode(mode)
	return z.CreateHeader(header)
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

func (a *archive) add(name, file string, mode fs.FileMode) {
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
	w, err := a.w.next(path.Join(a.top, name), info.Size(), mode, a.time)
	if err == nil {
		_, err = io.Copy(w, f)
	}
	a.err = err
}
