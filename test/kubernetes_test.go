// Copyright The Callbraid Authors
// SPDX-License-Identifier: Apache-2.0

package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v3"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	k8syaml "sigs.k8s.io/yaml"

	"github.com/callbraid/callbraid/internal/testkit"
	"github.com/callbraid/callbraid/internal/testkit/reference"
	"github.com/callbraid/callbraid/test/kit"
)

// packaging/kubernetes: there is no cluster here. The tests decode every file with the types of Kubernetes, without unknown
// fields, and run the configurations and commands in them.

const kubernetesFolder = "../packaging/kubernetes"

// operatedCollector is as much of the operator's OpenTelemetryCollector (opentelemetry.io/v1beta1) as operator.yaml uses.
type operatedCollector struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Mode                          string                      `json:"mode"`
		Replicas                      int32                       `json:"replicas"`
		Image                         string                      `json:"image"`
		UpgradeStrategy               string                      `json:"upgradeStrategy"`
		Env                           []corev1.EnvVar             `json:"env"`
		Ports                         []corev1.ServicePort        `json:"ports"`
		Resources                     corev1.ResourceRequirements `json:"resources"`
		TerminationGracePeriodSeconds *int64                      `json:"terminationGracePeriodSeconds"`
		PodSecurityContext            *corev1.PodSecurityContext  `json:"podSecurityContext"`
		SecurityContext               *corev1.SecurityContext     `json:"securityContext"`
		Config                        map[string]any              `json:"config"`
	} `json:"spec"`
}

// helmValues are those of the Collector's chart that helm-values.yaml has.
type helmValues struct {
	FullnameOverride string `json:"fullnameOverride"`
	Mode             string `json:"mode"`
	ReplicaCount     int    `json:"replicaCount"`
	Image            struct {
		Repository string `json:"repository"`
		Tag        string `json:"tag"`
	} `json:"image"`
	Command struct {
		Name string `json:"name"`
	} `json:"command"`
	AlternateConfig map[string]any `json:"alternateConfig"`
	Ports           map[string]struct {
		Enabled       bool            `json:"enabled"`
		ContainerPort int32           `json:"containerPort"`
		ServicePort   int32           `json:"servicePort"`
		Protocol      corev1.Protocol `json:"protocol"`
	} `json:"ports"`
	Resources                     corev1.ResourceRequirements `json:"resources"`
	UseGOMEMLIMIT                 *bool                       `json:"useGOMEMLIMIT"`
	TerminationGracePeriodSeconds *int64                      `json:"terminationGracePeriodSeconds"`
	PodSecurityContext            *corev1.PodSecurityContext  `json:"podSecurityContext"`
	SecurityContext               *corev1.SecurityContext     `json:"securityContext"`
	ServiceAccount                struct {
		AutomountServiceAccountToken bool `json:"automountServiceAccountToken"`
	} `json:"serviceAccount"`
	NetworkPolicy struct {
		Enabled          bool                             `json:"enabled"`
		AllowIngressFrom []networkingv1.NetworkPolicyPeer `json:"allowIngressFrom"`
	} `json:"networkPolicy"`
}

// manifest has the objects of a file, by kind and name.
type manifest struct {
	objects map[string]any
}

// object is an object of a manifest.
func object[T any](t *testing.T, m manifest, name string) *T {
	t.Helper()
	found, ok := m.objects[name].(*T)
	require.True(t, ok, "%s is not in the manifest", name)
	return found
}

// readManifest decodes a file of Kubernetes objects. Unknown fields are errors.
func readManifest(t *testing.T, name string) manifest {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kubernetesFolder, name))
	require.NoError(t, err)
	kinds := map[string]func() any{
		"apps/v1 Deployment":                              func() any { return new(appsv1.Deployment) },
		"apps/v1 StatefulSet":                             func() any { return new(appsv1.StatefulSet) },
		"v1 ConfigMap":                                    func() any { return new(corev1.ConfigMap) },
		"v1 Service":                                      func() any { return new(corev1.Service) },
		"networking.k8s.io/v1 NetworkPolicy":              func() any { return new(networkingv1.NetworkPolicy) },
		"policy/v1 PodDisruptionBudget":                   func() any { return new(policyv1.PodDisruptionBudget) },
		"opentelemetry.io/v1beta1 OpenTelemetryCollector": func() any { return new(operatedCollector) },
	}
	m := manifest{map[string]any{}}
	for _, document := range strings.Split(string(text), "\n---\n") {
		var head struct {
			metav1.TypeMeta `json:",inline"`
			Metadata        metav1.ObjectMeta `json:"metadata"`
		}
		require.NoError(t, k8syaml.Unmarshal([]byte(document), &head))
		create, ok := kinds[head.APIVersion+" "+head.Kind]
		require.True(t, ok, "%s: no test decodes %s %s", name, head.APIVersion, head.Kind)
		decoded := create()
		require.NoError(t, k8syaml.UnmarshalStrict([]byte(document), decoded), "%s: %s %s", name, head.Kind, head.Metadata.Name)
		id := head.Kind + " " + head.Metadata.Name
		require.NotContains(t, m.objects, id)
		m.objects[id] = decoded
	}
	return m
}

