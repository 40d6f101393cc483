// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/macho"
	"debug/pe"
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
var archived = regexp.MustCompile(`_(linux|darwin|windows)_(amd64|arm64)\.(?:tar\.gz|zip)$`)

// TestPackagesHaveProgramsOfTheirPlatform looks at all platforms that were packed.
func TestPackagesHaveProgramsOfTheirPlatform(t *testing.T) {
	packages := dist(t)
	archives, err := filepath.Glob(filepath.Join(packages, "callbraid_*.tar.gz"))
	require.NoError(t, err)
	require.NotEmpty(t, archives)
	zipped, err := filepath.Glob(filepath.Join(packages, "callbraid_*.zip"))
	require.NoError(t, err)
	for _, archive := range zipped {
		name := archived.FindStringSubmatch(archive)
		require.NotNil(t, name, archive)
		t.Run(name[1]+"/"+name[2], func(t *testing.T) { checkZip(t, archive, name[2]) })
	}
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

// checkZip checks the programs for Windows.
func checkZip(t *testing.T, archive, processor string) {
	t.Helper()
	files, err := zip.OpenReader(archive)
	require.NoError(t, err)
	defer files.Close()
	var found []string
	for _, file := range files.File {
		if path.Ext(file.Name) != ".exe" {
			continue
		}
		found = append(found, path.Base(file.Name))
		content, err := file.Open()
		require.NoError(t, err)
		program, err := io.ReadAll(content)
		require.NoError(t, err)
		is, err := pe.NewFile(bytes.NewReader(program))
		require.NoError(t, err, file.Name)
		assert.Equal(t, processor, map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[is.Machine], file.Name)
	}
	assert.ElementsMatch(t, []string{"agentctl.exe", "agentsim.exe"}, found)
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
