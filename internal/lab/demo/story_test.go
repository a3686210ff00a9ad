package demo

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"sluice/internal/lab"
	"sluice/internal/source/manifest"
)

// newTestStory is a story whose manifests are in place and whose lab is not built.
func newTestStory(t *testing.T) *story {
	t.Helper()
	s := &story{folder: manifests(t.TempDir())}
	for _, example := range []string{"registry.yaml", "mysql-service.yaml"} {
		if err := s.folder.putExample(example); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.folder.putNode(); err != nil {
		t.Fatal(err)
	}
	if err := s.makePods(); err != nil {
		t.Fatal(err)
	}
	return s
}

// What the daemon reads is right to the last field, and has the pods of the lab as the Services' endpoints.
func TestManifests(t *testing.T) {
	s := newTestStory(t)
	if err := s.folder.putPod(s.behind("mysql-service")[1], false); err != nil {
		t.Fatal(err)
	}
	snapshot, problems, err := manifest.Read([]string{string(s.folder)}, nil)
	if err != nil || len(problems) > 0 {
		t.Fatal(problems, err)
	}
	got := map[string]bool{}
	for _, slice := range snapshot.Slices {
		for _, e := range slice.Endpoints {
			got[slice.Service.Name+" "+netip.AddrPortFrom(e.Address, slice.Ports[0].Port).String()] = e.Ready
		}
	}
	want := map[string]bool{
		"registry 172.17.0.5:22":             true,
		"mysql-service 192.168.125.129:3306": true,
		"mysql-service 192.168.125.131:3306": false,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestRemovedPodIsGone(t *testing.T) {
	s := newTestStory(t)
	if err := s.folder.removePod(s.pods[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(string(s.folder), s.pods[0].name+".yaml")); !os.IsNotExist(err) {
		t.Errorf("got %v", err)
	}
}

func TestPicture(t *testing.T) {
	want := `client 203.0.113.7 ── node1 192.168.10.11 ─┬─ shell       192.168.125.10   a pod to connect from
                                           ├─ mysql-0     192.168.125.129  behind mysql-service
                                           ├─ mysql-1     192.168.125.131  behind mysql-service
                                           └─ registry-0  172.17.0.5       behind registry
`
	if diff := cmp.Diff(want, picture(newTestStory(t).pods)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestEven(t *testing.T) {
	pods := newTestStory(t).behind("mysql-service")
	tests := []struct {
		name string
		hits []int // by pod
		all  int
		want bool
	}{
		{"even", []int{50, 50}, 100, true},
		{"as chance has it", []int{21, 79}, 100, true},
		{"one has nearly all", []int{1, 99}, 100, false},
		{"one has all", []int{0, 100}, 100, false},
		{"some are lost", []int{49, 50}, 100, false},
	}
	for _, tt := range tests {
		tally := lab.Tally{Total: tt.all, Endpoints: map[netip.AddrPort]int{}}
		for i, n := range tt.hits {
			tally.Endpoints[pods[i].endpoint()] = n
		}
		if got := even(tally, pods); got != tt.want {
			t.Errorf("%s: got %v", tt.name, got)
		}
	}
}

func TestNames(t *testing.T) {
	pods := newTestStory(t).pods
	for n, want := range []string{"", "mysql-0", "mysql-0 and mysql-1", "mysql-0, mysql-1 and registry-0"} {
		if got := names(pods[:n]); got != want {
			t.Errorf("%d pods: got %q, want %q", n, got, want)
		}
	}
}

func TestUnknownModeIsRefused(t *testing.T) {
	for _, mode := range []string{"telepathy", "plan"} {
		if s, err := newStory(t.Context(), Options{Mode: mode}); err == nil {
			_ = s.close()
			t.Errorf("%s: no error", mode)
		}
	}
}

func TestWritten(t *testing.T) {
	start := "time=2026-01-01T00:00:00Z level=INFO msg=\"watching\"\n"
	tests := map[string]int{
		start: -1,
		start + "level=DEBUG msg=\"rules written\" changed=0 services=2 took=4ms\n":                                              0,
		start + "level=INFO msg=\"rules written\" changed=31 services=2\nlevel=DEBUG msg=\"rules written\" changed=0 took=1ms\n": 31,
	}
	for log, want := range tests {
		if got := written(log); got != want {
			t.Errorf("got %d, want %d from:\n%s", got, want, log)
		}
	}
}

func TestRestored(t *testing.T) {
	log := "time=2026-01-01T00:00:00Z level=INFO msg=watching\n" +
		"time=2026-01-01T00:00:01Z level=WARN msg=\"somebody else changed this; it is restored\" what=\"table inet sluice\"\n" +
		"time=2026-01-01T00:00:01Z level=INFO msg=\"rules written\" changed=30\n"
	want := "level=WARN msg=\"somebody else changed this; it is restored\" what=\"table inet sluice\"\n"
	if diff := cmp.Diff(want, restored(log)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
