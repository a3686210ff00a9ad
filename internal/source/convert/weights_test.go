package convert_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/internal/model"
	"sluice/internal/source/convert"
)

// A wrong entry is named and left out; the others count.
func TestWrongWeights(t *testing.T) {
	for entry, says := range map[string]string{
		"web-v1":                "NAME=WEIGHT",
		"web=0":                 "1-100",
		"web=101":               "1-100",
		"web=-1":                "1-100",
		"web=1.5":               "1-100",
		"web=20%":               "1-100",
		"web=":                  "1-100",
		"web=99999999999999999": "1-100",
		"=3":                    "no address",
		"Web=3":                 "no address",
		"we*b=3":                "no address",
		"web**=3":               "no address",
		"10.0.0.1:80=3":         "no address",
		"node/=3":               "no address",
		"node/a*=3":             "no address",
		"pod/web=3":             "no address",
	} {
		t.Run(entry, func(t *testing.T) {
			got, problems := convert.Service(web(func(s *corev1.Service) {
				s.Annotations = map[string]string{"sluice.dev/weights": "a=2, " + entry + ", b=3"}
			}))
			want := []convert.Problem{warning("metadata.annotations[sluice.dev/weights]")}
			if diff := cmp.Diff(want, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
				t.Fatalf("problems (-want +got):\n%s", diff)
			}
			if m := problems[0].Message; !strings.Contains(m, entry) || !strings.Contains(m, says) {
				t.Errorf("message %q, want the entry and %q in it", m, says)
			}
			if diff := cmp.Diff([]model.Weight{{Pod: "a", Value: 2}, {Pod: "b", Value: 3}}, got.Weights, values); diff != "" {
				t.Errorf("weights (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServiceCIDR(t *testing.T) {
	got, problems := convert.ServiceCIDR(&networkingv1.ServiceCIDR{
		ObjectMeta: metav1.ObjectMeta{Name: "kubernetes"},
		Spec:       networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.96.0.7/12", "10.96.0.1", "::/0", "fd00:96::/112"}},
	})
	want := &model.ServiceCIDR{Name: "kubernetes", Prefixes: prefixes("10.96.0.0/12", "fd00:96::/112")}
	if diff := cmp.Diff(want, got, values); diff != "" {
		t.Errorf("ServiceCIDR (-want +got):\n%s", diff)
	}
	wantProblems := []convert.Problem{leftOut("spec.cidrs[1]"), leftOut("spec.cidrs[2]")}
	if diff := cmp.Diff(wantProblems, problems, cmpopts.IgnoreFields(convert.Problem{}, "Message")); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	if got, problems := convert.ServiceCIDR(&networkingv1.ServiceCIDR{}); got != nil || len(problems) == 0 {
		t.Errorf("without a name: %v, problems %v", got, problems)
	}
}
