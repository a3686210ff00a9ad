package dropin_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/test/cluster"
)

// The account of deploy/ may do what is listed here beside what every account may.
func TestRights(t *testing.T) {
	c := cluster.Start(t, cluster.Options{})
	everyone := rights(t, c, "default")
	got := slices.DeleteFunc(rights(t, c, "sluice"), func(line string) bool { return slices.Contains(everyone, line) })
	want := []string{
		"endpointslices.discovery.k8s.io [] [] [list watch]",
		"events.events.k8s.io [] [] [create patch]",
		"nodes [] [] [list watch]",
		"servicecidrs.networking.k8s.io [] [] [list watch]",
		"services [] [] [list watch]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// rights are what kubectl says that an account in kube-system may do, sorted.
func rights(t *testing.T, c *cluster.Cluster, account string) (lines []string) {
	t.Helper()
	out := c.Kubectl(t, "", "auth", "can-i", "--list", "--no-headers", "-n", "kube-system", "--as=system:serviceaccount:kube-system:"+account)
	for line := range strings.Lines(out) {
		lines = append(lines, strings.Join(strings.Fields(line), " "))
	}
	slices.Sort(lines)
	return lines
}

// request is one of an audit log.
type request struct {
	Verb           string
	User           struct{ Username string }
	ObjectRef      struct{ Resource string }
	ResponseStatus struct{ Code int }
}

// requestsOf reads what an account in kube-system asked of the API server.
func requestsOf(t *testing.T, c *cluster.Cluster, account string) (all []request) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.Folder, "audit.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r request
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if r.User.Username == "system:serviceaccount:kube-system:"+account {
			all = append(all, r)
		}
	}
	return all
}

// noneRefused wants an account to have asked for all kinds of objects, and never in vain.
func noneRefused(t *testing.T, c *cluster.Cluster, account string) {
	t.Helper()
	watched := map[string]bool{}
	for _, r := range requestsOf(t, c, account) {
		if r.ResponseStatus.Code >= http.StatusBadRequest {
			t.Errorf("%s %s was answered by %d", r.Verb, r.ObjectRef.Resource, r.ResponseStatus.Code)
		}
		watched[r.ObjectRef.Resource] = watched[r.ObjectRef.Resource] || r.Verb == "watch"
	}
	for _, resource := range []string{"services", "endpointslices", "nodes", "servicecidrs"} {
		if !watched[resource] {
			t.Errorf("it watched no %s, but %v", resource, watched)
		}
	}
}