func readValues(t *testing.T) (values helmValues) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(kubernetesFolder, "helm-values.yaml"))
	require.NoError(t, err)
	require.NoError(t, k8syaml.UnmarshalStrict(text, &values))
	return values
}

// podCollector is a collector in a pod: its configuration, and its container's bounds.
type podCollector struct {
	configuration string
	resources     corev1.ResourceRequirements
	grace         *int64
	pod           *corev1.PodSecurityContext
	container     *corev1.SecurityContext
}

// podCollectors are the collectors of all files.
func podCollectors(t *testing.T) map[string]podCollector {
	t.Helper()
	asYAML := func(configuration map[string]any) string {
		text, err := k8syaml.Marshal(configuration)
		require.NoError(t, err)
		return string(text)
	}
	values, operated := readValues(t), object[operatedCollector](t, readManifest(t, "operator.yaml"), "OpenTelemetryCollector callbraid").Spec
	all := map[string]podCollector{
		"helm":     {asYAML(values.AlternateConfig), values.Resources, values.TerminationGracePeriodSeconds, values.PodSecurityContext, values.SecurityContext},
		"operator": {asYAML(operated.Config), operated.Resources, operated.TerminationGracePeriodSeconds, operated.PodSecurityContext, operated.SecurityContext},
	}
	tiers := readManifest(t, "two-tiers.yaml")
	for _, name := range []string{"callbraid-receive", "callbraid-pair"} {
		pod := object[appsv1.StatefulSet](t, tiers, "StatefulSet "+name).Spec.Template.Spec
		require.Len(t, pod.Containers, 1)
		c := pod.Containers[0]
		all[name] = podCollector{
			object[corev1.ConfigMap](t, tiers, "ConfigMap "+name).Data["collector.yaml"], c.Resources, pod.TerminationGracePeriodSeconds, pod.SecurityContext, c.SecurityContext,
		}
	}
	return all
}

func TestCollectorsInKubernetesFollowTheRules(t *testing.T) {
	for name, c := range podCollectors(t) {
		t.Run(name, func(t *testing.T) {
			var config collectorConfig
			require.NoError(t, yaml.Unmarshal([]byte(c.configuration), &config))
			require.NotEmpty(t, config.Service.Pipelines)
			for pipeline, p := range config.Service.Pipelines {
				assert.Empty(t, orderViolations(pipeline, isTraces(pipeline), p, config))
				if isTraces(pipeline) {
					assert.Empty(t, queueViolations(pipeline, p, config))
				}
			}
			assert.Empty(t, limitViolations(name, config))
			assert.Empty(t, requestViolations(name, config))
			assert.Empty(t, pageViolations(name, config))
			limiter := config.Processors["memory_limiter"]
			assert.GreaterOrEqual(t, c.resources.Limits.Memory().Value(), int64(limiter.LimitMiB+limiter.SpikeMiB)<<20, "the system would kill the collector before it refuses data")
			assert.LessOrEqual(t, c.resources.Requests.Memory().Value(), c.resources.Limits.Memory().Value())
			assert.True(t, c.resources.Limits.Cpu().IsZero(), "programs would wait for a collector at its limit")
			require.NotNil(t, c.grace)
			assert.GreaterOrEqual(t, *c.grace, int64(90))
			assert.True(t, *c.pod.RunAsNonRoot)
			assert.True(t, *c.container.ReadOnlyRootFilesystem)
			assert.False(t, *c.container.AllowPrivilegeEscalation)
		})
	}
}

