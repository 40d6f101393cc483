// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"slices"
	"strconv"
	"strings"

	"go.uber.org/zap"

	"github.com/callbraid/callbraid/internal/rbkit"
)

// lastOldVersion is the last version of the gem that was released, in January 2015. On a Ruby of
// today some of its commands end the program.
var lastOldVersion = []int{0, 1, 10}

// isOld reports whether a version is at most lastOldVersion. The released gem says no version at
// all; what is no version of numbers is not known to be old.
func isOld(version string) bool {
	if version == "" {
		return true
	}
	var numbers []int
	for _, part := range strings.Split(version, ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return false
		}
		numbers = append(numbers, n)
	}
	return slices.Compare(numbers, lastOldVersion) <= 0
}

// dangers are the settings that have an old server do what ends a program on a Ruby of today.
func (c *control) dangers(h *rbkit.HandshakeReply) (settings []string) {
	if !isOld(h.ServerVersion) {
		return nil
	}
	if wanted, _ := c.wanted.now(); wanted.tracing && !h.ObjectTraceEnabled {
		settings = append(settings, "memory_profile")
	}
	if c.env.config.ObjectSpaceSnapshotInterval > 0 {
		settings = append(settings, "objectspace_snapshot_interval")
	}
	return settings
}

// warnOfDangers logs, before commands are sent, that settings may end the program: once for each
// process, and seldom where processes follow each other closely. The turn to steer is held.
func (c *control) warnOfDangers(h *rbkit.HandshakeReply) {
	settings := c.dangers(h)
	if len(settings) == 0 || c.warnedOf == h.PID {
		return
	}
	c.warnedOf = h.PID
	if since, say := c.dangerous.Say(c.env.Now()); say {
		c.logger.Warn("Settings may end the program: on Ruby 3.1 an old Rbkit server crashes it by a segmentation fault. "+
			"Remove the settings, unless this gem is known to work with this Ruby",
			zap.Strings("settings", settings), zap.String("process", text(h.ProcessName)), zap.Uint64("pid", h.PID),
			zap.String("version", text(h.ServerVersion)), zap.Int("times_since_last_line", since))
	}
}
