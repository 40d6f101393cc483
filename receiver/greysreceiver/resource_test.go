// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package greysreceiver

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatIsKnownOfAProcessTellsItFromAnother(t *testing.T) {
	was := identity{protocol: ProtocolConsole, pid: 7, version: "1.7.6.6"}
	for name, tt := range map[string]struct {
		before, now identity
		want        bool
	}{
		"the same":                  {was, was, false},
		"another ID":                {was, identity{protocol: ProtocolConsole, pid: 8, version: "1.7.6.6"}, true},
		"another version":           {was, identity{protocol: ProtocolConsole, pid: 7, version: "1.7.6.7"}, true},
		"another protocol":          {was, identity{protocol: ProtocolGP, pid: 7, version: "1.7.6.6"}, true},
		"no ID now":                 {was, identity{protocol: ProtocolConsole, version: "1.7.6.6"}, false},
		"no version now":            {was, identity{protocol: ProtocolConsole, pid: 7}, false},
		"no ID before":              {identity{protocol: ProtocolConsole, version: "1.7.6.6"}, was, false},
		"no version before":         {identity{protocol: ProtocolConsole, pid: 7}, was, false},
		"no ID and another version": {was, identity{protocol: ProtocolConsole, version: "1"}, true},
	} {
		assert.Equal(t, tt.want, tt.before.isOther(tt.now), name)
	}
}