func TestTheDistributionAcceptsItsConfigurationsForKubernetes(t *testing.T) {
	t.Parallel()
	for name, c := range podCollectors(t) {
		t.Run(name, func(t *testing.T) {
			collector := kit.Binary(t)
			if strings.Contains(c.configuration, routing+":") {
				collector = kit.Gateway(t)
			}
			file := filepath.Join(t.TempDir(), "collector.yaml")
			require.NoError(t, os.WriteFile(file, []byte(c.configuration), 0o600))
			validate := exec.CommandContext(t.Context(), collector, "validate", "--config", file)
			validate.Env = append(os.Environ(), "MY_POD_IP=127.0.0.1")
			output, err := validate.CombinedOutput()
			require.NoError(t, err, "%s", output)
			assert.NotContains(t, string(output), "deprecated")
		})
	}
}

// shippedParts are the parts of configurations for Kubernetes that are those of config/, except for the listed settings.
var shippedParts = []struct {
	name, shipped string
	parts         []string
	others        []string
}{
	{"callbraid-receive", "gateway-receive.yaml", []string{"processors", "exporters load_balancing", "exporters prometheus"}, []string{"resolver", "endpoint"}},
	{"callbraid-pair", "gateway-pair.yaml", []string{"processors", "connectors", "receivers", "exporters prometheus"}, []string{"endpoint"}},
	{"helm", "standalone.yaml", []string{"processors", "connectors", "exporters flame_graph"}, []string{"interval", "endpoint"}},
	{"operator", "standalone.yaml", []string{"processors", "connectors", "exporters flame_graph"}, []string{"interval", "endpoint"}},
}

func TestConfigurationsForKubernetesHaveTheSettingsOfTheShippedOnes(t *testing.T) {
	collectors := podCollectors(t)
	for _, of := range shippedParts {
		t.Run(of.name, func(t *testing.T) {
			text, err := os.ReadFile(shippedConfigs(t)[of.shipped])
			require.NoError(t, err)
			for _, part := range of.parts {
				assert.Equal(t, partOf(t, string(text), part, of.others), partOf(t, collectors[of.name].configuration, part, of.others), part)
			}
		})
	}
}

// partOf is the part at a path of a configuration, without settings of some names, as JSON.
func partOf(t *testing.T, configuration, path string, without []string) string {
	t.Helper()
	var all map[string]any
	require.NoError(t, yaml.Unmarshal([]byte(configuration), &all))
	part := any(all)
	for key := range strings.FieldsSeq(path) {
		next, ok := part.(map[string]any)[key]
		require.True(t, ok, path)
		part = next
	}
	remove(part, without)
	text, err := json.MarshalIndent(part, "", " ")
	require.NoError(t, err)
	return string(text)
}

func remove(from any, names []string) {
	inner, ok := from.(map[string]any)
	if !ok {
		return
	}
	for _, name := range names {
		delete(inner, name)
	}
	for _, value := range inner {
		remove(value, names)
	}
}

// What a listener of a pod accepts is bounded by a network policy, because none has a password.
func TestNetworkPoliciesAcceptOnlyTracedProgramsTheFirstTierAndPrometheus(t *testing.T) {
	assert.True(t, readValues(t).NetworkPolicy.Enabled)
	traced := metav1.LabelSelector{MatchLabels: map[string]string{"callbraid": "traced"}}
	assert.Equal(t, &traced, readValues(t).NetworkPolicy.AllowIngressFrom[0].PodSelector)
	operator := object[networkingv1.NetworkPolicy](t, readManifest(t, "operator.yaml"), "NetworkPolicy callbraid")
	assert.Equal(t, &traced, operator.Spec.Ingress[0].From[0].PodSelector)
	// The operator gives its pods this label.
	assert.Equal(t, map[string]string{"app.kubernetes.io/name": "callbraid-collector"}, operator.Spec.PodSelector.MatchLabels)

	tiers := readManifest(t, "two-tiers.yaml")
	for name, peer := range map[string]map[string]string{"callbraid-receive": traced.MatchLabels, "callbraid-pair": {"app": "callbraid-receive"}} {
		policy := object[networkingv1.NetworkPolicy](t, tiers, "NetworkPolicy "+name).Spec
		pod := object[appsv1.StatefulSet](t, tiers, "StatefulSet "+name).Spec.Template
		assert.Equal(t, pod.Labels, policy.PodSelector.MatchLabels)
		assert.Equal(t, peer, policy.Ingress[0].From[0].PodSelector.MatchLabels)
		service := object[corev1.Service](t, tiers, "Service "+name).Spec
		assert.Equal(t, pod.Labels, service.Selector)
		ports := map[string]bool{}
		for _, port := range pod.Spec.Containers[0].Ports {
			ports[port.Name] = true
		}
		assert.True(t, ports[service.Ports[0].TargetPort.StrVal])
		for _, rule := range policy.Ingress {
			require.NotEmpty(t, rule.Ports)
			for _, port := range rule.Ports {
				assert.True(t, ports[port.Port.StrVal], port.Port.StrVal)
			}
		}
	}
	program := object[appsv1.Deployment](t, readManifest(t, "sidecar.yaml"), "Deployment shop").Spec.Template
	assert.Equal(t, "traced", program.Labels["callbraid"])
}

