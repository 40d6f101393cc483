// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package symbols

import (
	"encoding/hex"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// ErrNoFile means that no file of the object's name exists below any of the paths.
var ErrNoFile = errors.New("no file found")

// search looks for an object's file below each path and reads its table.
//
//  1. Try the reported path below each directory. Use the first file with functions in .symtab and their source lines.
//  2. Otherwise, if the build ID is known, try the places of files with debug information.
//  3. Otherwise use the first file with functions in .symtab, or else the exported functions of the first file.
//
// known is the best table of the object in memory, if there is one. Files that have no more than it are not read again.
// The error has the reason for each file that exists and was refused. There may be a table beside it.
func (f *Files) search(id identity, known cachedTable) (cachedTable, error) {
	if err := id.checkPath(); err != nil {
		return cachedTable{}, err
	}
	var best cachedTable
	var errs []error
	for _, names := range [][]string{{id.path}, id.debugNames()} {
		for _, dir := range f.settings.Paths {
			for _, name := range names {
				if err := f.settings.err(); err != nil {
					return cachedTable{}, err
				}
				found, err := f.open(dir, name, id, known)
				switch {
				case errors.Is(err, fs.ErrNotExist):
				case err != nil:
					errs = append(errs, fmt.Errorf("%s: %w", filepath.Join(dir, name), err))
				case f.rankOf(found.table) == complete:
					return found, nil
				case best.table == nil || f.rankOf(found.table) > f.rankOf(best.table):
					best = found
				}
			}
		}
	}
	if best.table == nil && len(errs) == 0 {
		errs = append(errs, fmt.Errorf("%w below %s", ErrNoFile, strings.Join(f.settings.Paths, ", ")))
	}
	return best, errors.Join(errs...)
}

// rankOf returns the rank of a table.
func (f *Files) rankOf(t *table) rank {
	switch {
	case !t.full:
		return exported
	case f.settings.SourceLines && (errors.Is(t.lines.err, ErrNoDebugInfo) || errors.Is(t.lines.err, ErrNoRoom)):
		return withNames
	}
	return complete
}

// checkPath returns an error if files with the object's path must not be opened. The path is absolute and clean.
func (id identity) checkPath() error {
	for _, dir := range []string{"/dev", "/proc", "/sys"} {
		if id.path == dir || strings.HasPrefix(id.path, dir+"/") {
			return fmt.Errorf("path is %.100q, expected none in %s", id.path, dir)
		}
	}
	return nil
}

// debugNames returns the places for a file with the object's debug information: by build ID, as GDB documents it
// under "Debugging Information in Separate Files", and by debug link. Without a build ID, only a file with a checksum
// can be the right one.
func (id identity) debugNames() []string {
	if len(id.buildID) < 2 {
		if id.buildID == "" && id.debugCRC != 0 {
			return id.linkedNames()
		}
		return nil
	}
	digits := hex.EncodeToString([]byte(id.buildID))
	byID := "/.build-id/" + digits[:2] + "/" + digits[2:] + ".debug"
	names := append([]string{global + byID, byID}, id.linkedNames()...)
	return append(names, global+id.path+".debug")
}

// global is the directory for files with debug information of all programs.
const global = "/usr/lib/debug"

// linkedNames returns the places for the file of the object's debug link.
func (id identity) linkedNames() []string {
	link := id.debugLink
	if link == "" || path.Base(link) != link || link == "." || link == ".." {
		return nil
	}
	dir := path.Dir(id.path)
	return []string{path.Join(dir, link), path.Join(dir, ".debug", link), path.Join(global, dir, link)}
}

// open reads the table of a file below a directory. The error wraps fs.ErrNotExist if there is no such file, or if it is
// known to have no more than the known table.
func (f *Files) open(dir, name string, id identity, known cachedTable) (cachedTable, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return cachedTable{}, bareError(err)
	}
	defer root.Close() // read only: nothing can be lost
	// Without a build ID, another file than the object's own has to have the checksum of the debug link.
	crc, isOwn := uint32(0), name == id.path
	if id.buildID == "" && !isOwn {
		crc = id.debugCRC
	}
	name = filepath.FromSlash(strings.TrimPrefix(name, "/"))
	file, info, err := f.openRegular(root, name)
	if err != nil {
		return cachedTable{}, err
	}
	defer file.Close()

	if isOwn {
		if err := id.checkTime(info.ModTime()); err != nil {
			return cachedTable{}, err
		}
	}
	content := endingReader{file, &f.settings}
	stamp := tableKey{path: filepath.Join(dir, name), size: info.Size(), modified: info.ModTime().UnixNano(), crc: crc}
	if id.buildID != "" {
		return f.readIdentified(content, info.Size(), id, stamp, known)
	}
	if t := f.cached(stamp); t != nil && t.memorySize == id.memorySize {
		return cachedTable{key: stamp, table: t}, nil
	}
	t, err := f.read(content, info.Size(), id, func() error { return f.checkCRC(content, stamp) })
	if err != nil {
		return cachedTable{}, err
	}
	return cachedTable{key: stamp, table: t}, nil
}

