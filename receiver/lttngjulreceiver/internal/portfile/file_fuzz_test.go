// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package portfile

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// FuzzPortFile reads any file as a port file. It has a port of 16 bits, or it is empty, or it is not a port file and
// stays unchanged.
func FuzzPortFile(f *testing.F) {
	for _, content := range []string{"", "\n", "5345\n", "0", "65535", "65536", "-1", "+1", "0x10", "1_000", "5345 5346", strings.Repeat("1", 65), "\x00"} {
		f.Add([]byte(content))
	}
	directory := f.TempDir()
	f.Fuzz(func(t *testing.T, content []byte) {
		path := filepath.Join(directory, "agent.port")
		require.NoError(t, os.WriteFile(path, content, 0o600))
		port, there, err := (&file{path: path, port: 5345}).read()
		require.True(t, there)
		text := strings.TrimSpace(string(content))
		if err != nil {
			var strange *strangeError
			require.ErrorAs(t, err, &strange)
			require.Less(t, len(err.Error()), len(path)+1000)
			require.NotEmpty(t, text)
			return
		}
		require.LessOrEqual(t, len(content), maxFile)
		if text == "" {
			require.Zero(t, port)
			return
		}
		require.Equal(t, strings.TrimLeft(text, "0"), strings.TrimLeft(strconv.Itoa(port), "0"))
		require.LessOrEqual(t, port, 1<<16-1)
	})
}
