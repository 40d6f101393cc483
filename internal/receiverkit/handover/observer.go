// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package handover

import (
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/receiverhelper"
)

// NewObserver returns the Observer of Settings, for a receiver with long connections over a transport, such as tcp.
func NewObserver(settings receiver.Settings, transport string) (*receiverhelper.ObsReport, error) {
	return receiverhelper.NewObsReport(receiverhelper.ObsReportSettings{
		ReceiverID:             settings.ID,
		Transport:              transport,
		LongLivedCtx:           true,
		ReceiverCreateSettings: settings,
	})
}
