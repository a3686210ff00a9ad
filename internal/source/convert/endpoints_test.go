package convert_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

func name(s string) model.Name { return model.Name{Namespace: "default", Name: s} }

func slice(change func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
	s := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "web-1", Labels: map[string]string{"kubernetes.io/service-name": "web"}},
		AddressType: "IPv4",
	}
	change(s)
	return s
}

func TestSliceValues(t *testing.T) {
	pod := &corev1.ObjectReference{Kind: "Pod", Name: "web-a"}
	in := slice(func(s *discoveryv1.EndpointSlice) {
		s.Ports = []discoveryv1.EndpointPort{{Port: new(int32(8080))}, {Name: new("dns"), Protocol: new(corev1.ProtocolUDP), Port: new(int32(53))}}
		s.Endpoints = []discoveryv1.Endpoint{
			{Addresses: []string{"10.0.0.01", "10.0.0.2"}, TargetRef: pod, NodeName: new("node-a")},
			{Addresses: []string{"10.0.0.3"}, Conditions: discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)}},
			{Addresses: []string{"10.0.0.4"}, Conditions: discoveryv1.EndpointConditions{Serving: new(false)}, Hints: &discoveryv1.EndpointHints{
				ForZones: []discoveryv1.ForZone{{Name: "z1"}, {Name: "z2"}}, ForNodes: []discoveryv1.ForNode{{Name: "n1"}},
			}},
		}
	})
	want := &model.Slice{
		Name: name("web-1"), Service: name("web"),
		Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8080}, {Name: "dns", Protocol: model.UDP, Port: 53}},
		Endpoints: []model.Endpoint{
			{Address: addrs("10.0.0.1")[0], Node: "node-a", Pod: "web-a", Ready: true, Serving: true},
			{Address: addrs("10.0.0.3")[0], Serving: true, Terminating: true},
			{Address: addrs("10.0.0.4")[0], Ready: true, Hints: &model.Hints{Zones: []string{"z1", "z2"}, Nodes: []string{"n1"}}},
		},
	}
	got, problems := convert.Slice(in)
	if diff := cmp.Diff(want, got, values); diff != "" || len(problems) > 0 {
		t.Errorf("problems %v, slice (-want +got):\n%s", problems, diff)
	}
}

func TestSliceProblems(t *testing.T) {
	port := func(p discoveryv1.EndpointPort) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{p} }
	}
	address := func(a ...string) func(*discoveryv1.EndpointSlice) {
		return func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{{Addresses: a}} }
	}
	notice := func(field string) []convert.Problem {
		return []convert.Problem{{Field: field, Severity: convert.Notice}}
	}
	one := func(p convert.Problem) []convert.Problem { return []convert.Problem{p} }
	for _, test := range []struct {
		name   string
		change func(*discoveryv1.EndpointSlice)
		want   []convert.Problem // without the messages
		gone   bool
	}{
		{"headless", func(s *discoveryv1.EndpointSlice) { s.Labels["service.kubernetes.io/headless"] = "" }, nil, true},
		{"host names", func(s *discoveryv1.EndpointSlice) { s.AddressType = "FQDN" }, notice("addressType"), true},
		{"no service", func(s *discoveryv1.EndpointSlice) { s.Labels = nil }, notice("metadata.labels"), true},
		{"address type", func(s *discoveryv1.EndpointSlice) { s.AddressType = "" }, one(skipped("addressType")), true},
		{"port without number", port(discoveryv1.EndpointPort{}), notice("ports[0].port"), false},
		{"port 0", port(discoveryv1.EndpointPort{Port: new(int32(0))}), notice("ports[0].port"), false},
		{"port -1", port(discoveryv1.EndpointPort{Port: new(int32(-1))}), one(leftOut("ports[0].port")), false},
		{"protocol", port(discoveryv1.EndpointPort{Port: new(int32(1)), Protocol: new(corev1.Protocol("ICMP"))}), one(leftOut("ports[0].protocol")), false},
		{"no address", address(), one(leftOut("endpoints[0].addresses")), false},
		{"other family", address("fd00::1"), one(leftOut("endpoints[0].addresses[0]")), false},
		{"address", address("10.0.0.1/32"), one(leftOut("endpoints[0].addresses[0]")), false},
		{"loopback", address("127.0.0.1"), one(leftOut("endpoints[0].addresses[0]")), false},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, problems := convert.Slice(slice(test.change))
			if diff := cmp.Diff(test.want, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
			if (got == nil) != test.gone {
				t.Fatalf("slice is %v, gone %v", got, test.gone)
			}
			if got != nil && len(got.Ports)+len(got.Endpoints) > 0 {
				t.Errorf("the wrong part is still there: %+v", got)
			}
		})
	}
}

