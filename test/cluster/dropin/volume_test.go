package dropin_test

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"sluice/test/cluster"
)

// volume is a folder of a ConfigMap's or a service account's, as the kubelet makes it: each file is a link into ..data,
// which is a link to the folder of the day.
type volume struct{ path string }

func newVolume(t *testing.T, files map[string]string) volume {
	t.Helper()
	v := volume{t.TempDir()}
	v.turn(t, files)
	for name := range files {
		if err := os.Symlink(filepath.Join("..data", name), filepath.Join(v.path, name)); err != nil {
			t.Fatal(err)
		}
	}
	return v
}

// turn puts other contents in place, all at once.
func (v volume) turn(t *testing.T, files map[string]string) {
	t.Helper()
	old, _ := os.Readlink(filepath.Join(v.path, "..data")) // none at first
	day := filepath.Join(v.path, "..day-"+rand.Text())
	err := os.Mkdir(day, 0o755)
	for name, text := range files {
		if err == nil {
			err = os.WriteFile(filepath.Join(day, name), []byte(text), 0o644)
		}
	}
	if err == nil {
		err = os.Symlink(filepath.Base(day), filepath.Join(v.path, "..data_tmp"))
	}
	if err == nil {
		err = os.Rename(filepath.Join(v.path, "..data_tmp"), filepath.Join(v.path, "..data"))
	}
	if err == nil && old != "" {
		err = os.RemoveAll(filepath.Join(v.path, old))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// accountFolder is where a pod finds its service account.
const accountFolder = "/var/run/secrets/kubernetes.io/serviceaccount"

// account is the volume that the kubelet makes for a service account in kube-system.
func account(t *testing.T, c *cluster.Cluster, name string) mount {
	t.Helper()
	hour := int64(60 * 60)
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &hour}}
	answer, err := c.Client.CoreV1().ServiceAccounts("kube-system").CreateToken(t.Context(), name, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{"token": answer.Status.Token, "ca.crt": string(c.Config().CAData), "namespace": "kube-system"}
	return mount{From: newVolume(t, files).path, At: accountFolder, ReadOnly: true}
}
