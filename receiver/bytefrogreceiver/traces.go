// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"encoding/hex"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/receiver/bytefrogreceiver/internal/metadata"
)

// Resource attributes by the semantic conventions.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
)

// attributeSignature is where spans show a method as the agent sent it.
const attributeSignature = "bytefrog.method.signature"

// newResource is what a run's data is from. The run itself is the instance of the
// service, so that two agents of one service don't overwrite each other's sums.
func newResource(config *Config, id callevent.StreamID) (pcommon.Resource, error) {
	resource := pcommon.NewResource()
	if err := resource.Attributes().FromRaw(config.ResourceAttributes); err != nil {
		return resource, err
	}
	for key, value := range map[string]string{
		attributeServiceName:       config.ServiceName,
		attributeServiceInstanceID: uuid(id),
	} {
		if _, set := resource.Attributes().Get(key); !set {
			resource.Attributes().PutStr(key, value)
		}
	}
	return resource, nil
}

// uuid writes 16 bytes as UUIDs are written.
func uuid(id callevent.StreamID) string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}

func setScope(scope pcommon.InstrumentationScope, build component.BuildInfo) {
	scope.SetName(metadata.ScopeName)
	scope.SetVersion(build.Version)
}
