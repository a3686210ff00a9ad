package cluster

import (
	"path/filepath"
	"testing"

	authv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeProxyRights are those that kubeadm gives kube-proxy; the API server has made the role itself.
const kubeProxyRights = `
apiVersion: v1
kind: ServiceAccount
metadata: {name: kube-proxy, namespace: kube-system}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: kubeadm:node-proxier}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: "system:node-proxier"}
subjects: [{kind: ServiceAccount, name: kube-proxy, namespace: kube-system}]
`

// grant makes the proxies' accounts and their rights, which for Sluice are those that deploy/ gives it.
func (c *Cluster) grant(t testing.TB) {
	t.Helper()
	c.Apply(t, kubeProxyRights)
	base := filepath.Join(repository(t), "deploy", "kustomize", "base")
	c.Kubectl(t, "", "apply", "-f", filepath.Join(base, "serviceaccount.yaml"), "-f", filepath.Join(base, "rbac.yaml"))
}

// accountKubeconfig makes NAME.kubeconfig for a ServiceAccount in kube-system, with a token of the API server's.
func (c *Cluster) accountKubeconfig(t testing.TB, name, account string) string {
	t.Helper()
	day := int64(24 * 60 * 60)
	request := &authv1.TokenRequest{Spec: authv1.TokenRequestSpec{ExpirationSeconds: &day}}
	answer, err := c.Client.CoreV1().ServiceAccounts(systemNamespace).CreateToken(ctx(), account, request, metav1.CreateOptions{})
	if err == nil {
		err = c.writeKubeconfig(name, "token: "+answer.Status.Token)
	}
	if err != nil {
		t.Fatalf("account %s: %v", account, err)
	}
	return c.file(name + ".kubeconfig")
}

// systemNamespace is where the proxies' accounts are.
const systemNamespace = "kube-system"
