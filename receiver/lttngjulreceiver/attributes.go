// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package lttngjulreceiver

import (
	"github.com/callbraid/callbraid/internal/lttng/lttngagent"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/metadata"
	"github.com/callbraid/callbraid/receiver/lttngjulreceiver/internal/session"
)

const (
	domainCount  = lttngagent.Log4j2 + 1
	commandCount = lttngagent.CommandDisableContext + 1
)

func domainAttribute(domain lttngagent.Domain) metadata.AttributeLttngAgentDomain {
	return metadata.MapAttributeLttngAgentDomain[domain.String()]
}

var commandAttributes = [commandCount]metadata.AttributeLttngAgentCommand{
	lttngagent.CommandList:             metadata.AttributeLttngAgentCommandList,
	lttngagent.CommandEnable:           metadata.AttributeLttngAgentCommandEnable,
	lttngagent.CommandDisable:          metadata.AttributeLttngAgentCommandDisable,
	lttngagent.CommandRegistrationDone: metadata.AttributeLttngAgentCommandRegistrationDone,
	lttngagent.CommandEnableContext:    metadata.AttributeLttngAgentCommandEnableContext,
	lttngagent.CommandDisableContext:   metadata.AttributeLttngAgentCommandDisableContext,
}

func commandAttribute(command lttngagent.CommandType) metadata.AttributeLttngAgentCommand {
	return commandAttributes[command]
}

var resultAttributes = [session.ResultCount]metadata.AttributeLttngAgentResult{
	session.Success:     metadata.AttributeLttngAgentResultSuccess,
	session.Invalid:     metadata.AttributeLttngAgentResultInvalidCommand,
	session.UnknownName: metadata.AttributeLttngAgentResultUnknownName,
	session.OtherCode:   metadata.AttributeLttngAgentResultOtherCode,
	session.Unsupported: metadata.AttributeLttngAgentResultUnsupported,
	session.NoAnswer:    metadata.AttributeLttngAgentResultNoAnswer,
	session.TooLarge:    metadata.AttributeLttngAgentResultTooLarge,
}

func resultAttribute(r session.Result) metadata.AttributeLttngAgentResult { return resultAttributes[r] }
