// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package capture

import (
	"fmt"
	"io"
	"regexp"
	"strconv"

	"github.com/callbraid/callbraid/internal/testkit/capturefile"
)

// Limits of a capture.
const (
	maxFileBytes       = 1 << 30 // of one file, unpacked
	maxCaptureBytes    = 2 << 30 // of all files, unpacked
	maxDataConnections = 1 << 10
)

// Capture is the data of one agent in one run.
type Capture struct {
	// Control are all bytes of the control connection, beginning with hello.
	Control []byte
	// Data are all bytes of each data connection, each beginning with data hello.
	Data [][]byte
	// Configuration is the serialised configuration object; nil if there is none.
	Configuration []byte
	// Index has the arrivals of all pieces, in order of time; nil if there is none.
	Index []Arrival
}

// The names of the files.
const (
	controlFile       = "control.bin"
	configurationFile = "configuration.ser"
	indexFile         = "index.json"
)

var dataFile = regexp.MustCompile(`^data-(0|[1-9][0-9]{0,3})\.bin$`)

// Open reads the capture in the zip file of that name.
func Open(name string) (*Capture, error) { return capturefile.Open(name, Read) }

// Read reads the capture in a zip file of size bytes. It ignores files with other names. It fails if the control
// connection or a data connection is missing, if the unpacked capture is larger than 2 GiB, or if the index does not
// match the files.
func Read(r io.ReaderAt, size int64) (*Capture, error) {
	files, err := capturefile.Unpack(r, size, capturefile.Limits{File: maxFileBytes, All: maxCaptureBytes}, isCaptureFile)
	if err != nil {
		return nil, err
	}
	c := &Capture{Control: files[controlFile], Configuration: files[configurationFile]}
	if c.Control == nil {
		return nil, fmt.Errorf("expected a file %s, got none", controlFile)
	}
	if c.Data, err = connections(files); err != nil {
		return nil, err
	}
	if text, ok := files[indexFile]; ok {
		if c.Index, err = parseIndex(text); err != nil {
			return nil, fmt.Errorf("%s: %w", indexFile, err)
		}
		if err := checkIndex(c.Index, files); err != nil {
			return nil, fmt.Errorf("%s: %w", indexFile, err)
		}
	}
	return c, nil
}

func isCaptureFile(name string) bool {
	return name == controlFile || name == configurationFile || name == indexFile || dataFile.MatchString(name)
}

// connections returns data-0.bin, data-1.bin, … without gaps.
func connections(files map[string][]byte) ([][]byte, error) {
	count := 0
	for name := range files {
		if m := dataFile.FindStringSubmatch(name); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil || n >= maxDataConnections {
				return nil, fmt.Errorf("expected at most %d data connections, got %s", maxDataConnections, name)
			}
			count = max(count, n+1)
		}
	}
	data := make([][]byte, count)
	for i := range data {
		content, ok := files[DataFile(i)]
		if !ok {
			return nil, fmt.Errorf("expected a file %s, because there is a %s; got none", DataFile(i), DataFile(count-1))
		}
		data[i] = content
	}
	return data, nil
}

// DataFile returns the name of the file of data connection i.
func DataFile(i int) string { return "data-" + strconv.Itoa(i) + ".bin" }
