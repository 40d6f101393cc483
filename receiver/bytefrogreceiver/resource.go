// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package bytefrogreceiver

import (
	"encoding/hex"

	"go.opentelemetry.io/collector/pdata/pcommon"

	"github.com/callbraid/callbraid/internal/call/callevent"
	"github.com/callbraid/callbraid/internal/receiverkit"
)

// Resource attributes by the semantic conventions.
const (
	attributeServiceName       = "service.name"
	attributeServiceInstanceID = "service.instance.id"
)

// attributeSignature is the attribute for the text of a method as the agent sent it.
const attributeSignature = "bytefrog.method.signature"

// newResource returns the resource of a run. The run is the instance of the service, so that two agents
// of one service do not overwrite each other's sums.
func newResource(config *Config, id callevent.StreamID) pcommon.Resource {
	resource := config.Resource()
	receiverkit.PutNew(resource.Attributes(), attributeServiceName, config.ServiceName)
	receiverkit.PutNew(resource.Attributes(), attributeServiceInstanceID, uuid(id))
	return resource
}

// uuid returns an ID as the text of a UUID.
func uuid(id callevent.StreamID) string {
	digits := hex.EncodeToString(id[:])
	return digits[:8] + "-" + digits[8:12] + "-" + digits[12:16] + "-" + digits[16:20] + "-" + digits[20:]
}