func TestEndpoints(t *testing.T) {
	got, problems := convert.Endpoints(&corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Subsets: []corev1.EndpointSubset{{
			Addresses:         []corev1.EndpointAddress{{IP: "10.0.0.1", NodeName: new("n")}, {IP: "fd00::1"}, {IP: "bad"}},
			NotReadyAddresses: []corev1.EndpointAddress{{IP: "10.0.0.2"}},
			Ports:             []corev1.EndpointPort{{Port: 80}, {Name: "x", Port: 0}},
		}, {}},
	})
	ports := []model.SlicePort{{Protocol: model.TCP, Port: 80}}
	want := []*model.Slice{
		{Name: name("web:endpoints:0:ipv4"), Service: name("web"), Ports: ports, Endpoints: []model.Endpoint{
			{Address: addrs("10.0.0.1")[0], Node: "n", Ready: true, Serving: true}, {Address: addrs("10.0.0.2")[0]},
		}},
		{Name: name("web:endpoints:0:ipv6"), Service: name("web"), Family: model.IPv6, Ports: ports, Endpoints: []model.Endpoint{
			{Address: addrs("fd00::1")[0], Ready: true, Serving: true},
		}},
	}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	wantProblems := []convert.Problem{leftOut("subsets[0].ports[1].port"), leftOut("subsets[0].addresses[2].ip")}
	if diff := cmp.Diff(wantProblems, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNode(t *testing.T) {
	got, problems := convert.Node(&corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"topology.kubernetes.io/zone": "z"}},
		Spec:       corev1.NodeSpec{PodCIDR: "10.1.0.0/24", PodCIDRs: []string{"10.1.0.0/24", "fd00::/64", "x"}},
		Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
			{Type: "Hostname", Address: "n"}, {Type: "InternalIP", Address: "192.0.2.1"}, {Type: "InternalIP", Address: "n"}, {Type: "ExternalIP", Address: "fd00::2"},
		}},
	})
	want := &model.Node{
		Name: "n", Zone: "z", InternalIPs: addrs("192.0.2.1"), ExternalIPs: addrs("fd00::2"), PodCIDRs: prefixes("10.1.0.0/24", "fd00::/64"),
	}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Errorf("node (-want +got):\n%s", diff)
	}
	wantProblems := []convert.Problem{leftOut("spec.podCIDRs[2]"), leftOut("status.addresses[2].address")}
	if diff := cmp.Diff(wantProblems, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
}

func TestNodeLeaves(t *testing.T) {
	now := metav1.Now()
	for name, tt := range map[string]struct {
		node corev1.Node
		want bool
	}{
		"stays":               {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "node.kubernetes.io/unschedulable"}}}}, false},
		"is being deleted":    {corev1.Node{ObjectMeta: metav1.ObjectMeta{DeletionTimestamp: &now}}, true},
		"soon to be deleted":  {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "a"}, {Key: "ToBeDeletedByClusterAutoscaler", Value: "1", Effect: "NoSchedule"}}}}, true},
		"may soon be deleted": {corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{{Key: "DeletionCandidateOfClusterAutoscaler"}}}}, false},
	} {
		tt.node.Name = "n"
		if got, _ := convert.Node(&tt.node); got.Leaving != tt.want {
			t.Errorf("%s: Leaving = %v, want %v", name, got.Leaving, tt.want)
		}
	}
}

func pod(podName string, httpPort int32, change func(*corev1.Pod)) *convert.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: podName, Labels: map[string]string{"app": "web", "pod": podName}},
		Spec: corev1.PodSpec{NodeName: "node-a", Containers: []corev1.Container{{
			Ports: []corev1.ContainerPort{{Name: "http", Protocol: "UDP", ContainerPort: 9}, {Name: "http", ContainerPort: httpPort}},
		}}},
		Status: corev1.PodStatus{
			PodIPs:     []corev1.PodIP{{IP: "10.0.0.1"}, {IP: "fd00::1"}},
			Conditions: []corev1.PodCondition{{Type: "Initialized", Status: "False"}, {Type: "Ready", Status: "True"}},
		},
	}
	change(p)
	out, _ := convert.PodOf(p)
	return out
}

func TestPodSlices(t *testing.T) {
	in := web(func(s *corev1.Service) {
		s.Spec.Selector = map[string]string{"app": "web"}
		s.Spec.ClusterIP = "10.9.9.9"
		s.Spec.Ports[0].TargetPort = intstr.FromString("http")
	})
	pods := []*convert.Pod{
		pod("d", 8081, func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{} }),
		pod("a", 8080, func(*corev1.Pod) {}),
		pod("b", 8080, func(p *corev1.Pod) { p.Status.Conditions = nil }),
		pod("c", 0, func(*corev1.Pod) {}),
		pod("e", 0, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{
				{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 1}}},
				{Ports: []corev1.ContainerPort{{Name: "http", ContainerPort: 8080}}, RestartPolicy: new(corev1.ContainerRestartPolicyAlways)},
			}
		}),
		pod("f", 8080, func(p *corev1.Pod) { p.Status.PodIPs = nil }),
	}
	v4 := addrs("10.0.0.1")[0]
	endpoint := func(pod string, ready, serving, terminating bool) model.Endpoint {
		return model.Endpoint{Address: v4, Node: "node-a", Pod: pod, Ready: ready, Serving: serving, Terminating: terminating}
	}
	want := []*model.Slice{
		{Name: name("web:pods:8080:ipv4"), Service: name("web"), Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8080}}, Endpoints: []model.Endpoint{
			endpoint("a", true, true, false), endpoint("b", false, false, false), endpoint("e", true, true, false),
		}},
		{Name: name("web:pods:8081:ipv4"), Service: name("web"), Ports: []model.SlicePort{{Protocol: model.TCP, Port: 8081}}, Endpoints: []model.Endpoint{
			endpoint("d", false, true, true),
		}},
	}
	got, problems := convert.PodSlices(convert.SelectorOf(in), pods)
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Errorf("slices (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]convert.Problem{warning("spec.ports[0].targetPort")}, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}

	in.Spec.PublishNotReadyAddresses, in.Spec.ClusterIP = true, ""
	in.Spec.Ports[0].TargetPort = intstr.IntOrString{}
	got, _ = convert.PodSlices(convert.SelectorOf(in), pods)
	if len(got) != 2 || got[0].Ports[0].Port != 80 || len(got[1].Endpoints) != 5 || !got[1].Endpoints[3].Ready {
		t.Errorf("with publishNotReadyAddresses, both families and the Service's own port: %+v", got)
	}
}

