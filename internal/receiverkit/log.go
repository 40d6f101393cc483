// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package receiverkit

import (
	"time"

	"go.uber.org/zap"
)

// occurrences counts how often something happened and decides if it is worth a log line:
// logline.Seldom or logline.Burst.
type occurrences interface {
	Count(now time.Time) (since int, due bool)
}

// LogSeldom counts an occurrence and logs it, if it is worth a line, with how many
// occurrences there were since the last line.
func (k *Kit) LogSeldom(of occurrences, log func(string, ...zap.Field), message string, fields ...zap.Field) {
	if since, due := of.Count(k.Now()); due {
		log(message, append(fields, zap.Int("times_since_last_line", since))...)
	}
}