func TestTheFirstTierInKubernetesFindsTheSecond(t *testing.T) {
	tiers := readManifest(t, "two-tiers.yaml")
	var config struct {
		Exporters struct {
			LoadBalancing struct {
				Resolver struct {
					DNS struct{ Hostname, Port string }
				}
			} `yaml:"load_balancing"`
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(podCollectors(t)["callbraid-receive"].configuration), &config))
	to := config.Exporters.LoadBalancing.Resolver.DNS
	pair := object[corev1.Service](t, tiers, "Service "+to.Hostname).Spec
	assert.Equal(t, corev1.ClusterIPNone, pair.ClusterIP, "the name has to have the addresses of all pods")
	assert.Equal(t, fmt.Sprint(pair.Ports[0].Port), to.Port)
	assert.Equal(t, corev1.ServiceAffinityClientIP, object[corev1.Service](t, tiers, "Service callbraid-receive").Spec.SessionAffinity)

	// The disk has three times the size of the queue.
	receive := object[appsv1.StatefulSet](t, tiers, "StatefulSet callbraid-receive").Spec
	const queue = 4 << 30
	assert.GreaterOrEqual(t, receive.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().Value(), int64(3*queue))
}

// A program behind the guard of sidecar.yaml is traced by the collector of helm-values.yaml. Only addresses differ.
func TestTheSidecarTracesAProgram(t *testing.T) {
	t.Parallel()
	endpoint, listen, metrics := testkit.Address(t), testkit.Address(t), testkit.Address(t)
	const podIP = "${env:MY_POD_IP}:"
	configuration := podCollectors(t)["helm"].configuration
	for old, address := range map[string]string{
		podIP + "13133": "${env:HEALTH}", podIP + "8765": endpoint, podIP + "8889": testkit.Address(t), "jaeger:4317": testkit.Address(t),
		"localhost:4040": testkit.Address(t), "port: 8888": "port: ${env:METRICS_PORT}",
	} {
		require.Equal(t, 1, strings.Count(configuration, old), old)
		configuration = strings.Replace(configuration, old, address, 1)
	}
	c := kit.Start(t, configuration, "MY_POD_IP=127.0.0.1")

	pod := object[appsv1.Deployment](t, readManifest(t, "sidecar.yaml"), "Deployment shop").Spec.Template.Spec
	require.Len(t, pod.InitContainers, 1)
	sidecar := pod.InitContainers[0]
	require.NotNil(t, sidecar.RestartPolicy)
	assert.Equal(t, corev1.ContainerRestartPolicyAlways, *sidecar.RestartPolicy)
	assert.True(t, sidecar.Resources.Limits.Memory().IsZero(), "the system would kill the guard, and the program would hang")
	assert.Nil(t, sidecar.LivenessProbe)
	assert.Contains(t, pod.Containers[0].Env[0].Value, "=localhost:8764;", "the guard's own address")
	arguments := []string{"--listen=" + listen}
	for _, argument := range sidecar.Args {
		arguments = append(arguments, strings.NewReplacer("callbraid:8765", endpoint, "localhost:9464", metrics).Replace(argument))
	}
	guard := exec.CommandContext(t.Context(), kit.Guard(t), arguments...)
	require.NoError(t, guard.Start())
	t.Cleanup(func() { _ = guard.Process.Kill(); _ = guard.Wait() })
	probe := sidecar.StartupProbe.Exec.Command
	require.Equal(t, "/usr/bin/agentctl", probe[0])
	testkit.Eventually(t, "the startup probe succeeds", func() (bool, string) {
		var words []string
		for _, word := range probe[1:] {
			words = append(words, strings.Replace(word, "localhost:9464", metrics, 1))
		}
		output, err := exec.CommandContext(t.Context(), kit.AgentCtl(t), words...).CombinedOutput()
		return err == nil, string(output)
	})

	agent{endpoint: listen, capture: "shop"}.complete(t)
	c.AwaitMetric(t, float64(len(reference.Spans(openCapture(t, "shop"), defaultRules).Spans)), connectorMetrics+"spans")
	c.Stop(t)
}
