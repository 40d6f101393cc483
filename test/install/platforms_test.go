// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// archived is the name of a platform's archive.
var archived = regexp.MustCompile(`_(linux|darwin)_(amd64|arm64)\.tar\.gz$`)

// TestPackagesHaveProgramsOfTheirPlatform looks at all platforms that were packed.
func TestPackagesHaveProgramsOfTheirPlatform(t *testing.T) {
	packages := dist(t)
	archives, err := filepath.Glob(filepath.Join(packages, "callbraid_*.tar.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	for _, archive := range archives {
		name := archived.FindStringSubmatch(archive)
		require.NotNil(t, name, archive)
		system, processor := name[1], name[2]
		t.Run(system+"/"+processor, func(t *testing.T) {
			f, err := os.Open(archive)
			require.NoError(t, err)
			defer f.Close()
			unpacked, err := gzip.NewReader(f)
			require.NoError(t, err)
			assert.ElementsMatch(t, programs, checkPrograms(t, unpacked, system, processor))
			if system == "linux" {
				checkDebian(t, packages, "otelcol-callbraid", processor, "otelcol-callbraid", "agentctl", "agentsim")
				checkDebian(t, packages, "bytefrog-guard", processor, "bytefrog-guard")
			}
		})
	}
}

func checkDebian(t *testing.T, packages, name, processor string, wanted ...string) {
	t.Helper()
	files, err := exec.Command("dpkg-deb", "--fsys-tarfile", only(t, packages, name+"_*_"+processor+".deb")).Output()
	require.NoError(t, err)
	assert.ElementsMatch(t, wanted, checkPrograms(t, bytes.NewReader(files), "linux", processor), name)
}

// checkPrograms checks that programs in an archive are for a platform, and returns their names.
func checkPrograms(t *testing.T, archive io.Reader, system, processor string) []string {
	t.Helper()
	var found []string
	for files := tar.NewReader(archive); ; {
		header, err := files.Next()
		if err == io.EOF {
			return found
		}
		require.NoError(t, err)
		name := path.Base(header.Name)
		if !slices.Contains(programs, name) || !strings.HasSuffix(path.Dir(header.Name), "bin") || header.Typeflag != tar.TypeReg {
			continue
		}
		program, err := io.ReadAll(files)
		require.NoError(t, err)
		is, err := platformOf(system, bytes.NewReader(program))
		require.NoError(t, err, name)
		assert.Equal(t, system+"/"+processor, is, name)
		found = append(found, name)
	}
}

// platformOf returns the platform of a program of a system. On Linux it must need no library.
func platformOf(system string, program io.ReaderAt) (string, error) {
	if system == "darwin" {
		f, err := macho.NewFile(program)
		if err != nil {
			return "", err
		}
		return "darwin/" + map[macho.Cpu]string{macho.CpuAmd64: "amd64", macho.CpuArm64: "arm64"}[f.Cpu], nil
	}
	f, err := elf.NewFile(program)
	if err != nil {
		return "", err
	}
	for _, part := range f.Progs {
		if part.Type == elf.PT_INTERP {
			return "", fmt.Errorf("expected a static program, found one that wants an interpreter")
		}
	}
	return "linux/" + map[elf.Machine]string{elf.EM_X86_64: "amd64", elf.EM_AARCH64: "arm64"}[f.Machine], nil
}
