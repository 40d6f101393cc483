// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

// Command release packs the programs of some platforms: an archive for each, packages for Debian
// and RPM for Linux, an SBOM (CycloneDX) of each, the licences of all compiled modules, and
// checksums of all files. `make package` runs it, at the root of the project.
//
// Its folder, dist, has bin/OS_ARCH with the programs of each platform, man with the man pages, and
// completions with those of shells. It writes its files beside them, and the certificates for the image. The same programs result in the same files, byte by byte, if
// SOURCE_DATE_EPOCH is the same.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// collector is the program with the components.
const collector = "otelcol-callbraid"

const windows = "windows"

// programsOf are the programs in the folder of a platform. On Windows there are no collectors and no agents.
func programsOf(p platform) []string {
	if p.os == windows {
		return []string{"agentctl", "agentsim"}
	}
	return []string{collector, "agentctl", "agentsim", "bytefrog-guard"}
}

// release is a release that is being packed.
type release struct {
	dist    string
	version string
	time    time.Time // of all files
}

// platform is Go's name of an operating system and a processor.
type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// bin is the folder of a platform's programs.
func (r *release) bin(p platform) string { return filepath.Join(r.dist, "bin", p.String()) }

// name returns the path of a file for one platform, without its suffix.
func (r *release) name(p platform) string {
	return filepath.Join(r.dist, "callbraid_"+r.version+"_"+p.String())
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := &release{}
	flags.StringVar(&r.dist, "dist", "dist", "the folder with bin and man, and of the new files")
	flags.StringVar(&r.version, "version", "", "the version of all programs, such as 1.2.3 or 1.2.3-dev")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if r.version == "" || flags.NArg() == 0 {
		return fmt.Errorf("expected -version and platforms such as linux/amd64, got %q", arguments)
	}
	seconds, err := strconv.ParseInt(os.Getenv("SOURCE_DATE_EPOCH"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: expected seconds since 1970, as of the last commit: %w", err)
	}
	r.time = time.Unix(seconds, 0).UTC()
	if err := r.writeCertificates(); err != nil {
		return err
	}
	var made []string
	for _, argument := range flags.Args() {
		system, processor, ok := strings.Cut(argument, "/")
		if !ok {
			return fmt.Errorf("expected a platform such as linux/amd64, got %q", argument)
		}
		files, err := r.pack(platform{system, processor})
		if err != nil {
			return fmt.Errorf("%s: %w", argument, err)
		}
		for _, file := range files {
			fmt.Println("Packed", file)
		}
		made = append(made, files...)
	}
	return r.sum(made)
}

// pack makes all files for one platform, and returns their paths.
func (r *release) pack(p platform) ([]string, error) {
	contents, err := readContents(r.bin(p), programsOf(p))
	if err != nil {
		return nil, err
	}
	bom, licences := r.name(p)+".cdx.json", r.name(p)+".licences.txt"
	if err := r.writeBOM(bom, contents); err != nil {
		return nil, err
	}
	if err := writeLicences(licences, contents); err != nil {
		return nil, err
	}
	archive, err := r.archive(p, bom, licences)
	if err != nil {
		return nil, err
	}
	made := []string{archive, bom}
	if p.os == "linux" {
		packages, err := r.packages(p, bom, licences)
		if err != nil {
			return nil, err
		}
		made = append(made, packages...)
	}
	return made, os.Remove(licences) // it is in all of them
}
