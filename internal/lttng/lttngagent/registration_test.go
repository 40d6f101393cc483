// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngagent_test

import (
	"encoding/hex"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
)

// unhex returns the bytes of hexadecimal digits, which may have blanks between them.
func unhex(t testing.TB, digits string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(digits), ""))
	require.NoError(t, err)
	return b
}

func TestARegistrationIdentifiesTheAgent(t *testing.T) {
	for _, d := range lttngagent.Domains() {
		r := lttngagent.NewRegistration(d, 27042)
		b := r.AppendTo([]byte("before"))
		assert.Equal(t, append([]byte("before"), unhex(t, "0000000"+string('0'+rune(d))+" 000069a2 00000002 00000000")...), b)
		parsed, err := lttngagent.ParseRegistration(b[len("before"):])
		require.NoError(t, err)
		assert.Equal(t, lttngagent.Registration{Domain: d, PID: 27042, Major: 2}, parsed)
		assert.Equal(t, lttngagent.Agent{Dialect: lttngagent.V2, Domain: d}, parsed.Agent())
	}
}

// wrongRegistrations are invalid registrations and their errors.
var wrongRegistrations = []struct{ name, bytes, err string }{
	{"no bytes", "", "byte 0: expected a registration of 16 bytes, got 0"},
	{"too short", "00000003 000069a2 00000002 000000", "byte 0: expected a registration of 16 bytes, got 15"},
	{"too long", "00000003 000069a2 00000002 00000000 00", "byte 0: expected a registration of 16 bytes, got 17"},
	{"domain of the kernel", "00000001 000069a2 00000002 00000000",
		"byte 0: expected a registration with domain 3 (jul), 4 (log4j), 5 (python) or 6 (log4j2), got 1"},
	{"unknown domain", "00000007 000069a2 00000002 00000000",
		"byte 0: expected a registration with domain 3 (jul), 4 (log4j), 5 (python) or 6 (log4j2), got 7"},
	{"HTTP", hex.EncodeToString([]byte("GET / HTTP/1.1\r\n")),
		"byte 0: expected a registration with domain 3 (jul), 4 (log4j), 5 (python) or 6 (log4j2), got 1195725856"},
	{"another major version", "00000003 000069a2 00000003 00000000",
		"byte 8: expected a registration with version 2.0 of the protocol, got 3.0"},
	{"another minor version", "00000003 000069a2 00000002 00000001",
		"byte 8: expected a registration with version 2.0 of the protocol, got 2.1"},
}

func TestInvalidRegistrationsAreErrors(t *testing.T) {
	for _, c := range wrongRegistrations {
		_, err := lttngagent.ParseRegistration(unhex(t, c.bytes))
		var wrong *lttngagent.ProtocolError
		require.ErrorAs(t, err, &wrong, c.name)
		assert.EqualError(t, err, c.err, c.name)
	}
}
