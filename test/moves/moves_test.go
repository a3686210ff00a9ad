package moves

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sluice/internal/app"
	"sluice/internal/cli"
	"sluice/internal/config"
	"sluice/internal/testkit/daemon"
	"sluice/internal/testkit/nstest"
)

func TestMain(m *testing.M) { daemon.Main(m, cli.Main) }

// A daemon whose configuration names another mode moves there.
func TestLive(t *testing.T) {
	st := open(t)
	path := filepath.Join(t.TempDir(), "config.yaml")
	modes := walk(modesHere(t))
	say := func(mode string) {
		text := "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\nmode: " + mode + "\n"
		st.must(os.WriteFile(path+".new", []byte(text), 0o600))
		st.must(os.Rename(path+".new", path))
	}
	say(modes[0])
	d := st.start("--config", path)
	st.waitFor(modes[0])
	st.begin()
	for i, mode := range modes[1:] {
		say(mode)
		st.waitFor(mode)
		st.after(fmt.Sprintf("from %s to %s", modes[i], mode))
	}
	st.complain(d)
}

// A daemon takes the place of one that runs, in whichever mode that is, the same one included.
func TestTakeOver(t *testing.T) {
	st := open(t)
	modes := modesHere(t)
	sequence := walk(modes)
	for _, m := range modes { // and from each to itself
		at := slices.Index(sequence, m)
		sequence = slices.Insert(sequence, at, m)
	}
	running := []*daemon.Daemon{st.start("--mode", sequence[0])}
	st.waitFor(sequence[0])
	st.begin()
	for i, mode := range sequence[1:] {
		running = append(running, st.start("--mode", mode, "--take-over"))
		st.waitFor(mode)
		st.after(fmt.Sprintf("from a daemon of mode %s to one of %s", sequence[i], mode))
	}
	st.end() // what the daemons before relay ends with it
	for _, d := range running[:len(running)-1] {
		st.complain(d)
		if err := d.Wait(limit); err != nil {
			t.Errorf("a daemon that another one follows: %v\n%s", err, d.Log())
		}
	}
	st.complain(running[len(running)-1])
}

// modesHere are the modes that this kernel can do.
func modesHere(t *testing.T) []string {
	t.Helper()
	modes := []string{config.ModeIPTables, config.ModeUserspace}
	if app.ChooseMode(t.Context()) == config.ModeNFTables {
		modes = append(modes, config.ModeNFTables)
	}
	if nstest.HasIPVS(t) {
		modes = append(modes, config.ModeIPVS)
	}
	return modes
}

// walk is a way through all modes that goes from each to each other one once.
func walk(modes []string) (way []string) {
	left := map[[2]string]bool{}
	for _, a := range modes {
		for _, b := range modes {
			left[[2]string{a, b}] = a != b
		}
	}
	var visit func(from string)
	visit = func(from string) { // Hierholzer's: what has no way on is the end of the way
		for _, to := range modes {
			if step := [2]string{from, to}; left[step] {
				left[step] = false
				visit(to)
			}
		}
		way = append(way, from)
	}
	visit(modes[0])
	slices.Reverse(way)
	return way
}

func TestWalk(t *testing.T) {
	for n := 1; n <= 4; n++ {
		way := walk([]string{"a", "b", "c", "d"}[:n])
		seen := map[string]bool{}
		for i := range way[1:] {
			step := way[i] + way[i+1]
			if seen[step] || way[i] == way[i+1] {
				t.Errorf("%d modes: %s twice, or to itself", n, step)
			}
			seen[step] = true
		}
		if len(seen) != n*(n-1) {
			t.Errorf("%d modes: %s has %d steps", n, strings.Join(way, " "), len(seen))
		}
	}
}

// What is open when another mode takes over from virtual servers goes on without their addresses. What the node itself opens
// by that mode while they drain outlasts them.
func TestVirtualServersEnd(t *testing.T) {
	nstest.RequireIPVS(t)
	for _, mode := range modesHere(t) {
		if mode == config.ModeIPVS {
			continue
		}
		t.Run(mode, func(t *testing.T) {
			st := open(t)
			st.mayBreak = 0
			first := st.start("--mode", config.ModeIPVS)
			st.waitFor(config.ModeIPVS)
			st.stay(config.ModeIPVS)
			second := st.start("--mode", mode, "--take-over")
			st.waitFor(mode)
			st.stay(mode)
			st.eventually(st.noAddress)
			st.echo(mode)
			st.hangUp(config.ModeIPVS)
			st.eventually(st.noDevice)
			st.echo(mode)
			st.end()
			st.complain(first)
			st.complain(second)
		})
	}
}

var errMode = errors.New("the daemon is in another mode")

// A daemon that cannot begin does not cost the one whose place it was to take.
func TestTakeOverByOneThatCannotStart(t *testing.T) {
	st := open(t)
	d := st.start("--mode", config.ModeUserspace)
	st.waitFor(config.ModeUserspace)
	st.begin()
	other := st.start("--mode", config.ModeIPVS, "--ipvs-scheduler", "none-such", "--take-over")
	if err := other.Wait(limit); err == nil || !strings.Contains(other.Log(), "the sluice that runs stays") {
		t.Errorf("%v\n%s", err, other.Log())
	}
	st.waitFor(config.ModeUserspace)
	st.after("a daemon that cannot start")
	st.end()
	st.complain(d)
}