// readIdentified reads the table of a file for an object with a build ID.
func (f *Files) readIdentified(content io.ReaderAt, size int64, id identity, stamp tableKey, known cachedTable) (cachedTable, error) {
	stamp.buildID = id.buildID
	if rank, ok := f.ranks[stamp]; ok && known.table != nil && rank <= known.key.rank {
		return cachedTable{}, fs.ErrNotExist
	}
	t, err := f.read(content, size, id, func() error { return nil })
	if err != nil {
		return cachedTable{}, err
	}
	key := tableKey{buildID: id.buildID, rank: f.rankOf(t)}
	if key.rank == exported {
		key.path = id.path
	}
	if len(f.ranks) >= maxRanks {
		clear(f.ranks)
	}
	if !errors.Is(t.lines.err, ErrNoRoom) { // otherwise it has more
		f.ranks[stamp] = key.rank
	}
	return cachedTable{key: key, table: t}, nil
}

// read is readTable. Of the memory that it reserves, that of the table stays reserved.
func (f *Files) read(content io.ReaderAt, size int64, id identity, check func() error) (*table, error) {
	before := f.reserved // only the goroutine that reads increases it
	t, err := readTable(content, size, id, f.settings, check)
	if err != nil {
		f.release(before)
		return nil, err
	}
	f.release(before + t.bytes())
	return t, nil
}

// endingReader reads a file until Settings.Context ends. All of a file's content passes it, so the reading ends soon after.
type endingReader struct {
	io.ReaderAt
	settings *Settings
}

func (r endingReader) ReadAt(p []byte, offset int64) (int, error) {
	if err := r.settings.err(); err != nil {
		return 0, err
	}
	return r.ReaderAt.ReadAt(p, offset)
}

// checkTime returns an error if the file of an object without a build ID was written after the report of the object.
func (id identity) checkTime(modified time.Time) error {
	if seen := time.Unix(0, id.seen); id.buildID == "" && id.seen != 0 && modified.After(seen) {
		return fmt.Errorf("expected a file without build ID from before %s, when the object was traced, got one of %s: it may have been built again",
			seen.UTC().Format(time.RFC3339), modified.UTC().Format(time.RFC3339))
	}
	return nil
}

// maxCRCBytes is the maximum size of a file whose checksum is compared.
const maxCRCBytes = 512 << 20

// checkCRC returns an error if a file does not have the checksum of key, unless that is 0. A file with another checksum
// is not read again until it changes.
func (f *Files) checkCRC(file io.ReaderAt, key tableKey) error {
	if key.crc == 0 {
		return nil
	}
	if key.size > maxCRCBytes {
		return fmt.Errorf("expected a file of at most %d bytes to compare its checksum, got %d", maxCRCBytes, key.size)
	}
	want := key.crc
	key.crc = 0
	got, ok := f.checksums[key]
	if !ok {
		sum := crc32.NewIEEE()
		if _, err := io.Copy(sum, io.NewSectionReader(file, 0, key.size)); err != nil {
			return err
		}
		got = sum.Sum32()
		if len(f.checksums) >= maxChecksums {
			clear(f.checksums)
		}
		f.checksums[key] = got
	}
	if got != want {
		return fmt.Errorf("expected checksum %08x of the debug link, got %08x", want, got)
	}
	return nil
}

// openRegular opens a regular file. It checks the kind and size of the file before, because opening other files has
// effects, and again afterwards, with its file system, because the file may have been replaced. O_NONBLOCK prevents that a FIFO, created in between,
// waits for a writer.
func (f *Files) openRegular(root *os.Root, name string) (*os.File, fs.FileInfo, error) {
	info, err := root.Stat(name)
	if err != nil {
		return nil, nil, bareError(err)
	}
	if err := f.checkFile(info); err != nil {
		return nil, nil, err
	}
	file, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, bareError(err)
	}
	if info, err = file.Stat(); err == nil {
		err = errors.Join(f.checkFile(info), checkFileSystem(file))
	}
	if err != nil {
		file.Close()
		return nil, nil, bareError(err)
	}
	return file, info, nil
}

// checkFile returns an error if the file must not be read.
func (f *Files) checkFile(info fs.FileInfo) error {
	switch {
	case !info.Mode().IsRegular():
		return fmt.Errorf("expected a regular file, got %v", info.Mode().Type())
	case info.Size() == 0:
		return errors.New("expected an ELF file, got no bytes") // nearly all files of the kernel, such as /proc/kmsg
	case info.Size() > f.settings.MaxFileBytes:
		return fmt.Errorf("expected a file of at most %d bytes, got %d", f.settings.MaxFileBytes, info.Size())
	}
	return nil
}

// bareError returns err without the path, which callers add.
func bareError(err error) error {
	var pathError *fs.PathError
	if errors.As(err, &pathError) {
		return pathError.Err
	}
	return err
}