func TestSelectorMatches(t *testing.T) {
	s := convert.SelectorOf(web(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "web", "pod": "a"} }))
	for _, test := range []struct {
		name string
		pod  *convert.Pod
		want bool
	}{
		{"all labels", pod("a", 1, func(*corev1.Pod) {}), true},
		{"one label differs", pod("b", 1, func(*corev1.Pod) {}), false},
		{"a label is missing", pod("a", 1, func(p *corev1.Pod) { delete(p.Labels, "app") }), false},
		{"another namespace", pod("a", 1, func(p *corev1.Pod) { p.Namespace = "other" }), false},
		{"failed", pod("a", 1, func(p *corev1.Pod) { p.Status.Phase = "Failed" }), false},
		{"succeeded", pod("a", 1, func(p *corev1.Pod) { p.Status.Phase = "Succeeded" }), false},
	} {
		if got := s.Matches(test.pod); got != test.want {
			t.Errorf("%s: matches %v, want %v", test.name, got, test.want)
		}
	}
	for _, change := range []func(*corev1.Service){
		func(s *corev1.Service) {},
		func(s *corev1.Service) { s.Spec.Selector, s.Spec.ClusterIP = map[string]string{"a": "b"}, "None" },
		func(s *corev1.Service) { s.Spec.Selector, s.Spec.Type = map[string]string{"a": "b"}, "ExternalName" },
	} {
		if s := convert.SelectorOf(web(change)); s != nil {
			t.Errorf("selector %+v, want none", s)
		}
	}
}

func TestPodsOf(t *testing.T) {
	spec := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"name": "registry"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "ssh", ContainerPort: 22}}}}},
	}
	meta := metav1.ObjectMeta{Name: "registry"}
	want := func(kind string, replicas int) convert.PodTemplate {
		return convert.PodTemplate{
			Name: name("registry"), Kind: kind, Labels: map[string]string{"name": "registry"},
			Ports: []convert.ContainerPort{{Name: "ssh", Protocol: model.TCP, Port: 22}}, Replicas: replicas,
		}
	}
	for _, test := range []struct {
		in   any
		want convert.PodTemplate
	}{
		{&corev1.ReplicationController{ObjectMeta: meta, Spec: corev1.ReplicationControllerSpec{Template: &spec}}, want("ReplicationController", 1)},
		{&appsv1.ReplicaSet{ObjectMeta: meta, Spec: appsv1.ReplicaSetSpec{Template: spec, Replicas: new(int32(0))}}, want("ReplicaSet", 0)},
		{&appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{Template: spec, Replicas: new(int32(3))}}, want("Deployment", 3)},
	} {
		got, ok := convert.PodsOf(test.in)
		if diff := cmp.Diff(test.want, got); diff != "" || !ok {
			t.Errorf("%T: ok %v, template (-want +got):\n%s", test.in, ok, diff)
		}
	}
	for _, in := range []any{&corev1.ReplicationController{}, &corev1.Pod{}, nil} {
		if got, ok := convert.PodsOf(in); ok {
			t.Errorf("%T has the template %+v", in, got)
		}
	}
}

// TestEmptyObjects is that no part of an object is taken for granted.
func TestEmptyObjects(t *testing.T) {
	if s, p := convert.Service(&corev1.Service{}); s != nil || len(p) == 0 {
		t.Errorf("service %v, problems %v", s, p)
	}
	if s, p := convert.Slice(&discoveryv1.EndpointSlice{}); s != nil || len(p) == 0 {
		t.Errorf("slice %v, problems %v", s, p)
	}
	if s, p := convert.Endpoints(&corev1.Endpoints{}); s != nil || len(p) == 0 {
		t.Errorf("endpoints %v, problems %v", s, p)
	}
	if n, p := convert.Node(&corev1.Node{}); n != nil || len(p) == 0 {
		t.Errorf("node %v, problems %v", n, p)
	}
	if pod, p := convert.PodOf(&corev1.Pod{}); pod != nil || len(p) == 0 {
		t.Errorf("pod %v, problems %v", pod, p)
	}
}
