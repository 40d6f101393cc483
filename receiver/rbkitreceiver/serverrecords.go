// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package rbkitreceiver

import (
	"time"

	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/plog"

	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/names"
	"github.com/callbraid/callbraid/receiver/rbkitreceiver/internal/origin"
)

func (o *outputs) recordConnected(of *origin.Origin) {
	o.log(of, eventConnected, "The server is connected", plog.SeverityNumberInfo, 0, noAttributes)
}

func (o *outputs) recordRestarted(of *origin.Origin) {
	o.log(of, eventRestarted, "The server was restarted", plog.SeverityNumberWarn, 0, noAttributes)
}

func (o *outputs) recordGone(of *origin.Origin, since time.Time, why error) {
	o.log(of, eventGone, "The server is gone", plog.SeverityNumberWarn, 0, func(m pcommon.Map) {
		m.PutDouble(attributeLifetime, o.Now().Sub(since).Seconds())
		m.PutStr(attributeError, names.ValidString(why.Error()))
	})
}

func noAttributes(pcommon.Map) {}
