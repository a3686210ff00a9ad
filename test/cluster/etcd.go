package cluster

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"
	"time"
)

// etcdURL is for the control plane's machine alone.
const etcdURL = "http://127.0.0.1:2379"

// etcdFlags are for a data folder in memory, which nothing has to be synced to.
func etcdFlags(data string) []string {
	const peer = "http://127.0.0.1:2380"
	return []string{
		"--name=etcd", "--data-dir=" + data, "--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
		"--listen-peer-urls=" + peer, "--initial-advertise-peer-urls=" + peer, "--initial-cluster=etcd=" + peer,
		"--unsafe-no-fsync", "--log-level=warn",
	}
}

// Compact makes etcd forget all revisions but the newest, which it returns: a watch that is to go on from an older one
// gets "too old" from etcd. The API server itself keeps a while of changes in memory: restart it to make that the end.
func (p *ControlPlane) Compact(t testing.TB) int64 {
	t.Helper()
	var newest struct {
		Header struct {
			Revision int64 `json:"revision,string"`
		} `json:"header"`
	}
	if err := p.etcd("range", map[string]any{"key": inBase64([]byte("/")), "limit": "1"}, &newest); err != nil {
		t.Fatal(err)
	}
	at := newest.Header.Revision
	if err := p.etcd("compaction", map[string]any{"revision": fmt.Sprint(at), "physical": true}, &struct{}{}); err != nil {
		t.Fatal(err)
	}
	return at
}

// etcd calls a method of etcd's key-value service, by its gateway for JSON.
func (p *ControlPlane) etcd(method string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	client := http.Client{Transport: &http.Transport{DialContext: dialer(p.host), DisableKeepAlives: true}, Timeout: 10 * time.Second}
	r, err := client.Post(etcdURL+"/v3/kv/"+method, "application/json", bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("etcd: %s: %w", method, err)
	}
	defer func() { _ = r.Body.Close() }()
	if r.StatusCode != http.StatusOK {
		return fmt.Errorf("etcd: %s: %s", method, r.Status)
	}
	return json.NewDecoder(r.Body).Decode(answer)
}

func inBase64(b []byte) string { return base64.StdEncoding.EncodeToString(b) }
